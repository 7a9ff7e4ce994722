"""Agents that act, wait or have left in a turn, and chance that follows the seed."""

import copy
import pickle
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

import mlrl_envs
from mlrl_envs.errors import InvalidActionError
from mlrl_envs.models import AdvisedFamily
from mlrl_envs.types import Score
from tests.mlrl_envs.shell.card_game import AGENTS, Cards, Deck, make, play

# PettingZoo recommends arrays, and agents named like player_0; ours are texts and roles.
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:pettingzoo")


def test_who_acts_is_said_by_the_environment_and_by_every_info():
    env = make()
    _, infos = env.reset(seed=0)
    assert env.agents == list(AGENTS)
    assert env.acting == ("first",)
    assert {a: info["acts"] for a, info in infos.items()} == {
        "first": True, "second": False, "third": False
    }  # fmt: skip
    acted = [acting for acting, _ in play(env)]
    assert acted == [
        ("first",), ("second",), ("first", "third"), ("first",), ("first",), ("second",)
    ]  # fmt: skip
    assert env.acting == ()
    assert env.agents == []


def test_an_agent_that_waits_is_told_and_paid_and_not_listened_to():
    env = make()
    env.reset(seed=0)
    twin = copy.deepcopy(env)
    card = env.reference_actions()
    result = env.step(card)
    observations, rewards, *_ = result
    assert set(observations) == set(rewards) == set(AGENTS)
    assert rewards == {"first": 1.0, "second": 0.1, "third": 0.0}
    assert result[-1]["third"]["components"] == {}
    assert twin.step({**card, "second": "ignored", "third": None}) == result
    assert "ignored" not in str(twin.turns)
    assert [dict(turn.actions) for turn in twin.turns] == [card]


def test_an_agent_that_acts_must_be_in_the_joint_action():
    env = make()
    env.reset(seed=0)
    for actions in ({}, {"second": "7"}, {"first": 7}, {"first": "7", "nobody": "7"}):
        with pytest.raises(InvalidActionError):
            env.step(actions)
    assert env.turns == ()


def test_agents_leave_before_the_others_and_do_not_come_back():
    results = [result for _, result in play(make())]
    assert [list(rewards) for _, rewards, *_ in results] == [list(AGENTS)] * 4 + [
        ["first", "second"]
    ] * 2
    ends = [terminations for _, _, terminations, *_ in results]
    assert ends[3] == {"first": False, "second": False, "third": True}
    assert ends[5] == {"first": True, "second": True}


def test_an_agent_may_be_cut_off_before_the_others():
    (_, first), *rest = play(make(), first="I fold")
    assert first[3] == {"first": True, "second": False, "third": False}
    assert not any(first[2].values())
    assert all("first" not in rewards for _, (_, rewards, *_) in rest)
    assert rest[-1][1][3] == {"second": True}  # the turn limit; nothing was solved


def test_chance_follows_the_seed_and_travels_with_copies():
    env = make()
    env.reset(seed=3, options={"task_index": 1})
    task = env.task
    assert task.task_id == "deck/1"
    assert len(task.cards) == 3
    for clone in (copy.deepcopy(env), pickle.loads(pickle.dumps(env))):
        assert clone.task == task
        assert clone.step(clone.reference_actions())[1]["first"] == 1.0
    env.reset(seed=3, options={"task_id": "deck/1"})
    assert env.task == task
    dealt = set()
    for _ in range(20):
        env.reset()
        dealt.add(env.task.cards)
    assert len(dealt) > 15


def test_a_task_has_the_same_chance_however_it_was_chosen():
    env = make()
    env.reset(seed=5)
    drawn = env.task
    env.reset(seed=5, options={"task_id": drawn.task_id})
    assert env.task == drawn


def test_families_without_chance_draw_the_tasks_that_they_drew():
    env = mlrl_envs.make("mlrl/story-v1")
    env.reset(seed=0)
    rng = np.random.default_rng(0)
    assert env.task is env.family.tasks[int(rng.integers(env.num_tasks))]


def test_many_environments_in_different_turns_are_stepped_as_one_batch():
    vector = mlrl_envs.VectorEnv([make() for _ in range(3)])
    vector.reset(seed=0)
    vector.envs[1].step(vector.envs[1].reference_actions())
    assert vector.acting == [("first",), ("second",), ("first",)]
    _, rewards, *_ = vector.step([env.reference_actions() for env in vector.envs])
    assert [each["second"] for each in rewards] == [0.1, 1.0, 0.1]


class Plain:
    """An environment that says in its infos alone who acts."""

    def __init__(self):
        self._env = make()
        self.possible_agents, self.close = self._env.possible_agents, self._env.close
        self.reset, self.step = self._env.reset, self._env.step

    @property
    def agents(self):
        return self._env.agents


def test_a_vector_of_environments_without_acting_asks_those_whose_infos_say_so():
    vector = mlrl_envs.VectorEnv([Plain(), make()])
    vector.reset(seed=0)
    while any(vector.agents):
        assert vector.acting[0] == vector.envs[0]._env.acting
        assert vector.acting[1] == vector.envs[1].acting
        vector.step([dict.fromkeys(acting, "fold") for acting in vector.acting])
    assert vector.acting == [(), ()]


def test_transcripts_show_waiting():
    env = make()
    env.reset(seed=0)
    env.step(env.reference_actions())
    lines = env.render().splitlines()
    assert "[first writes]" in lines
    assert lines.count("[second waits]") == 1
    assert lines.count("[third waits]") == 2
    assert "[second earns] 0.100 (waited 0.100)" in lines
    assert "[third earns] 0.000" in lines
    assert "[second reads]" in lines  # in the turn to be played


def test_the_expert_is_asked_about_those_who_acted():
    mlrl_envs.check_env(lambda: make(AdvisedFamily(Cards(), Expert())))
    expert = Expert()
    play(make(AdvisedFamily(Cards(), expert)))
    assert expert.asked == 6  # two in turn 3, and none in the last turn


class Expert:
    """Counts what it is asked."""

    model = "expert"
    asked = 0

    def chat_many(self, batch):
        self.asked += len(batch)
        return ["Louder."] * len(batch)


def test_a_step_takes_time_linear_in_the_agents():
    """Nothing in the shell looks at pairs of agents."""
    lookups = {}
    for size in (100, 200):
        names = [Counted(f"agent_{number}") for number in range(size)]
        env = make(Crowd(tuple(names)))
        env.reset(seed=0)
        Counted.compared = 0
        env.step(dict.fromkeys(names[::2], "hello"))
        lookups[size] = Counted.compared
    assert lookups[200] < 2.5 * lookups[100] + 100


class Counted(str):
    """A name that counts comparisons."""

    compared = 0
    __slots__ = ()
    __hash__ = str.__hash__

    def __eq__(self, other):
        Counted.compared += 1
        return str.__eq__(self, other)


@dataclass(frozen=True)
class Crowd(Cards):
    """Many agents, of which every other one acts."""

    names: tuple[str, ...] = ()
    agents: ClassVar = property(lambda self: self.names)

    def __init__(self, names):
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "tasks", (Deck("deck/0"),))

    def acting(self, task, turns):
        return self.names[::2]

    def left(self, task, turns):
        return {}

    def observe(self, task, turns, agent):
        return "a crowd"

    def _score(self, attempt):
        return Score({}, solved=False)
