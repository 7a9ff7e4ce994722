import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mlrl_learners.algorithms.answer_loss import surrogate
from mlrl_learners.algorithms.magrpo import MagrpoConfig
from mlrl_learners.algorithms.policy_gradient_config import PolicyGradientConfig
from mlrl_learners.algorithms.policy_update import (
    AnswerSample,
    answer_weights,
    mean_divisor,
    per_token,
)
from mlrl_learners.config.groups import build_config
from mlrl_learners.errors import ConfigError, NumericsError
from mlrl_learners.functional.losses import check_finite
from mlrl_learners.functional.minibatches import minibatches
from mlrl_learners.types import Completion, JointStep, Node, Rollout


def answer(length, logprob=-1.0):
    return Completion("", (1,), (2,) * length, (logprob,) * length)


@given(rows=st.integers(1, 20), parts=st.integers(1, 8), epochs=st.integers(1, 3))
def test_every_epoch_trains_on_every_row_once_in_parts_of_like_size(rows, parts, epochs):
    found = list(minibatches(range(rows), epochs=epochs, number=parts, generator=torch.Generator()))
    steps = min(parts, rows)
    assert len(found) == steps * epochs
    for epoch in range(epochs):
        mine = found[epoch * steps : (epoch + 1) * steps]
        assert sorted(row for part in mine for row in part) == list(range(rows))
        assert max(map(len, mine)) - min(map(len, mine)) <= 1


def test_minibatches_follow_the_generator_alone():
    def draw(seed):
        generator = torch.Generator().manual_seed(seed)
        return list(minibatches(range(9), epochs=1, number=3, generator=generator))

    assert draw(1) == draw(1) != draw(2)


def test_an_answers_value_is_repeated_for_its_tokens():
    assert per_token([1.0, 2.0], [answer(2), answer(3)]).tolist() == [1.0, 1.0, 2.0, 2.0, 2.0]


def test_a_surrogate_is_the_weighted_sum_of_ratio_times_advantage():
    completions, config, stats = (
        [answer(1), answer(3)],
        PolicyGradientConfig(),
        dict.fromkeys(("kl", "clipped", "tokens"), 0.0),
    )
    weights = answer_weights(completions, config)
    samples = [
        AnswerSample("a", completion, advantage, 1.0, weight)
        for completion, advantage, weight in zip(completions, [2.0, 4.0], weights, strict=True)
    ]
    loss = surrogate(torch.full((4,), -1.0), samples, config, stats)
    assert float(loss) == pytest.approx(-3.0)
    assert stats == {"kl": 0.0, "clipped": 0.0, "tokens": 4.0}


@pytest.mark.parametrize(
    ("options", "clips"),
    [
        ({}, (0.2, 0.2)),
        ({"loss": {"kind": "sequence"}}, (0.2, 0.2)),
        ({"loss": {"kind": "gspo"}}, (3e-4, 4e-4)),
        ({"loss": {"kind": "gspo", "clip_low": 0.1}}, (0.1, 4e-4)),
        ({"loss": {"clip_low": 0.0, "clip_high": 0.0}}, (0.0, 0.0)),
    ],
)
def test_ratios_count_as_far_as_was_said_or_as_the_loss_has_it(options, clips):
    assert build_config(PolicyGradientConfig, options).clips == clips


@pytest.mark.parametrize(
    ("options", "clips"),
    [
        ({}, (1.0, math.inf)),
        ({"loss": {"kind": "grpo"}}, (0.2, 0.2)),
        ({"loss": {"kind": "gspo"}}, (3e-4, 4e-4)),
        ({"loss": {"clip_high": 0.3}}, (1.0, 0.3)),
    ],
)
def test_the_published_loss_of_group_relative_methods_clips_nothing(options, clips):
    config = build_config(MagrpoConfig, options)
    assert config.clips == clips
    assert config.loss.kind == options.get("loss", {}).get("kind", "sequence")


def test_a_gspo_ratio_is_clipped_where_its_paper_clips_it():
    stats = {"clipped": 0.0, "tokens": 0.0}
    config = build_config(PolicyGradientConfig, {"loss": {"kind": "gspo"}})
    logprobs = torch.full((2,), -1.0 + 1e-3)  # the answers were drawn at -1 a token
    surrogate(logprobs, [AnswerSample("a", answer(2), 1.0, 1.0, 0.5)], config, stats)
    assert stats["clipped"] > 0


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_loss_that_is_not_finite_is_named(value):
    with pytest.raises(NumericsError, match="the loss of 'left' is"):
        check_finite(torch.tensor(value), "left")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"group": {"size": 0}}, r"group\.size must be at least 1, got 0"),
        ({"credit": {"gamma": 1.1}}, r"gamma must be in \[0, 1\], got 1.1"),
        ({"loss": {"clip_low": -0.1}}, r"clip_low must be in \[0, 1\], got -0.1"),
        ({"loss": {"clip_high": -1.0}}, "clip_high must be at least 0, got -1.0"),
    ],
)
def test_a_value_outside_its_range_is_named(options, message):
    with pytest.raises(ConfigError, match=message):
        build_config(PolicyGradientConfig, options)


def test_a_mean_over_answers_does_not_depend_on_the_agents_that_were_reached():
    def play(agent, ends, child=None):
        step = JointStep({agent: 0}, {"a": 1.0, "b": 1.0}, {}, {}, ends, False, child)
        return Node(0, {agent: "?"}, {agent: (answer(1),)}, (step,))

    whole = play("a", ends=False, child=play("b", ends=True))
    for root in (play("a", ends=True), whole):
        rollout = Rollout("", "", ("a", "b"), root)
        acted = {agent for node in root.walk() for agent in node.completions}
        samples = [AnswerSample(agent, answer(1), 0.0, 1.0) for agent in acted]
        assert mean_divisor([rollout], samples, PolicyGradientConfig(), {"a", "b"}) == 2
