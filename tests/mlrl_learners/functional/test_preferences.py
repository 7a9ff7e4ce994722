import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mlrl_learners.functional.preferences import (
    largest_gap_pairs,
    mean_logprobs,
    preference_loss,
)

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


pairs_of_answers = st.lists(
    st.tuples(st.floats(-60, -0.1), st.integers(1, 30), st.floats(-60, -0.1), st.integers(1, 30)),
    min_size=1,
    max_size=5,
)  # log pi(y+), |y+|, log pi(y-), |y-|


@given(pairs_of_answers, st.floats(0.5, 5), st.floats(0, 3))
def test_simpo_equals_a_slow_reference(pairs, beta, target):
    better, longer, worse, other = (
        torch.tensor(column, dtype=torch.float64) for column in zip(*pairs, strict=True)
    )
    margins = mean_logprobs(better, longer) - mean_logprobs(worse, other)
    found = preference_loss(margins, beta=beta, target_margin=target)
    expected = [
        math.log1p(math.exp(-(beta * y / n - beta * z / m - target))) for y, n, z, m in pairs
    ]
    assert found.tolist() == pytest.approx(expected, rel=1e-9, abs=1e-9)


@given(
    st.floats(-50, 50), st.floats(0.01, 2), st.sampled_from(KINDS), st.floats(0, 0.49),
    st.floats(0, 3),
)  # fmt: skip
def test_a_target_margin_shifts_the_margin(margin, beta, kind, smoothing, target):
    found = preference_loss(
        torch.tensor([margin], dtype=torch.float64),
        beta=beta,
        kind=kind,
        label_smoothing=smoothing,
        target_margin=target,
    )
    expected = slow_loss(margin - target / beta, beta, kind, smoothing)
    assert float(found) == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_without_a_target_margin_no_bit_changes():
    margins = torch.linspace(-3, 3, 101)
    before = -torch.nn.functional.logsigmoid(0.1 * margins)
    assert preference_loss(margins, beta=0.1, target_margin=0.0).tolist() == before.tolist()


def test_a_longer_answer_of_equal_likelihood_per_token_has_no_margin():
    logprobs, lengths = torch.tensor([-2.0, -20.0]), torch.tensor([4.0, 40.0])
    assert float(mean_logprobs(logprobs, lengths).diff()) == 0.0
    assert float(logprobs.diff()) == -18.0


def train_pair(likelihood_weight):
    """Return the log-probability of the better of two answers after training on their pair.

    The vocabulary has two answers that share a feature, and one that nobody compares.
    """
    logits = torch.nn.Parameter(torch.zeros(2, dtype=torch.float64))
    features = torch.tensor([[1.0, 0.2], [1.0, -1.0], [0.0, 0.0]], dtype=torch.float64)
    optimizer = torch.optim.SGD([logits], lr=0.5)
    with torch.no_grad():
        logits += torch.tensor([1.0, 1.0])
    start = float((features @ logits).log_softmax(0)[0])
    for _ in range(200):
        logprobs = (features @ logits).log_softmax(0)
        loss = preference_loss(logprobs[:1] - logprobs[1:2], beta=1.0).sum()
        loss = loss - likelihood_weight * mean_logprobs(logprobs[:1], torch.ones(1)).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return float((features @ logits).log_softmax(0)[0]) - start


def test_the_likelihood_term_keeps_the_better_answer_likely():
    assert train_pair(1.0) > train_pair(0.0)


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
     ([0.1, 0.9, 0.5, 0.3], [(1, 0), (2, 3)]), ([0.2, 0.9, 0.2, 0.2], [(1, 3)]),
     ([0.3, 0.1 + 0.2], []), ([0.9, 0.2 + (0.9 - 0.2), 0.0], [(0, 2)]), ([1e-6, 0.0], [(0, 1)]),
     ([3e9, 3e9 + 1], []), ([-3e6, -3e6 - 1], [(0, 1)])],
)  # fmt: skip
def test_the_best_goes_with_the_worst_and_equals_are_left_out(scores, pairs):
    assert largest_gap_pairs(scores, 16) == pairs
