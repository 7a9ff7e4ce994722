"""Groups of rollout trees: equal results whatever is late, and no group waits for another one."""

import random
import threading
import time
from collections import Counter

import pytest

import mlrl_learners
from mlrl_envs.errors import EndpointError
from mlrl_learners.play.rollout import collect_rollouts
from mlrl_learners.testing import ScriptedActor
from mlrl_learners.types import Completion, RolloutConfig
from tests.mlrl_learners.conftest import Addition

TREES = 6
CHAIN = RolloutConfig(num_samples=2, branching="chain")


class Player:
    """Answers with its number, the number of its call, and the number of the answer."""

    def __init__(self, number, actor):
        self.number, self.actor, self.calls = number, actor, 0
        self.parallel_calls = actor.parallel

    def act(self, observations, *, num_samples=1, explore=True):
        self.calls += 1
        self.actor.before(self)
        texts = [f"{self.number} {self.calls} {sample}" for sample in range(num_samples)]
        return [
            {agent: [Completion(text) for text in texts] for agent in each} for each in observations
        ]


class InGroups:
    """An actor of several groups, whose players call `before` ahead of each answer."""

    def __init__(self, groups=3, parallel=1, before=lambda player: None):
        self.groups, self.parallel, self.before = groups, parallel, before

    def act(self, observations, *, num_samples=1, explore=True):
        raise AssertionError("only its players are asked")

    def players(self, asked, num_samples):
        self.asked = dict(asked)
        return [Player(number, self) for number in range(self.groups)]


class Told(Addition):
    """Tells a function of each step ahead of it."""

    def __init__(self, tell, parallel=False):
        super().__init__()
        self.tell, self.parallel_steps = tell, parallel

    def __deepcopy__(self, memo):
        copied = Told(self.tell)
        copied.__dict__ |= self.__dict__
        return copied

    def step(self, actions):
        self.tell(actions["left"])
        return super().step(actions)


def collect(actor, envs=None, config=CHAIN):
    return collect_rollouts(
        envs or [Addition() for _ in range(TREES)],
        actor,
        config,
        task_options=[{"task_index": number % 2} for number in range(TREES)],
        seeds=list(range(TREES)),
    )


@pytest.mark.parametrize("in_threads", [False, True])
@pytest.mark.parametrize("parallel", [1, 3])
def test_results_do_not_depend_on_who_is_late(parallel, in_threads):
    expected = collect(InGroups())
    draw = random.Random(parallel)
    late = InGroups(parallel=parallel, before=lambda player: time.sleep(draw.random() / 50))
    envs = [Told(lambda text: time.sleep(draw.random() / 50), in_threads) for _ in range(TREES)]
    assert collect(late, envs) == expected


def test_a_group_is_asked_while_the_environments_of_another_one_are_stepped():
    asked = threading.Event()

    def tell(text):
        if text.startswith("0 1"):
            assert asked.wait(60)

    def before(player):
        if player.number == 1:
            asked.set()

    actor = InGroups(groups=2, before=before)
    assert len(collect(actor, [Told(tell) for _ in range(TREES)]).rollouts) == TREES


def test_a_group_goes_on_while_another_one_waits_for_its_first_answers():
    over = threading.Event()

    def before(player):
        if player.number == 0:
            assert over.wait(60)
        elif player.calls == 2:
            over.set()

    assert len(collect(InGroups(groups=2, parallel=2, before=before)).rollouts) == TREES


def test_environments_that_allow_it_are_stepped_at_the_same_time():
    both = threading.Barrier(2)

    def tell(text):
        if text.split()[1] == "1" and text.split()[2] == "0":
            both.wait(60)

    envs = [Told(tell, parallel=True) for _ in range(2)]
    found = collect_rollouts(envs, InGroups(groups=2), CHAIN, task_options=[{}, {}], seeds=[0, 1])
    assert len(found.rollouts) == 2


def test_other_environments_are_stepped_in_the_thread_of_the_caller():
    threads = set()
    envs = [Told(lambda text: threads.add(threading.current_thread())) for _ in range(TREES)]
    collect(InGroups(parallel=3), envs)
    assert threads == {threading.current_thread()}


def test_a_player_that_fails_ends_its_own_trees_only():
    def before(player):
        if player.number == 1:
            raise EndpointError("no server")

    found = collect(InGroups(before=before))
    assert [failure.seed for failure in found.failures] == [2, 3]
    assert [rollout.seed for rollout in found.rollouts] == [0, 1, 4, 5]


def test_an_error_of_a_player_ends_the_collection():
    def before(player):
        if player.number == 1:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        collect(InGroups(parallel=3, before=before))


def test_opponents_and_readers_of_environments_play_one_group():
    class Reader(ScriptedActor):
        def watch(self, envs):
            self.envs = envs

        def players(self, asked, num_samples):
            raise AssertionError("one group")

    assert len(collect(Reader(lambda agent, text: text)).rollouts) == TREES


def make(**options):
    return mlrl_learners.make(
        "magrpo",
        model="tiny-random",
        agents=["left", "right"],
        sampling={"max_new_tokens": 4},
        compute={"device": "cpu", "max_rows": 4},
        **options,
    )


@pytest.mark.parametrize(
    ("options", "groups"), [({}, 3), ({"team": {"share_weights": True}}, 6)], ids=["own", "shared"]
)
def test_a_group_of_a_team_fills_a_batch_of_each_model(options, groups, monkeypatch):
    learner, sizes = make(**options), Counter()
    (engine, *_) = {policy.engine for policy in learner.policies.values()}
    sample = type(engine).sample

    def count(self, prompts, num_samples, *args, **options):
        sizes[len(prompts) * num_samples] += 1
        return sample(self, prompts, num_samples, *args, **options)

    monkeypatch.setattr(type(engine), "sample", count)
    assert len(make(**options).players({"left": TREES, "right": TREES}, 2)) == groups
    assert len(collect(learner).rollouts) == TREES
    assert set(sizes) == {4}


def test_players_have_seeds_of_their_own_and_a_single_group_those_of_the_team():
    learner = make()
    assert learner.players({"left": 2, "right": 2}, 2) == [learner]
    assert learner.call_seeds.calls == 0
    players = learner.players({"left": 6, "right": 6}, 2)
    assert len({player.call_seeds.seed for player in players}) == 3
    assert learner.call_seeds.calls == 1


def test_rollouts_of_two_collections_differ_and_repeat_with_the_seed():
    one, other = make(), make()
    assert collect(one) == collect(other)
    assert collect(one).rollouts != collect(make()).rollouts
