import math
import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlrl_learners.functional.token_gae import (
    TokenFuture,
    token_advantages,
    token_rewards,
    turn_future,
)

numbers, shares = st.floats(-3, 3), st.floats(0, 1)
answers = st.lists(st.tuples(numbers, numbers), min_size=1, max_size=6)  # reward, value


@st.composite
def discounts(draw):
    return {name: draw(shares) for name in ("gae_lambda", "gamma", "turn_gamma")}


def slow_advantages(rewards, values, future, *, gae_lambda, gamma, turn_gamma):
    """A_t = sum over l of (gamma lambda)^l delta_(t + l), as in equation 16."""
    size = len(rewards)
    found = []
    for t in range(size):
        total = 0.0
        for k in range(t, size):
            last = k == size - 1
            after = turn_gamma * future.value if last else gamma * values[k + 1]
            delta = rewards[k] + after - values[k]
            if last:
                delta += turn_gamma * gae_lambda * future.advantage
            total += (gamma * gae_lambda) ** (k - t) * delta
        found.append(total)
    return found


@given(answer=answers, options=discounts(), value=numbers, advantage=numbers)
def test_advantages_equal_a_slow_reference(answer, options, value, advantage):
    rewards, values = (list(column) for column in zip(*answer, strict=True))
    future = TokenFuture(value, advantage)
    found = token_advantages(rewards, values, future, **options)
    expected = slow_advantages(rewards, values, future, **options)
    assert found == pytest.approx(expected, abs=1e-9)


@given(reward=numbers, kl=st.lists(shares, min_size=1, max_size=6), coef=shares)
def test_rewards_of_tokens_equal_a_slow_reference(reward, kl, coef):
    found = token_rewards(reward, kl, coef)
    expected = [-coef * x + (reward if k == len(kl) - 1 else 0.0) for k, x in enumerate(kl)]
    assert found == pytest.approx(expected)
    assert math.fsum(found) == pytest.approx(reward - coef * math.fsum(kl))


@given(answer=answers)
def test_without_values_and_discounts_every_token_has_the_return_from_it_on(answer):
    rewards = [reward for reward, _ in answer]
    found = token_advantages(rewards, [0.0] * len(rewards), gae_lambda=1.0)
    assert found == pytest.approx([math.fsum(rewards[t:]) for t in range(len(rewards))])


@given(answer=answers, more=answers, options=discounts())
def test_two_turns_are_one_sequence_if_the_turn_has_the_discount_of_a_token(answer, more, options):
    options["turn_gamma"] = options["gamma"]
    first, second = (list(zip(*part, strict=True)) for part in (answer, more))
    later = token_advantages(*second, **options)
    future = turn_future([second[1][0]], [later[0]])
    found = token_advantages(*first, future, **options) + later
    whole = token_advantages(first[0] + second[0], first[1] + second[1], **options)
    assert found == pytest.approx(whole, abs=1e-9)


def test_a_future_is_the_mean_over_the_answers_to_the_next_prompt():
    assert turn_future([2.0, 2.0], [1.0, -3.0]) == TokenFuture(2.0, -1.0)
    assert turn_future([], []) == TokenFuture()


def test_a_token_is_charged_for_divergence_after_it_and_not_before_it():
    charges = token_advantages(token_rewards(0.0, [1.0, 0.0, 2.0], 0.5), [0.0] * 3, gae_lambda=1.0)
    assert charges == [-1.5, -1.0, -1.0]


def gradient_of_the_last_token(draw, *, by_token):
    """One answer of 8 fair tokens, paid by the first one; the score of a token is it minus 1/2.

    The critic is exact: 1/2 before the first token, and the first token itself afterwards.
    """
    tokens = [draw.randint(0, 1) for _ in range(8)]
    if by_token:
        values = [0.5] + [float(tokens[0])] * 7
        rewards = token_rewards(float(tokens[0]), [0.0] * 8, 0.0)
        advantage = token_advantages(rewards, values, gae_lambda=0.95)
    else:
        advantage = [tokens[0] - 0.5] * 8
    return [(token - 0.5) * a for token, a in zip(tokens, advantage, strict=True)]


def test_where_an_early_token_decides_later_tokens_have_no_noise():
    """The first token's gradient is 1/4 in both; by turn, seven others add noise of its size."""
    spreads = {}
    for by_token in (True, False):
        draw = random.Random(0)
        rows = [gradient_of_the_last_token(draw, by_token=by_token) for _ in range(500)]
        first = [row[0] for row in rows]
        assert statistics.fmean(first) == pytest.approx(0.25, abs=1e-9)
        spreads[by_token] = statistics.pstdev(row[-1] for row in rows)
    assert spreads[True] == 0.0
    assert spreads[False] > 0.2
