"""Credit of each agent for a shared reward (`credit.kind`)."""

import pytest
import torch

from mlrl_learners.algorithms.turn_samples import turn_samples
from mlrl_learners.config.option_places import merge_options
from mlrl_learners.errors import ConfigError
from mlrl_learners.types import RolloutConfig
from tests.mlrl_learners.algorithms.reward_learners import FAMILIES, make


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("credit", ["difference", "leave_one_out", "outcome", "team"])
def test_every_credit_is_learnt_from_over_trees_of_crossed_answers(name, credit, toy):
    learner = make(name, group={"size": 2, "joint_mode": "cross"}, credit={"kind": credit})
    metrics = learner.update(toy.play(learner, max_turns=2))
    assert metrics["left/grad_norm"] > 0


def test_credit_leaves_value_targets_alone(toy):
    """A critic learns what is earned, whatever part of it is put down to one agent."""
    targets = {}
    for credit in ("shared", "difference", "leave_one_out"):
        learner = make("ippo", group={"joint_mode": "cross", "size": 3}, credit={"kind": credit})
        rollouts = toy.play(learner)
        estimates = learner.critics.estimate(rollouts)
        estimators = learner.advantage_estimators(rollouts, estimates)
        samples = turn_samples(
            rollouts, estimates, estimators, learner.config.credit, learner.learning
        )
        targets[credit] = [sample.value_sample.targets[0] for sample in samples]
    assert targets["shared"] == targets["difference"] == targets["leave_one_out"]


def test_a_difference_is_the_advantage_where_there_is_no_baseline(toy, monkeypatch):
    """`mareinforce` with it is `marloo` without: both compare an answer with the others' mean."""
    options = {"group": {"size": 3, "joint_mode": "cross"}}
    plain = make("marloo", **options)
    rollouts = toy.play(plain)
    expected = toy.gradients(plain, rollouts, monkeypatch)
    credited = make("mareinforce", **merge_options(options, {"credit": {"kind": "difference"}}))
    found = toy.gradients(credited, rollouts, monkeypatch)
    assert all(torch.allclose(a, b, atol=1e-6) for a, b in zip(found, expected, strict=True))


def test_a_difference_over_joint_actions_that_were_not_crossed_is_a_typed_error(toy):
    aligned = toy.play(make())
    with pytest.raises(ConfigError, match=r"set group\.joint_mode to cross"):
        make(credit={"kind": "difference"}, group={"joint_mode": "cross"}).update(aligned)


@pytest.mark.parametrize(
    ("options", "rollout", "message"),
    [
        (
            {"credit": {"kind": "difference"}},
            RolloutConfig(4),
            "takes group.joint_mode cross .* aligned and 4",
        ),
        (
            {"credit": {"kind": "difference"}, "group": {"joint_mode": "cross"}},
            RolloutConfig(4, "aligned"),
            "takes group.joint_mode cross .* got aligned and 4",
        ),
        ({"credit": {"kind": "difference"}}, RolloutConfig(1, "cross"), "got cross and 1"),
        ({"credit": {"kind": "leave_one_out"}}, RolloutConfig(1), "num_samples must be at least 2"),
    ],
)
@pytest.mark.parametrize("name", FAMILIES)
def test_a_way_of_walking_that_leaves_nothing_to_compare_is_refused(
    name, options, rollout, message
):
    with pytest.raises(ConfigError, match=message):
        make(name, **options).check_rollout(rollout)


@pytest.mark.parametrize("name", FAMILIES)
def test_a_difference_may_be_crossed_by_the_rollout_alone(name):
    make(name, credit={"kind": "difference"}).check_rollout(RolloutConfig(2, "cross"))


@pytest.mark.parametrize(
    "credit",
    [
        pytest.param("difference", marks=pytest.mark.slow),
        pytest.param("leave_one_out", marks=pytest.mark.long),
    ],
)
def test_credit_lets_a_method_without_a_baseline_learn_what_a_shared_reward_hides(credit, toy):
    """Every answer is paid 3 more than it earned: without a baseline what there is of a lesson
    drowns in it; what an agent's own part changed is still heard."""

    def reward(actions, agent):
        return 3.0 + toy.letters(actions, agent)

    def gains(kind):
        def student(seed):
            return make(
                "mareinforce",
                seed,
                credit={"kind": kind},
                group={"joint_mode": "cross"},
                optimizer={"lr": 1e-2},
            )

        return toy.gains(student, range(6), 16, reward=reward)

    both = zip(gains(credit), gains("shared"), strict=True)
    low, _ = toy.interval([mine - theirs for mine, theirs in both])
    assert low > 0.02
