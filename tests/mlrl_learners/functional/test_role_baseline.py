import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlrl_learners.functional.advantages import group_advantages
from mlrl_learners.functional.returns import AnswerGroup
from mlrl_learners.functional.role_baseline import RoleBaseline
from mlrl_learners.types import Completion


def group(agent, returns, weight=1.0):
    return AnswerGroup(agent, 0, tuple(Completion("") for _ in returns), tuple(returns), weight)


def test_an_agent_without_updates_has_no_baseline():
    assert RoleBaseline(0.9).of("a") == 0.0


def test_each_agent_has_an_average_of_its_own():
    baseline = RoleBaseline(0.75)
    baseline.add([group("a", [1.0, 3.0]), group("b", [-1.0])])
    baseline.add([group("a", [6.0])])
    corrected = (0.75 * 0.25 * 2 + 0.25 * 6) / (1 - 0.75**2)
    assert baseline.values == {"a": pytest.approx(corrected), "b": -1.0}


def test_the_first_update_weighs_no_more_than_the_next_ones():
    baseline = RoleBaseline(0.95)
    for paid in (1.0, 0.0, 0.0, 0.0):
        baseline.add([group("a", [paid])])
    assert baseline.of("a") == pytest.approx(0.95**3 * 0.05 / (1 - 0.95**4))  # 0.23, near 1 / 4


def test_an_agent_of_two_environments_has_an_average_in_each():
    baseline = RoleBaseline(0.75)
    baseline.add([replace(group("a", [2.0]), env_name="kuhn"), group("a", [4.0])])
    baseline.add([replace(group("a", [-2.0]), env_name="nim")])
    assert baseline.values == {"kuhn/a": 2.0, "a": 4.0, "nim/a": -2.0}


def test_returns_count_like_the_weights_of_their_nodes():
    baseline = RoleBaseline(0.5)
    baseline.add([group("a", [1.0, 1.0], 1.0), group("a", [4.0, 4.0], 0.5)])
    assert baseline.of("a") == pytest.approx((2 * 1 + 2 * 4 * 0.5) / 3)


updates = st.lists(
    st.lists(
        st.tuples(
            st.sampled_from("ab"),
            st.lists(st.floats(-2, 2), min_size=1, max_size=4),
            st.sampled_from([0.25, 1.0]),
        ),
        max_size=4,
    ),
    max_size=6,
)


@given(updates=updates, decay=st.floats(0, 0.99))
def test_averages_equal_a_slow_reference(updates, decay):
    baseline, moments, times = RoleBaseline(decay), {}, {}
    for drawn in updates:
        baseline.add([group(*each) for each in drawn])
        for agent in "ab":
            mine = [
                (value, weight) for who, some, weight in drawn for value in some if who == agent
            ]
            if mine:
                mean = sum(v * w for v, w in mine) / sum(w for _, w in mine)
                moments[agent] = decay * moments.get(agent, 0.0) + (1 - decay) * mean
                times[agent] = times.get(agent, 0) + 1
    expected = {agent: moments[agent] / (1 - decay ** times[agent]) for agent in moments}
    assert baseline.values == pytest.approx(expected)


def squared_errors(kind, seed):
    """Return errors of the REINFORCE gradient in a game whose seats are worth 2 and -2.

    A pick of 1 earns 0.1 more in either seat; at probability 1/2 the exact slope of the return in
    the logit is 0.025. One answer is given in each game, so that there is no group.
    """
    draw, baseline, found = random.Random(seed), RoleBaseline(0.95), []
    for update in range(40):
        games = [(role, draw.randrange(2)) for role in "ab" for _ in range(16)]
        paid = [(2.0 if role == "a" else -2.0) + 0.1 * pick for role, pick in games]
        slopes = [
            group_advantages([reward], kind, role_baseline=baseline.of(role))[0] * (pick - 0.5)
            for (role, pick), reward in zip(games, paid, strict=True)
        ]
        baseline.add([group(role, [r]) for (role, _), r in zip(games, paid, strict=True)])
        if update:  # the first one has no average to subtract
            found.append((sum(slopes) / len(slopes) - 0.025) ** 2)
    return sum(found) / len(found)


@pytest.mark.parametrize("seed", range(3))
def test_the_value_of_a_seat_adds_no_noise_to_gradients_of_single_answers(seed):
    assert squared_errors("role_ema", seed) < squared_errors("none", seed) / 100


def test_restored_averages_are_equal():
    baseline, again = RoleBaseline(0.5), RoleBaseline(0.5)
    baseline.add([group("a", [0.1, 0.7])])
    again.load_state_dict(baseline.state_dict())
    for each in (baseline, again):
        each.add([group("a", [0.3]), group("b", [0.2])])
    assert again.values == baseline.values
    assert again.state_dict() == baseline.state_dict()


def test_the_advantage_is_the_return_minus_the_average():
    assert group_advantages([1.0, -2.0], "role_ema", role_baseline=0.5) == [0.5, -2.5]
