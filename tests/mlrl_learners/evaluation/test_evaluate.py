import contextlib
import json
import math

import pytest

from mlrl_envs.errors import ContractError, InfraError
from mlrl_learners.errors import ConfigError, NumericsError
from mlrl_learners.evaluation.evaluate import evaluate
from mlrl_learners.testing import ScriptedActor
from mlrl_learners.types import Completion, Usage
from tests.mlrl_learners.conftest import Addition

ENV_ID = "test/addition-v0"
BROKEN_TASK = 3

pytestmark = pytest.mark.usefixtures("addition_env")


def add_one(agent, text):
    return str(int(text) + 1)


def only_left_knows_even(agent, text):
    return str(int(text) + 1) if agent == "left" or int(text) % 2 == 0 else "?"


def test_a_right_actor_solves_everything_in_one_turn():
    result = evaluate(env_id=ENV_ID, actor=ScriptedActor(add_one), samples=3)
    assert result.mean_return == 1.0
    assert result.interval == (1.0, 1.0)
    assert result.solved_rate == 1.0
    assert result.pass_at_k == {1: 1.0, 2: 1.0, 3: 1.0}
    assert list(result.task_returns) == [f"eval/{i}" for i in range(4)]
    assert all(len(values) == 3 for values in result.task_returns.values())
    assert all(len(episode.turns) == 1 for episode in result.episodes)


def test_figures_of_a_half_right_team_are_means_over_tasks_and_agents():
    result = evaluate(env_id=ENV_ID, actor=ScriptedActor(only_left_knows_even))
    assert result.agent_returns == {"left": 1.5, "right": 0.5}  # odd tasks take two turns
    assert result.mean_return == 1.0
    assert result.components == {"tests": 1.0}
    assert result.solved_rate == 0.5
    assert result.interval[0] <= result.mean_return <= result.interval[1]


@pytest.mark.parametrize(
    ("tasks", "played"),
    [(2, [0, 1]), (99, [0, 1, 2, 3]), ([3, 1], [3, 1]), (None, [0, 1, 2, 3])],
)
def test_tasks_are_a_number_of_the_first_or_indices(tasks, played):
    result = evaluate(env_id=ENV_ID, actor=ScriptedActor(add_one), tasks=tasks)
    assert list(result.task_returns) == [f"eval/{index}" for index in played]


def test_an_episode_is_seeded_by_its_task_and_sample_alone():
    def seeds(**options):
        result = evaluate(env_id=ENV_ID, actor=ScriptedActor(add_one), **options)
        return {(e.task_id, e.seed) for e in result.episodes}

    assert seeds(tasks=[2], samples=2) < seeds(samples=3)
    assert seeds(batch_size=1) == seeds(batch_size=3)
    assert seeds(seed=1) != seeds(seed=2)


def test_the_split_is_an_option_of_the_environment_and_may_be_left_out():
    actor = ScriptedActor(add_one)
    assert "test/0" in evaluate(env_id=ENV_ID, actor=actor, split="test").task_returns
    assert "train/0" in evaluate(env_id=ENV_ID, actor=actor, split=None).task_returns


def test_an_episode_that_infrastructure_broke_is_no_part_of_the_figures():
    options = {"broken": True}
    result = evaluate(env_id=ENV_ID, actor=ScriptedActor(add_one), env_options=options)
    assert result.mean_return == 1.0
    assert len(result.episodes) == 3
    assert [(f.task_id, f.error, f.message) for f in result.failures] == [
        ("3", "InfraError", "no worker")
    ]


def test_nothing_but_broken_episodes_is_an_error():
    with pytest.raises(InfraError, match="no worker"):
        evaluate(
            env_id=ENV_ID,
            actor=ScriptedActor(add_one),
            env_options={"broken": True},
            tasks=[BROKEN_TASK],
        )


class Undefined(Addition):
    """Pays NaN to one agent in task 2."""

    def step(self, actions):
        observations, rewards, *ends = super().step(actions)
        return observations, rewards | ({"right": math.nan} if self.task == 2 else {}), *ends


def test_a_return_that_is_not_finite_is_an_error_that_names_its_task_and_agent():
    with pytest.raises(NumericsError, match="eval/2: the return of right is nan"):
        evaluate(env=Undefined, actor=ScriptedActor(add_one))


def test_each_episode_is_handed_over_when_it_is_done():
    seen = []
    result = evaluate(env_id=ENV_ID, actor=ScriptedActor(add_one), on_episode=seen.append)
    assert tuple(seen) == result.episodes


def test_the_actor_samples_from_the_seed_and_is_left_as_it_was():
    events = []

    class Actor(ScriptedActor):
        @contextlib.contextmanager
        def sampling_seed(self, seed):
            events.append(("enter", seed))
            yield
            events.append("leave")

        def act(self, observations, **options):
            events.append(options["explore"])
            return super().act(observations, **options)

    evaluate(env_id=ENV_ID, actor=Actor(add_one), seed=5, tasks=1, explore=False)
    assert events == [("enter", 5), False, "leave"]


def test_the_result_is_json():
    result = evaluate(env_id=ENV_ID, actor=ScriptedActor(add_one), samples=2)
    record = json.loads(json.dumps(result.as_dict()))
    assert record["pass_at_k"] == {"1": 1.0, "2": 1.0}
    assert record["episodes"][0]["turns"][0]["actions"] == {"left": "1", "right": "1"}
    assert record["episodes"][0]["return"] == 1.0


@pytest.mark.parametrize("options", [{"samples": 0}, {"tasks": 0}, {"batch_size": 0}])
def test_numbers_below_one_are_refused(options):
    with pytest.raises(ConfigError, match="at least 1, got 0"):
        evaluate(env_id=ENV_ID, actor=ScriptedActor(add_one), **options)


def test_only_the_k_that_were_asked_for_are_reported():
    result = evaluate(env_id=ENV_ID, actor=ScriptedActor(add_one), samples=4, k=[4, 2])
    assert result.pass_at_k == {2: 1.0, 4: 1.0}


@pytest.mark.parametrize("k", [[], [0], [1, 3]])
def test_a_k_that_samples_do_not_allow_is_refused_before_anything_is_played(k):
    def never(agent, text):
        raise AssertionError

    with pytest.raises(ConfigError, match="k must be numbers from 1 to samples = 2"):
        evaluate(env_id=ENV_ID, actor=ScriptedActor(never), samples=2, k=k)


def test_components_and_solved_rate_have_intervals_over_tasks():
    result = evaluate(env_id=ENV_ID, actor=ScriptedActor(only_left_knows_even), samples=2)
    assert set(result.component_intervals) == set(result.components)
    low, high = result.component_intervals["tests"]
    assert low == high == 1.0  # every task earns one in all, at once or in two turns
    low, high = result.solved_interval
    assert low < result.solved_rate == 0.5 < high


def test_tokens_are_counted_for_each_agent():
    class Wordy:
        def act(self, observations, *, num_samples=1, explore=True):
            words = {"left": Usage(10, 3), "right": Usage(20, 5)}
            return [
                {a: [Completion(str(int(t) + 1), usage=words[a])] for a, t in node.items()}
                for node in observations
            ]

    result = evaluate(env_id=ENV_ID, actor=Wordy())
    assert result.agent_tokens == {"left": Usage(40, 12), "right": Usage(80, 20)}
    assert (result.prompt_tokens, result.tokens) == (120, 32)
    record = result.as_dict()
    assert record["agent_tokens"]["right"] == {"tokens": 20, "prompt_tokens": 80}
    assert record["seconds_per_episode"] == pytest.approx(record["seconds"] / 4)


def test_evaluating_twice_gives_the_same_result():
    results = [evaluate(env_id=ENV_ID, actor=ScriptedActor(add_one)).as_dict() for _ in range(2)]
    for result in results:
        del result["seconds"], result["seconds_per_episode"]
    assert results[0] == results[1]


@pytest.mark.parametrize("actor", ["random", ScriptedActor, add_one, None])
def test_what_is_no_actor_is_refused(actor):
    with pytest.raises(ContractError, match="actor must be an object with a method act, got"):
        evaluate(env_id=ENV_ID, actor=actor)
