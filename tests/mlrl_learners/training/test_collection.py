"""Tasks of an iteration: replaced while their answers are equal, and several rollouts of each."""

import itertools
import json
import random
from pathlib import Path

import pytest

import mlrl_learners
from mlrl_learners.errors import ConfigError
from mlrl_learners.testing import ScriptedActor
from mlrl_learners.training.collection import has_spread
from mlrl_learners.types import Completion, JointStep, Node, Rollout, RolloutConfig


class Guesser(ScriptedActor):
    """Answers at random, from a state that it saves; learns nothing."""

    def __init__(self, texts=("1", "2", "3", "30", "7", "12")):
        super().__init__(self.guess)
        self.texts, self.random, self.seen = texts, random.Random(0), []

    def guess(self, _agent, _observation):
        return self.random.choice(self.texts)

    def act(self, observations, **options):
        self.seen.append(len(observations))
        return super().act(observations, **options)

    def update(self, rollouts):
        self.rollouts = rollouts
        return {"spread": float(all(map(has_spread, ([each] for each in rollouts))))}

    def save(self, path):
        (path / "state").write_text(repr(self.random.getstate()))

    def load(self, path):
        self.random.setstate(eval((path / "state").read_text()))


def run(env_id, run_dir, learner, rollout, **options):
    defaults = {"iterations": 3, "tasks_per_iteration": 3, "progress": False}
    mlrl_learners.train(
        env_id=env_id,
        learner=learner,
        run_dir=run_dir,
        rollout=rollout,
        **{**defaults, **options},
    )
    metrics = Path(run_dir, "metrics.jsonl").read_text().splitlines()
    return [json.loads(line) for line in metrics]


def test_batches_stay_full_of_tasks_with_spread(addition_env, tmp_path):
    metrics = run(addition_env, tmp_path, Guesser(), RolloutConfig(4, max_resamples=50))
    assert [each["spread"] for each in metrics] == [1.0] * 3
    episodes = (tmp_path / "episodes.jsonl").read_text().splitlines()
    assert len(episodes) == 9
    assert all(0 <= each["train/thrown_away"] < 1 for each in metrics)
    assert any(each["train/thrown_away"] > 0 for each in metrics)


def test_the_bound_ends_the_search_and_the_batch_stays_full(addition_env, tmp_path):
    learner = Guesser(texts=("no number",))
    metrics = run(addition_env, tmp_path, learner, RolloutConfig(2, max_resamples=2), iterations=1)
    assert learner.seen == [3, 6] * 3  # two turns of three trees in each collection
    assert len(learner.rollouts) == 3
    assert metrics[0]["train/thrown_away"] == pytest.approx(6 / 9)


def test_without_the_option_nothing_is_replaced_and_no_metric_is_written(addition_env, tmp_path):
    learner = Guesser(texts=("no number",))
    metrics = run(addition_env, tmp_path, learner, RolloutConfig(2), iterations=1)
    assert learner.seen == [3, 6]
    assert "train/thrown_away" not in metrics[0]


def test_a_resumed_run_replaces_the_same_tasks(addition_env, tmp_path):
    rollout = RolloutConfig(2, num_rollouts=2, max_resamples=3)
    run(addition_env, tmp_path / "whole", Guesser(), rollout, iterations=4)
    for iterations in (2, 4):
        options = {"iterations": iterations, "resume": True}
        run(addition_env, tmp_path / "parts", Guesser(), rollout, **options)
    whole, parts = ((tmp_path / name / "episodes.jsonl").read_text() for name in ("whole", "parts"))
    assert whole == parts


def test_rollouts_of_a_task_have_one_task_and_one_seed(addition_env, tmp_path):
    learner = Guesser()
    run(addition_env, tmp_path, learner, RolloutConfig(1, num_rollouts=4), iterations=1)
    keys = [(each.task_id, each.seed) for each in learner.rollouts]
    assert [len(list(some)) for _, some in itertools.groupby(keys)] == [4, 4, 4]


def played(*rewards):
    answers = tuple(Completion(str(number)) for number in range(len(rewards)))
    steps = tuple(
        JointStep({"a": n}, {"a": reward}, {}, {}, terminated=True, truncated=False)
        for n, reward in enumerate(rewards)
    )
    return Rollout("env", "task", ("a",), Node(0, {"a": "go"}, {"a": answers}, steps))


@pytest.mark.parametrize(
    ("rollouts", "spread"),
    [
        ([played(1.0, 0.0)], True),
        ([played(1.0, 1.0)], False),
        ([played(1.0), played(0.0)], True),
        ([played(1.0), played(1.0)], False),
        ([played(0.9, 0.2 + (0.9 - 0.2))], False),
        ([played(0.9), played(0.2 + (0.9 - 0.2))], False),
        ([played(1e-6, 0.0)], True),
    ],
)
def test_spread_is_between_answers_that_may_be_compared(rollouts, spread):
    assert has_spread(rollouts) == spread


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("ippo", {"group": {"resample": 1}}, "from which a critic learns"),
        (
            "mareinforce",
            {"group": {"resample": 1}},
            "group.resample .* baseline.kind none learns",
        ),
        ("magrpo", {"group": {"resample": -1}}, "resample must be at least 0, got -1"),
        ("magrpo", {"group": {"rollouts": 0}}, "rollouts must be at least 1, got 0"),
        ("magrpo", {"group": {"branching": "greedy"}}, "set credit.turn_weights nodes"),
        (
            "magrpo",
            {"group": {"size": 1, "rollouts": 4}},
            "baseline.kind mean takes at least 2 answers a prompt",
        ),
    ],
)
def test_a_combination_without_meaning_is_refused_in_one_line(name, options, message):
    with pytest.raises(ConfigError, match=message) as error:
        mlrl_learners.make(name, agents=("left", "right"), model="tiny-randm", **options)
    assert "\n" not in str(error.value)
