"""Terms of the loss that options add: surrogates, importance weights, entropy and penalties."""

import math
from collections import defaultdict
from dataclasses import replace

import pytest
import torch

import mlrl_learners
from mlrl_learners.algorithms.answer_advantages import answer_advantages
from mlrl_learners.algorithms.answer_loss import CISPO_CAP, surrogate, with_old_logprobs
from mlrl_learners.algorithms.magrpo import MagrpoConfig
from mlrl_learners.algorithms.policy_gradient_config import PolicyGradientConfig
from mlrl_learners.algorithms.policy_gradient_options import BaselineOptions, CreditOptions
from mlrl_learners.algorithms.policy_update import AnswerSample, old_logprobs, sampled_logprobs
from mlrl_learners.algorithms.reward_terms import RewardTerms
from mlrl_learners.config.groups import build_config
from mlrl_learners.config.option_places import merge_options
from mlrl_learners.errors import ConfigError
from mlrl_learners.functional.returns import rollout_groups
from mlrl_learners.functional.role_baseline import RoleBaseline
from mlrl_learners.types import Completion, JointStep, Node, Rollout

CORRECTIONS = ["token_truncate", "token_mask", "sequence_truncate", "sequence_mask"]
SMALL = {
    "model": "tiny-random",
    "sampling": {"max_new_tokens": 8, "temperature": 1.0, "top_p": 1.0},
    "optimizer": {"epochs": 1, "lr": 1e-2},
}


def config_of(**options):
    return build_config(PolicyGradientConfig, options)


def sample(logprobs, advantage, old=None, weight=1.0):
    """An answer that was sampled with some log-probabilities."""
    length = len(logprobs)
    completion = Completion("", (1,), (2,) * length, tuple(logprobs))
    return AnswerSample("a", completion, advantage, 1.0, weight, old)


def loss_of(samples, now, **options):
    """The surrogate, its gradient by token, and the statistics."""
    logprobs, stats = torch.tensor(now, requires_grad=True), defaultdict(float)
    loss = surrogate(logprobs, samples, config_of(**options), stats)
    loss.backward()
    return float(loss.detach()), logprobs.grad, stats


@pytest.mark.parametrize("cap", [None, 2.0])
def test_cispo_weighs_every_token_by_its_capped_ratio(cap):
    now = [0.1 - 1.0, math.log(9.0) - 3.0]
    loss = {"surrogate": "cispo", "ratio_cap": cap}
    _, gradient, stats = loss_of([sample([-1.0, -3.0], 2.0)], now, loss=loss)
    expected = [-2.0 * math.exp(0.1), -2.0 * (cap or CISPO_CAP)]
    assert gradient.tolist() == pytest.approx(expected, rel=1e-5)
    assert stats["clipped"] == 1.0


def test_a_ratio_cap_bounds_answers_of_negative_advantage_alone():
    samples, now = [sample([-5.0], -1.0), sample([-5.0], 1.0)], [-1.0, -5.0]
    free, gradient, _ = loss_of(samples, now)
    assert gradient[0] > 0
    bounded, gradient, _ = loss_of(samples, now, loss={"ratio_cap": 3.0})
    assert gradient.tolist() == pytest.approx([0.0, -1.0])
    assert (free, bounded) == pytest.approx((math.exp(4.0) - 1.0, 3.0 - 1.0), rel=1e-5)


def test_importance_weights_give_the_gradient_of_a_bandit_that_another_policy_samples():
    """Every answer counts with its probability under the sampler, so nothing is random."""
    policy, sampler = torch.tensor([0.3, 0.7]), [0.6, 0.4]
    rewards = torch.tensor([1.0, 0.5])
    exact = float(policy[0] * (rewards[0] - (policy * rewards).sum()))

    def gradient(old, **options):
        logits = policy.log().requires_grad_()
        samples = [
            sample([math.log(q)], float(reward), before, q)
            for q, reward, before in zip(sampler, rewards, old, strict=True)
        ]
        stats = defaultdict(float)
        surrogate(logits.log_softmax(0), samples, config_of(**options), stats).backward()
        return float(-logits.grad[0])

    recomputed = [(value,) for value in policy.log().tolist()]
    corrected = gradient(recomputed, importance={"correction": "token_truncate"})
    assert corrected == pytest.approx(exact, abs=1e-6)
    # Without weights the sampler is taken for the old policy, and the clip removes answers.
    assert abs(gradient([None, None]) - exact) > 0.05


@pytest.mark.parametrize("correction", CORRECTIONS)
def test_a_sampler_that_is_the_policy_needs_no_correction(correction):
    samples = [sample([-1.0, -2.0], 1.0, (-1.0, -2.0)), sample([-0.5], -1.0, (-0.5,))]
    now = [-1.1, -1.9, -0.6]
    plain, expected, _ = loss_of(samples, now)
    found, gradient, stats = loss_of(samples, now, importance={"correction": correction})
    assert found == pytest.approx(plain)
    assert gradient.tolist() == pytest.approx(expected.tolist())
    assert stats["importance_cut"] == stats["kl_sampler"] == 0.0


def test_weights_are_capped_and_vetoed_answers_weigh_nothing():
    samples = [sample([-4.0], 1.0, (-1.0,)), sample([-1.0, -1.0], 1.0, (-1.0, -12.0))]
    options = {"importance": {"correction": "token_truncate", "cap": 2.0, "veto": 1e-4}}
    _, gradient, stats = loss_of(samples, [-1.0, -1.0, -12.0], **options)
    assert gradient.tolist() == pytest.approx([-2.0, 0.0, 0.0])
    assert stats["importance_cut"] == 3.0


@pytest.mark.parametrize("name", ["magrpo", "ippo"])
def test_methods_recompute_what_the_trainer_gives_the_sampled_tokens(name, toy):
    learner = mlrl_learners.make(
        name,
        agents=("solo",),
        **merge_options(SMALL, {"importance": {"correction": "token_truncate"}}),
    )
    rollouts = toy.play(learner)
    samples = [
        AnswerSample("solo", completion, 1.0, 1.0)
        for rollout in rollouts
        for completion in rollout.root.completions["solo"]
    ]
    found = with_old_logprobs(samples, learner.policies["solo"], learner.config)
    assert old_logprobs(found).tolist() == pytest.approx(sampled_logprobs(found).tolist(), abs=1e-4)
    metrics = learner.update(rollouts)
    assert metrics["solo/kl_sampler"] == pytest.approx(0.0, abs=1e-5)
    stale = learner.update(rollouts)  # the policy has moved away from what sampled them
    assert stale["solo/kl_sampler"] > 10 * abs(metrics["solo/kl_sampler"])
    assert metrics["solo/ratio_p5"] == metrics["solo/ratio_p95"] == 1.0
    assert stale["solo/ratio_p5"] < 1.0 < stale["solo/ratio_p95"]


@pytest.mark.parametrize("name", ["magrpo", "ippo"])
def test_an_entropy_bonus_raises_the_entropy_where_all_is_paid_alike(name, toy):
    options = {"penalty": {"entropy_coef": 1.0}, "team": {"share_weights": True}}
    learner = mlrl_learners.make(name, agents=("a", "b"), **merge_options(SMALL, options))
    found = [
        learner.update(toy.play(learner, seed=seed, reward=lambda *_: 0.0))["shared/entropy"]
        for seed in range(8)
    ]
    assert sum(found[-2:]) > sum(found[:2])


@pytest.mark.parametrize("name", ["magrpo", "ippo"])
def test_a_weighted_divergence_is_learnt_from_in_every_epoch(name, toy):
    penalty = {"penalty": {"kl_coef": 0.1, "kl_weighted": True}, "optimizer": {"epochs": 2}}
    learner = mlrl_learners.make(name, agents=("a",), **merge_options(SMALL, penalty))
    metrics = learner.update(toy.play(learner))
    assert metrics["a/kl_reference"] >= 0.0
    assert metrics["a/grad_norm"] > 0.0


def episode(lengths, returns):
    """A rollout of one agent with an answer of each length and return."""
    answers = tuple(Completion("", (1,), (2,) * n, (-1.0,) * n) for n in lengths)
    steps = tuple(
        JointStep({"a": j}, {"a": value}, {}, {}, terminated=True, truncated=False, child=None)
        for j, value in enumerate(returns)
    )
    return Rollout("env", "t", ("a",), Node(0, {"a": ""}, {"a": answers}, steps))


def test_the_soft_penalty_grows_over_the_last_tokens_below_the_limit():
    options = {"overlong": "soft", "overlong_penalty": 0.5, "overlong_buffer": 4}
    config = config_of(penalty=options, sampling={"max_new_tokens": 8})
    (charged,) = RewardTerms({}, {}, config).apply([episode((4, 5, 6, 8), (1.0,) * 4)])
    assert [s.rewards["a"] for s in charged.root.steps] == pytest.approx([1.0, 0.875, 0.75, 0.5])


@pytest.mark.parametrize(
    ("group_by", "expected"),
    [("node", [-0.5, 0.5, -1.0, 1.0]), ("agent", [-0.5, 0.5, -1.0, 1.0])],
)
def test_groups_by_task_are_those_of_a_node_where_a_task_has_one(group_by, expected):
    other = replace(episode((1, 1), (0.0, 2.0)), task_id="another task")
    rollouts = [episode((1, 1), (0.0, 1.0)), other]
    groups = list(rollout_groups(rollouts, 1.0))
    found = answer_advantages(
        groups,
        rollouts,
        BaselineOptions(group_by=group_by),
        credit=CreditOptions(),
        role_baseline=RoleBaseline(0.9),
        agents=("a",),
    )
    assert [a for _, some in found for a in some] == pytest.approx(expected)


@pytest.mark.parametrize("weight_by", ["step", "trajectory"])
@pytest.mark.parametrize("group_by", ["agent", "task"])
def test_a_group_over_turns_subtracts_one_mean_of_all_its_answers(group_by, weight_by, toy):
    options = {"baseline": {"group_by": group_by, "weight_by": weight_by}, "group": {"size": 2}}
    learner = mlrl_learners.make("magrpo", agents=("a", "b"), **merge_options(SMALL, options))
    metrics = learner.update(toy.play(learner, max_turns=2))
    assert metrics["a/grad_norm"] > 0.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"loss": {"ratio_cap": 0.5}}, "loss.ratio_cap must be at least 1, got 0.5"),
        ({"loss": {"kind": "grpo", "ratio_cap": 1.1}}, r"loss.ratio_cap must be above 1 \+ loss"),
        ({"loss": {"surrogate": "cispo", "clip_low": 0.1}}, "clip_low 0.1 means nothing with"),
        ({"loss": {"surrogate": "cispo", "kind": "gspo"}}, "set loss.kind token_mean"),
        ({"loss": {"surrogate": "tis"}}, "loss.surrogate must be clip or cispo, got 'tis'"),
        ({"importance": {"cap": 2.0}}, "cap 2.0 means nothing with importance.correction none"),
        (
            {"importance": {"correction": "token_mask", "cap": 0.5}},
            "importance.cap must be at least 1, got 0.5",
        ),
        (
            {"importance": {"correction": "token_mask", "veto": 1.0}},
            r"importance.veto must be in \[0, 1\), got 1.0",
        ),
        ({"penalty": {"kl_weighted": True}}, "kl_weighted True means nothing with kl_coef 0"),
        (
            {"penalty": {"kl_coef": 0.1, "kl_in": "reward", "kl_weighted": True}},
            "kl_weighted True means nothing with kl_in reward",
        ),
        ({"penalty": {"entropy_coef": -1.0}}, "entropy_coef must be at least 0, got -1.0"),
        (
            {"penalty": {"overlong": "soft", "overlong_penalty": 1.0}},
            "overlong_buffer must be above 0 for overlong soft",
        ),
        (
            {
                "penalty": {"overlong": "soft", "overlong_penalty": 1.0, "overlong_buffer": 9},
                "sampling": {"max_new_tokens": 8},
            },
            "overlong_buffer must be at most sampling.max_new_tokens, 8, got 9",
        ),
        (
            {"baseline": {"kind": "none", "group_by": "task"}},
            "group_by task takes baseline.kind mean, got none",
        ),
        (
            {"baseline": {"weight_by": "trajectory"}},
            "weight_by trajectory means nothing with group_by node",
        ),
    ],
)
def test_options_without_effect_or_out_of_range_are_one_line(options, message):
    with pytest.raises(ConfigError, match=message) as error:
        build_config(MagrpoConfig, options)
    assert "\n" not in str(error.value)
