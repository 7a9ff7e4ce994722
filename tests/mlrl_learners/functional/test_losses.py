import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mlrl_learners.functional.losses import kl_estimate, policy_loss, token_weights, value_loss

KINDS = ["grpo", "token_mean", "dr_grpo", "sequence", "gspo"]
MAX_TOKENS = 10


@st.composite
def batches(draw):
    """Rows of (new log-probs, old log-probs, advantage, weight)."""
    logprob = st.floats(-3, -0.01)
    rows = []
    for _ in range(draw(st.integers(1, 4))):
        length = draw(st.integers(1, 5))
        new = draw(st.lists(logprob, min_size=length, max_size=length))
        old = draw(st.lists(logprob, min_size=length, max_size=length))
        rows.append((new, old, draw(st.floats(-2, 2)), draw(st.floats(0.01, 2))))
    return rows


def slow_loss(rows, kind, low, high):
    """The formulas, one token at a time."""
    tokens = sum(weight * len(new) for new, _, _, weight in rows)
    num_rows = sum(weight for *_, weight in rows)
    total = 0.0
    for new, old, advantage, weight in rows:
        length = len(new)
        mean_delta = sum(n - o for n, o in zip(new, old, strict=True)) / length
        row = 0.0
        for n, o in zip(new, old, strict=True):
            ratio = math.exp(mean_delta if kind == "gspo" else n - o)
            clipped = min(max(ratio, 1 - low), 1 + high)
            row += min(ratio * advantage, clipped * advantage)
        divisor = {
            "grpo": num_rows * length,
            "gspo": num_rows * length,
            "token_mean": tokens,
            "dr_grpo": num_rows * MAX_TOKENS,
            "sequence": num_rows,
        }[kind]
        total -= weight * row / divisor
    return total


def fast_loss(rows, kind, low=0.2, high=0.2, total=None):
    total = total or rows
    all_weights = token_weights(
        [len(row[0]) for row in total],
        kind,
        row_weights=[(*row, 1.0)[3] for row in total],
        max_tokens=MAX_TOKENS,
    )
    weights = [all_weights[total.index(row)] for row in rows]
    repeats = torch.tensor([len(row[0]) for row in rows])

    def per_token(values):
        return torch.tensor(values, dtype=torch.float64).repeat_interleave(repeats)

    new = torch.tensor([x for row in rows for x in row[0]], dtype=torch.float64, requires_grad=True)
    old = torch.tensor([x for row in rows for x in row[1]], dtype=torch.float64)
    result = policy_loss(
        new,
        old,
        per_token([row[2] for row in rows]),
        per_token(weights),
        torch.arange(len(rows)).repeat_interleave(repeats),
        kind=kind,
        clip_low=low,
        clip_high=high,
    )
    return result.loss, new


@pytest.mark.parametrize("kind", KINDS)
@given(rows=batches(), low=st.floats(0, 0.9), high=st.floats(0, 2))
def test_loss_equals_a_slow_reference(kind, rows, low, high):
    loss, _ = fast_loss(rows, kind, low, high)
    assert float(loss.detach()) == pytest.approx(slow_loss(rows, kind, low, high), abs=1e-9)


@pytest.mark.parametrize("kind", KINDS)
@given(rows=batches())
def test_splitting_into_micro_batches_leaves_loss_and_gradient_equal(kind, rows):
    whole, new = fast_loss(rows, kind)
    whole.backward()
    parts = [fast_loss([row], kind, total=rows) for row in rows]
    for loss, _ in parts:
        loss.backward()
    assert float(sum(loss.detach() for loss, _ in parts)) == pytest.approx(
        float(whole.detach()), abs=1e-12
    )
    assert torch.allclose(torch.cat([part.grad for _, part in parts]), new.grad, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_zero_advantages_give_a_zero_gradient(kind):
    loss, new = fast_loss([([-1.0, -0.5], [-0.9, -0.6], 0.0), ([-2.0], [-1.0], 0.0)], kind)
    loss.backward()
    assert float(new.grad.abs().max()) == 0.0


def test_an_upper_clip_stops_the_gradient_of_a_good_answer_that_grew_likely():
    loss, new = fast_loss([([-0.1], [-1.0], 1.0)], "grpo", high=0.2)
    loss.backward()
    assert float(new.grad) == 0.0


def test_asymmetric_clipping_lets_more_growth_through():
    loss, new = fast_loss([([-0.75], [-1.0], 1.0)], "grpo", low=0.2, high=0.5)
    loss.backward()
    assert float(new.grad) == pytest.approx(-math.exp(0.25))


def test_the_gradient_at_the_sampling_policy_is_minus_advantage_times_weight():
    loss, new = fast_loss([([-1.0, -2.0], [-1.0, -2.0], 3.0)], "sequence")
    loss.backward()
    assert new.grad.tolist() == pytest.approx([-3.0, -3.0])


@given(logprob=st.floats(-5, 0), reference=st.floats(-5, 0))
def test_kl_estimates_equal_their_formulas(logprob, reference):
    delta = reference - logprob
    expected = {"k1": -delta, "k2": delta**2 / 2, "k3": math.exp(delta) - delta - 1}
    for kind, value in expected.items():
        pi = torch.tensor([logprob], dtype=torch.float64)
        ref = torch.tensor([reference], dtype=torch.float64)
        assert float(kl_estimate(pi, ref, kind)) == pytest.approx(value, abs=1e-9)


values = st.floats(-5, 5)


@given(value=values, old=values, target=values, clip=st.floats(0.01, 9) | st.just(math.inf))
def test_value_loss_equals_a_slow_reference(value, old, target, clip):
    clipped = min(max(value, old - clip), old + clip)
    expected = max((value - target) ** 2, (clipped - target) ** 2) / 2
    found = value_loss(
        *(torch.tensor([x], dtype=torch.float64) for x in (value, old, target)), clip
    )
    assert float(found) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(("old", "moves"), [(0.0, False), (0.25, True), (0.5, True)])
def test_a_value_is_clipped_around_what_it_was_not_around_what_it_is(old, moves):
    value = torch.tensor([0.3], requires_grad=True)
    value_loss(value, torch.tensor([old]), torch.tensor([1.0]), 0.2).sum().backward()
    assert bool(value.grad.abs() > 0) == moves


def test_a_value_that_overshot_is_pulled_back_however_far_it_has_moved():
    value = torch.tensor([3.0], requires_grad=True)
    value_loss(value, torch.tensor([0.0]), torch.tensor([1.0]), 0.2).sum().backward()
    assert float(value.grad) == pytest.approx(2.0)
