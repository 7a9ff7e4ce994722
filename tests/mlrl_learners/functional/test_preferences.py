import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mlrl_learners.functional.preferences import largest_gap_pairs, preference_loss

KINDS = ["sigmoid", "hinge", "ipo"]


def slow_loss(margin, beta, kind, smoothing):
    """The formulas, a number at a time."""

    def one(h):
        if kind == "ipo":
            return (h - 1 / (2 * beta)) ** 2
        if kind == "hinge":
            return max(0.0, 1 - beta * h)
        z = -beta * h
        return z + math.log1p(math.exp(-z)) if z > 0 else math.log1p(math.exp(z))

    return (1 - smoothing) * one(margin) + smoothing * one(-margin)


@given(
    st.lists(st.floats(-50, 50), min_size=1, max_size=8),
    st.floats(0.01, 2.0),
    st.sampled_from(KINDS),
    st.floats(0, 0.49),
)
def test_losses_equal_a_slow_reference(margins, beta, kind, smoothing):
    tensor = torch.tensor(margins, dtype=torch.float64)
    found = preference_loss(tensor, beta=beta, kind=kind, label_smoothing=smoothing)
    expected = [slow_loss(margin, beta, kind, smoothing) for margin in margins]
    assert found.tolist() == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(
    ("kind", "margin", "loss"),
    [("sigmoid", 0.0, math.log(2)), ("hinge", 0.0, 1.0), ("hinge", 10.0, 0.0), ("ipo", 5.0, 0.0)],
)
def test_losses_at_points_known_by_hand(kind, margin, loss):
    found = preference_loss(torch.tensor([margin]), beta=0.1, kind=kind)
    assert found.tolist() == pytest.approx([loss], abs=1e-6)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("margin", [-1e4, 1e4])
def test_far_margins_stay_finite_with_a_finite_gradient(kind, margin):
    margins = torch.tensor([margin], requires_grad=True)
    loss = preference_loss(margins, beta=0.1, kind=kind, label_smoothing=0.1)
    loss.sum().backward()
    assert math.isfinite(float(loss.detach()))
    assert math.isfinite(float(margins.grad))


def slow_pairs(scores, num_pairs):
    left = list(enumerate(scores))
    pairs = []
    while len(left) > 1 and len(pairs) < num_pairs:
        best = max(left, key=lambda pair: (pair[1], -pair[0]))
        worst = min((p for p in left if p != best), key=lambda pair: (pair[1], -pair[0]))
        if best[1] <= worst[1]:
            break
        pairs.append((best[0], worst[0]))
        left = [pair for pair in left if pair not in (best, worst)]
    return pairs


@given(st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), max_size=12), st.integers(1, 8))
def test_pairs_equal_a_slow_reference(scores, num_pairs):
    assert largest_gap_pairs(scores, num_pairs) == slow_pairs(scores, num_pairs)


@pytest.mark.parametrize(
    ("scores", "pairs"),
    [([], []), ([1.0], []), ([0.5, 0.5], []), ([0.0, 1.0], [(1, 0)]),
     ([0.1, 0.9, 0.5, 0.3], [(1, 0), (2, 3)]), ([0.2, 0.9, 0.2, 0.2], [(1, 3)])],
)  # fmt: skip
def test_the_best_goes_with_the_worst_and_equals_are_left_out(scores, pairs):
    assert largest_gap_pairs(scores, 16) == pairs
