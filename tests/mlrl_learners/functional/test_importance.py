import itertools
import math

import pytest
import torch
from hypothesis import assume, example, given
from hypothesis import strategies as st

from mlrl_learners.errors import ConfigError
from mlrl_learners.functional.importance import importance_weights

MODES = ["token_truncate", "token_mask", "sequence_truncate", "sequence_mask"]
logprobs = st.floats(-6, -0.01)


@st.composite
def batches(draw):
    """Rows of pairs (log pi_old, log q)."""
    pairs = st.tuples(logprobs, logprobs)
    return draw(st.lists(st.lists(pairs, min_size=1, max_size=4), min_size=1, max_size=4))


def slow_weights(rows, mode, cap, veto):
    """The formulas, one token at a time."""
    found = []
    for row in rows:
        product = math.exp(math.fsum(old - q for old, q in row))
        for old, q in row:
            ratio = math.exp(old - q) if mode.startswith("token") else product
            if mode.endswith("truncate"):
                weight = min(ratio, cap)
            else:
                weight = ratio if 1 / cap <= ratio <= cap else 0.0
            if any(math.exp(o - p) < veto for o, p in row):
                weight = 0.0
            found.append(weight)
    return found


def fast_weights(rows, mode, cap=3.0, veto=0.0):
    old, sampler = (
        torch.tensor([pair[i] for row in rows for pair in row], dtype=torch.float64)
        for i in range(2)
    )
    numbers = torch.arange(len(rows)).repeat_interleave(torch.tensor([len(row) for row in rows]))
    return importance_weights(old, sampler, numbers, mode=mode, cap=cap, veto=veto)


@pytest.mark.parametrize("mode", MODES)
@given(rows=batches(), cap=st.floats(1, 10), veto=st.sampled_from([0.0, 1e-4, 0.1]))
@example(rows=[[(-6.0, -0.5)] * 4], cap=1.0, veto=0.0)  # a product below exp(-20)
@example(rows=[[(-2.0, -6.0), (-6.0, -2.0)]], cap=1.0, veto=0.0)  # a product of exactly 1
def test_weights_equal_a_slow_reference(mode, rows, cap, veto):
    # Where rounding decides on which side of the cap a ratio is, both answers are right.
    tokens = [[old - q for old, q in row] for row in rows]
    logs = [*map(math.fsum, tokens), *itertools.chain(*tokens)]
    assume(not any(log and abs(abs(log) - math.log(cap)) < 1e-9 for log in logs))
    found = fast_weights(rows, mode, cap, veto).weights.tolist()
    assert found == pytest.approx(slow_weights(rows, mode, cap, veto), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("mode", MODES)
@given(rows=batches())
def test_a_sampler_that_is_the_trainer_has_weights_of_exactly_one(mode, rows):
    same = [[(old, old) for old, _ in row] for row in rows]
    found = fast_weights(same, mode, veto=0.5)
    assert found.weights.tolist() == [1.0] * len(found.weights)
    assert not found.cut.any()


@pytest.mark.parametrize("mode", MODES)
@given(rows=batches())
def test_weights_of_an_answer_do_not_depend_on_the_other_answers(mode, rows):
    alone = torch.cat([fast_weights([row], mode, veto=0.1).weights for row in rows])
    assert fast_weights(rows, mode, veto=0.1).weights.tolist() == alone.tolist()


def test_one_token_below_the_threshold_vetoes_its_answer_and_no_other():
    rows = [[(-1.0, -1.0), (-11.0, -1.0)], [(-1.0, -1.0)]]
    found = fast_weights(rows, "token_truncate", veto=1e-4)
    assert found.weights.tolist() == [0.0, 0.0, 1.0]
    assert found.vetoed.tolist() == found.cut.tolist() == [True, True, False]


def test_a_product_over_a_long_answer_stays_finite():
    rows = [[(-0.1, -5.0)] * 500, [(-5.0, -0.1)] * 500]
    weights = fast_weights(rows, "sequence_truncate", cap=math.inf).weights
    assert bool(torch.isfinite(weights).all())


@pytest.mark.parametrize(("option", "value"), [("cap", 0.9), ("veto", 1.0), ("veto", -0.1)])
def test_values_outside_their_range_are_refused_by_name(option, value):
    with pytest.raises(ConfigError, match=f"{option} must be .* got {value}"):
        fast_weights([[(-1.0, -1.0)]], "token_mask", **{option: value})


# A policy of two tokens over a vocabulary of three, and a sampler with perturbed logits. The
# gradient for the logits is the exact sum over all nine answers: no estimate has sampling noise.
LOGITS = torch.tensor([[0.0, 0.3, -0.2], [0.1, -0.4, 0.2]], dtype=torch.float64)
NOISE = torch.tensor([[0.9, -0.7, 0.1], [-0.8, 0.6, 0.4]], dtype=torch.float64)
ANSWERS = list(itertools.product(range(3), repeat=2))
OWN = [[0.0, 1.0, 0.3], [0.6, 0.0, 0.9]]  # what each token earns by itself
REWARDS = {
    "joint": dict(zip(ANSWERS, [0.0, 1.0, 0.2, 0.7, 0.0, 1.0, 0.3, 0.1, 0.9], strict=True)),
    "sum": {(first, second): OWN[0][first] + OWN[1][second] for first, second in ANSWERS},
}
BASELINES = {"joint": 0.4, "sum": 0.9}


def exact_gradient(sampler_logits, reward, mode=None, cap=3.0):
    """Return the expected REINFORCE gradient if answers come from the sampler."""
    logits = LOGITS.clone().requires_grad_()
    policy, sampler = logits.log_softmax(-1), sampler_logits.log_softmax(-1)
    total = torch.zeros((), dtype=torch.float64)
    for answer in ANSWERS:
        tokens = torch.tensor(answer)
        mine, theirs = policy[torch.arange(2), tokens], sampler[torch.arange(2), tokens]
        weights = torch.ones(2, dtype=torch.float64)
        if mode:
            rows = torch.zeros(2, dtype=torch.long)
            weights = importance_weights(mine, theirs, rows, mode=mode, cap=cap).weights
        advantage = REWARDS[reward][answer] - BASELINES[reward]
        total = total + float(theirs.sum().exp()) * advantage * (weights * mine).sum()
    (gradient,) = torch.autograd.grad(total, logits)
    return gradient


def bias(reward, mode=None, cap=3.0, scale=1.0):
    right = exact_gradient(LOGITS, reward)
    found = exact_gradient(LOGITS + scale * NOISE, reward, mode, cap)
    return float((found - right).norm() / right.norm())


@pytest.mark.parametrize(("reward", "scale", "share"), [("joint", 0.5, 0.5), ("sum", 1.0, 0.38)])
def test_without_weights_a_perturbed_sampler_biases_the_gradient(reward, scale, share):
    assert bias(reward, scale=scale) > share


@pytest.mark.parametrize("reward", REWARDS)
def test_weights_of_whole_answers_without_a_cap_remove_the_bias(reward):
    assert bias(reward, "sequence_truncate", cap=math.inf) < 1e-9


def test_weights_of_tokens_remove_the_bias_where_each_token_earns_its_own_reward():
    assert bias("sum", "token_truncate", cap=3.0) < 1e-9


def test_weights_of_tokens_remove_little_of_the_bias_where_tokens_earn_a_reward_together():
    """The other token was sampled from another distribution, too: 0.51 becomes 0.43, not 0."""
    without, with_weights = bias("joint", scale=0.5), bias("joint", "token_truncate", scale=0.5)
    assert 0.7 * without < with_weights < 0.9 * without
    assert bias("joint", "sequence_truncate", scale=0.5) < 1e-9


@pytest.mark.parametrize("reward", REWARDS)
def test_a_lower_cap_has_more_bias(reward):
    biases = [bias(reward, "sequence_truncate", cap) for cap in (1.0, 1.5, 2.0, 3.0, math.inf)]
    assert biases == sorted(biases, reverse=True)


def test_masking_has_more_bias_than_truncating_at_the_same_cap():
    for cap in (1.5, 2.0, 3.0):
        masked, truncated = (
            bias("sum", mode, cap) for mode in ("sequence_mask", "sequence_truncate")
        )
        assert masked > truncated
