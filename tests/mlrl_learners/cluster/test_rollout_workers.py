"""Runs whose trees are played by processes of `ray.rollouts`, which are in this process here."""

import functools
import json
import pickle

import pytest

import mlrl_envs
import mlrl_learners
from mlrl_envs.errors import ContractError, InfraError, InvalidArgumentError
from mlrl_learners.cluster import rollout_worker
from mlrl_learners.cluster.packed_rollouts import packed_groups, unpacked_groups
from mlrl_learners.cluster.rollout_worker import EnvSource
from mlrl_learners.config.opponents import OpponentsConfig
from mlrl_learners.config.ray import RayConfig
from mlrl_learners.errors import ConfigError
from mlrl_learners.types import FailedEpisode, JointStep, Node, Rollout
from tests.mlrl_learners.cluster.cluster_runs import CORRECTED, assert_equal, lines, train
from tests.mlrl_learners.cluster.inline_workers import use

LORA = {"lora": {"rank": 2}, "team": {"share_weights": False}}
GROUPS = {"group": {"size": 3}}  # of two trees each, as a batch has room for two prompts


@pytest.mark.parametrize(
    ("options", "tasks", "rollouts", "samplers"),
    [({}, 3, 1, 2), (LORA, 3, 2, 2), (GROUPS, 12, 1, 1), (GROUPS, 12, 2, 4), (GROUPS, 12, 5, 5)],
    ids=["whole", "lora", "one", "two", "five"],
)
def test_processes_that_play_give_the_run_of_one_process(
    tmp_path, monkeypatch, options, tasks, rollouts, samplers
):
    given = {"options": options, "iterations": 2, "train": {"tasks_per_iteration": tasks}}
    train(tmp_path / "one", **given)
    (made,) = [use(monkeypatch)]
    train(tmp_path / "many", rollouts=rollouts, samplers=samplers, **given)
    assert_equal(tmp_path / "one", tmp_path / "many")
    assert made[0].started == rollouts
    assert len(made[0].players) == rollouts


def test_processes_that_die_change_nothing(tmp_path, monkeypatch):
    train(tmp_path / "one")
    made = use(monkeypatch, lambda worker, call: "dies" if call and worker < 4 else None)
    train(tmp_path / "many", rollouts=2, samplers=2, max_attempts=9)
    assert_equal(tmp_path / "one", tmp_path / "many")
    assert {1, 2, 3} <= set(made[0].stopped)


def test_samplers_of_such_processes_that_die_change_nothing_and_are_counted(tmp_path, monkeypatch):
    train(tmp_path / "one")
    use(monkeypatch, sampler_fault=lambda worker, call: "dies" if call and worker == 1 else None)
    train(tmp_path / "many", rollouts=2, samplers=4)
    assert_equal(tmp_path / "one", tmp_path / "many")
    assert raw(tmp_path / "many/metrics.jsonl")[-1]["sampler/replaced"] >= 1


def test_a_process_whose_samplers_do_not_start_is_replaced_and_changes_nothing(
    tmp_path, monkeypatch
):
    failing = iter(range(3))  # the attempts of the first process
    train(tmp_path / "one")

    def fault(worker, call):
        return "dies" if call is None and next(failing, None) is not None else None

    made = use(monkeypatch, sampler_fault=fault)
    train(tmp_path / "many", rollouts=1)
    assert_equal(tmp_path / "one", tmp_path / "many")
    assert made[0].started == 2
    assert not (tmp_path / "many/failures.jsonl").read_text()


def test_processes_keep_no_weights_that_nobody_asks_for(tmp_path, monkeypatch):
    """There is one group of trees, so that the second process answers evaluations only."""
    made = use(monkeypatch)
    train(tmp_path / "run", iterations=5, rollouts=2, samplers=2, train={"eval_every": 1})
    kept = [player._pool.versions for player in made[0].players.values()]
    assert len(kept) == 2
    assert all(len(versions) <= 2 for versions in kept)


@pytest.mark.parametrize("lag", [1, 2])
def test_with_lag_the_run_is_that_of_the_trainer_which_plays(tmp_path, monkeypatch, lag):
    use(monkeypatch)
    given = {"options": CORRECTED, "iterations": 4, "lag": lag}
    train(tmp_path / "trainer", **given)
    train(tmp_path / "many", rollouts=2, samplers=2, **given)
    assert_equal(tmp_path / "trainer", tmp_path / "many")
    ages = [line["sampler/policy_age"] for line in raw(tmp_path / "many/metrics.jsonl")]
    assert ages == [float(min(lag, number)) for number in range(4)]


def test_a_run_is_resumed_with_other_processes(tmp_path, monkeypatch):
    use(monkeypatch)
    train(tmp_path / "whole", iterations=4)
    train(tmp_path / "parts", iterations=2, rollouts=2, samplers=2)
    train(tmp_path / "parts", iterations=4, train={"resume": True}, samplers=3, rollouts=1)
    assert_equal(tmp_path / "whole", tmp_path / "parts")


def test_a_group_that_ends_its_processes_fails_without_a_reward(tmp_path, monkeypatch):
    poisoned, asked = [], []

    def fault(worker, call):
        if call is None or not hasattr(call, "groups"):
            return None
        asked.append(call)
        seeds = {seed for group in call.groups for seed in group.seeds}
        poisoned[:] = poisoned or [min(seeds)]
        return "dies" if poisoned[0] in seeds else None

    use(monkeypatch, fault)
    given = {"options": GROUPS, "train": {"tasks_per_iteration": 12, "eval_every": 0}}
    train(tmp_path / "run", iterations=1, rollouts=2, samplers=2, max_attempts=2, **given)
    failed = lines(tmp_path / "run/failures.jsonl")
    assert {failure["error"] for failure in failed} == {"SamplerError"}
    assert "2 rollout trees in 1 groups" in failed[0]["message"]
    assert len(failed) == 2
    assert len(lines(tmp_path / "run/episodes.jsonl")) == 10
    # Two attempts at the share of three groups, then three groups, one of them twice.
    played = [call for call in asked if 1 in map(len, [call.groups])]
    assert [len(call.groups) for call in asked].count(3) == 3
    assert len(played) == 4


def test_an_error_of_an_environment_ends_the_run_as_in_one_process(tmp_path, monkeypatch):
    def fail(*arguments, **options):
        raise ContractError("nobody acts")

    use(monkeypatch)
    monkeypatch.setattr("mlrl_learners.play.trees.grow_groups", fail)
    with pytest.raises(ContractError, match="nobody acts") as error:
        train(tmp_path / "run", rollouts=1)
    if hasattr(error.value, "__notes__"):  # Python 3.11
        assert "test_rollout_workers.py" in error.value.__notes__[0]


def test_an_error_that_cannot_be_sent_is_sent_as_its_text():
    class LocalError(Exception):
        pass

    assert str(rollout_worker._portable(LocalError("why"))) == "LocalError: why"
    found = rollout_worker._portable(InvalidArgumentError("bad"))
    assert (type(found), str(found)) == (InvalidArgumentError, "bad")


def test_a_process_whose_data_are_other_ones_is_refused():
    env = mlrl_envs.make("mlrl/story-v1", reward="paper")
    kept = mlrl_envs.fingerprint(env)
    EnvSource("mlrl/story-v1", {"reward": "paper"}, kept).make()
    with pytest.raises(ConfigError, match="made another environment 'mlrl/story-v1'"):
        EnvSource("mlrl/story-v1", {"split": "eval"}, kept).make()


def test_an_environment_that_no_process_can_make_ends_the_run(tmp_path, monkeypatch):
    def fail(source):
        raise InfraError("no such file")

    use(monkeypatch)
    monkeypatch.setattr(EnvSource, "make", fail)
    with pytest.raises(
        InfraError, match=r"no process of ray.rollouts could be started in 3 attempts: .*no such"
    ):
        train(tmp_path / "run", rollouts=1, train={"eval_every": 0})


def test_what_processes_cannot_play_is_refused_before_anything_is_written(tmp_path):
    learner = mlrl_learners.make("magrpo", model="tiny-random", agents=["player_0", "player_1"])
    ray = RayConfig(enabled=True, rollouts=1)
    given = {"learner": learner, "iterations": 1, "run_dir": tmp_path / "run", "ray": ray}
    env = mlrl_envs.make("mlrl/nim-v0")
    with pytest.raises(ConfigError, match=r"cannot make '.* \(in memory\)'"):
        mlrl_learners.train(env=env, **given)
    for other in (functools.partial(mlrl_envs.make, "mlrl/nim-v0"), [env, "mlrl/nim-v0"]):
        with pytest.raises(ConfigError, match="in the memory of this one"):
            mlrl_learners.train(env=other, **given)
    opponents = OpponentsConfig(agents={"player_1": "latest"})
    with pytest.raises(ConfigError, match=r"ray.rollouts plays without opponents"):
        mlrl_learners.train(env_id="mlrl/nim-v0", opponents=opponents, **given)
    assert not (tmp_path / "run").exists()


def test_a_chain_of_many_turns_can_be_sent():
    node = None
    for turn in reversed(range(600)):
        step = JointStep({"a": 0}, {"a": float(turn)}, {}, {}, node is None, False, node)
        others = JointStep({"a": 1}, {"a": 0.0}, {}, {}, True, False)
        node = Node(turn, {"a": f"turn {turn}"}, {"a": ()}, (others, step))
    failed = FailedEpisode("env", "1", 0, "InfraError", "why")
    sent = pickle.loads(pickle.dumps(packed_groups([[Rollout("env", "0", ("a",), node), failed]])))
    ((rollout, other),) = unpacked_groups(sent)
    assert other == failed
    found, turns = rollout.root, 0
    while found is not None:
        assert found.observations == {"a": f"turn {turns}"}
        assert [step.rewards["a"] for step in found.steps] == [0.0, float(turns)]
        assert found.steps[0].child is None
        found, turns = found.steps[1].child, turns + 1
    assert turns == 600


def raw(path):
    return [json.loads(line) for line in path.read_text().splitlines()]
