"""Clips of the importance ratio beyond that of PPO, and the KL term of tokens from old weights."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mlrl_learners.functional.losses import (
    cispo_loss,
    kl_estimate,
    kl_of_old_samples,
    policy_loss,
)

LOW, HIGH = 0.2, 0.28
tokens = st.lists(
    st.tuples(st.floats(-4, -0.01), st.floats(-4, -0.01), st.floats(-2, 2), st.floats(0.01, 1)),
    min_size=1,
    max_size=6,
)  # log pi, log pi_old, advantage, weight


def tensors(batch):
    new, old, advantages, weights = (
        torch.tensor(column, dtype=torch.float64) for column in zip(*batch, strict=True)
    )
    return new.requires_grad_(), old, advantages, weights


def clipped(batch, **options):
    new, old, advantages, weights = tensors(batch)
    rows = torch.arange(len(batch))
    options = {"clip_low": LOW, "clip_high": HIGH, **options}
    return policy_loss(new, old, advantages, weights, rows, **options), new


def slow_dual_clip(ratio, advantage, cap):
    """Return max(min(s1, s2), c * A) for A < 0, and min(s1, s2) otherwise."""
    smaller = min(ratio * advantage, min(max(ratio, 1 - LOW), 1 + HIGH) * advantage)
    return max(smaller, cap * advantage) if advantage < 0 else smaller


def slow_two_sided_clip(ratio, advantage, cap):
    """Return min(min(rho, delta) * A, clip(rho) * A)."""
    return min(min(ratio, cap) * advantage, min(max(ratio, 1 - LOW), 1 + HIGH) * advantage)


@pytest.mark.parametrize("reference", [slow_dual_clip, slow_two_sided_clip])
@given(batch=tokens, cap=st.floats(1.3, 6))
def test_a_ratio_cap_is_the_dual_clip_and_the_two_sided_clip(reference, batch, cap):
    expected = -sum(w * reference(math.exp(n - o), a, cap) for n, o, a, w in batch)
    assert float(clipped(batch, ratio_cap=cap)[0].loss.detach()) == pytest.approx(expected)


@given(batch=tokens)
def test_a_cap_above_all_ratios_changes_no_bit(batch):
    without, new = clipped(batch)
    capped, other = clipped(batch, ratio_cap=1e9)
    without.loss.backward()
    capped.loss.backward()
    assert float(without.loss.detach()) == float(capped.loss.detach())
    assert new.grad.tolist() == other.grad.tolist()
    assert int(without.clipped) == int(capped.clipped)


@pytest.mark.parametrize(
    ("ratio", "advantage", "gradient"),
    [(1.1, 1.0, -1.1), (1.27, 1.0, -1.27), (1.3, 1.0, 0.0), (9.0, 1.0, 0.0), (0.5, 1.0, -0.5),
     (0.5, -1.0, 0.0), (0.9, -1.0, 0.9), (1.3, -1.0, 1.3), (2.9, -1.0, 2.9), (3.1, -1.0, 0.0)],
)  # fmt: skip
def test_gradients_with_clip_higher_and_a_cap_of_three(ratio, advantage, gradient):
    result, new = clipped([(-2.0 + math.log(ratio), -2.0, advantage, 1.0)], ratio_cap=3.0)
    result.loss.backward()
    assert float(new.grad) == pytest.approx(gradient)
    assert bool(result.clipped) == (gradient == 0.0)


@given(batch=tokens, cap=st.floats(1, 6))
def test_cispo_equals_a_slow_reference(batch, cap):
    new, old, advantages, weights = tensors(batch)
    result = cispo_loss(new, old, advantages, weights, ratio_cap=cap)
    expected = -sum(w * min(math.exp(n - o), cap) * a * n for n, o, a, w in batch)
    assert float(result.loss.detach()) == pytest.approx(expected)
    assert int(result.clipped) == sum(math.exp(n - o) > cap for n, o, _, _ in batch)


@pytest.mark.parametrize(
    ("ratio", "advantage", "gradient"),
    [(0.1, 1.0, -0.1), (1.0, 1.0, -1.0), (4.0, 1.0, -4.0), (50.0, 1.0, -5.0), (50.0, -1.0, 5.0)],
)
def test_cispo_keeps_a_bounded_gradient_at_every_ratio(ratio, advantage, gradient):
    new, old, advantages, weights = tensors([(-4.0 + math.log(ratio), -4.0, advantage, 1.0)])
    cispo_loss(new, old, advantages, weights).loss.backward()
    assert float(new.grad) == pytest.approx(gradient)


@given(batch=tokens, cap=st.floats(1, 6))
def test_at_the_sampling_policy_cispo_has_the_gradient_of_the_surrogate(batch, cap):
    same = [(old, old, advantage, weight) for _, old, advantage, weight in batch]
    result, new = clipped(same)
    result.loss.backward()
    other, old, advantages, weights = tensors(same)
    cispo_loss(other, old, advantages, weights, ratio_cap=cap).loss.backward()
    assert other.grad.tolist() == pytest.approx(new.grad.tolist())


# The expectations below are sums over a vocabulary of four tokens, without sampling noise.
LOGITS, OLD, REFERENCE = (
    torch.tensor(row, dtype=torch.float64)
    for row in ([0.5, -0.3, 0.1, 0.9], [-0.4, 0.6, 0.2, 0.1], [0.2, 0.1, -0.8, 0.3])
)


def exact_kl(logits):
    policy = logits.log_softmax(-1)
    return (policy.exp() * (policy - REFERENCE.log_softmax(-1))).sum()


def expected_estimate(logits, old, kind, *, with_ratio):
    policy, sampled = logits.log_softmax(-1), old.log_softmax(-1)
    reference = REFERENCE.log_softmax(-1)
    if with_ratio:
        values = kl_of_old_samples(policy, sampled, reference, kind)
    else:
        values = kl_estimate(policy, reference, kind)
    return (sampled.exp() * values).sum()


def gradients(kind, old, *, with_ratio):
    logits = LOGITS.clone().requires_grad_()
    (right,) = torch.autograd.grad(exact_kl(logits), logits)
    estimate = expected_estimate(logits, old, kind, with_ratio=with_ratio)
    (found,) = torch.autograd.grad(estimate, logits)
    return right, found


@pytest.mark.parametrize("kind", ["k1", "k3"])
@pytest.mark.parametrize("old", [OLD, LOGITS])
def test_with_the_ratio_value_and_gradient_are_those_of_the_divergence(kind, old):
    value = expected_estimate(LOGITS, old, kind, with_ratio=True)
    assert float(value) == pytest.approx(float(exact_kl(LOGITS)))
    right, found = gradients(kind, old, with_ratio=True)
    assert found.tolist() == pytest.approx(right.tolist())


@pytest.mark.parametrize(
    ("kind", "old"), [("k1", OLD), ("k3", OLD), ("k1", LOGITS), ("k3", LOGITS)]
)
def test_without_the_ratio_the_gradient_is_another_one(kind, old):
    right, found = gradients(kind, old, with_ratio=False)
    assert float((found - right).norm()) > 0.1 * float(right.norm())


@given(st.floats(-4, 0), st.floats(-4, 0), st.floats(-4, 0))
def test_the_weighted_estimate_equals_a_slow_reference(new, old, reference):
    delta = reference - new
    for kind, value in (("k1", -delta), ("k2", delta**2 / 2), ("k3", math.expm1(delta) - delta)):
        arguments = (torch.tensor([x], dtype=torch.float64) for x in (new, old, reference))
        found = kl_of_old_samples(*arguments, kind)
        assert float(found) == pytest.approx(math.exp(new - old) * value, abs=1e-9)
