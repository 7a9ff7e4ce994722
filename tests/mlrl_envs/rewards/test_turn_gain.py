import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlrl_envs.rewards.turn_gain import ALREADY_EARNED, best_quality, pay_gain
from mlrl_envs.types import Score, Turn

PARTS = st.dictionaries(st.sampled_from("abc"), st.floats(0, 1 / 3), min_size=1)


def _play(parts_of_turns):
    turns: list[Turn] = []
    for parts in parts_of_turns:
        paid = {"agent": pay_gain(parts, turns, "agent")}
        turns.append(Turn({"agent": ""}, Score(paid, solved=False)))
    return turns


def test_first_turn_is_paid_in_full():
    assert pay_gain({"a": 0.2, "b": 0.3}, (), "agent") == {"a": 0.2, "b": 0.3}


def test_later_turn_shows_what_was_earned_before():
    turns = _play([{"a": 0.2}, {"a": 0.5}])
    assert turns[1].score.components["agent"] == {"a": 0.5, ALREADY_EARNED: -0.2}


def test_worse_turn_earns_nothing_and_is_forgotten():
    turns = _play([{"a": 0.5}, {"a": 0.2}, {"a": 0.6}])
    rewards = [turn.score.reward("agent") for turn in turns]
    assert rewards == pytest.approx([0.5, 0.0, 0.1])


@given(st.lists(PARTS, min_size=1, max_size=6))
def test_episode_pays_its_best_quality(parts_of_turns):
    turns = _play(parts_of_turns)
    rewards = [turn.score.reward("agent") for turn in turns]
    best = max(math.fsum(parts.values()) for parts in parts_of_turns)
    assert math.fsum(rewards) == pytest.approx(best, abs=1e-9)
    assert best_quality(turns, "agent") == pytest.approx(best, abs=1e-9)
    assert min(rewards) >= 0.0
