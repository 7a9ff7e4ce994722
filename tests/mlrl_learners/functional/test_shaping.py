import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlrl_learners.errors import ConfigError
from mlrl_learners.functional.returns import sample_returns
from mlrl_learners.functional.shaping import history_rewards, mixed_rewards, shaped_reward
from mlrl_learners.types import Completion, JointStep, Node, Rollout

AGENTS = ("a", "b")
shares = st.floats(0, 1)


def chain(paid, turn=0, acts=AGENTS):
    """A node that leads on to the next turn; paid[t] are the rewards of turn t."""
    child = chain(paid, turn + 1) if turn + 1 < len(paid) else None
    rewards = dict(zip(AGENTS, paid[turn], strict=True))
    step = JointStep(
        dict.fromkeys(acts, 0), rewards, {}, {}, child is None, truncated=False, child=child
    )
    return Node(turn, dict.fromkeys(acts, ""), dict.fromkeys(acts, (Completion("x"),)), (step,))


def rollout(root):
    return Rollout("env", "task", AGENTS, root)


def rewards_by_turn(found):
    return [dict(node.steps[0].rewards) for node in found.root.walk()]


@given(paid=st.lists(st.tuples(shares, shares), min_size=1, max_size=4), strength=st.floats(0, 2))
def test_shaped_rewards_equal_a_slow_reference(paid, strength):
    for kind in ("quality", "margin"):
        found = rewards_by_turn(history_rewards(rollout(chain(paid)), kind, strength))
        for place, agent in enumerate(AGENTS):
            for turn, rewards in enumerate(found):
                r = paid[turn][place]
                if turn:
                    q = sum(paid[k][place] for k in range(turn)) / turn
                    term = r - q if kind == "margin" else q * r - (1 - q) * (1 - r)
                    r += strength * term
                assert rewards[agent] == pytest.approx(r)


@pytest.mark.parametrize(
    ("kind", "reward", "earlier", "expected"),
    [("quality", 1.0, [1.0], 1.5), ("quality", 1.0, [0.0], 1.0), ("quality", 0.0, [0.0], -0.5),
     ("quality", 0.0, [1.0], 0.0), ("margin", 1.0, [1.0], 1.0), ("margin", 1.0, [0.0], 1.5),
     ("margin", 0.0, [1.0, 0.0], -0.25), ("margin", 1.0, [], 1.0)],
)  # fmt: skip
def test_values_computed_by_hand(kind, reward, earlier, expected):
    assert shaped_reward(reward, earlier, kind) == expected


@given(st.lists(shares, min_size=2, max_size=4), st.lists(shares, min_size=1, max_size=3))
def test_among_answers_to_one_prompt_shaping_scales_rewards_alone(rewards, earlier):
    for kind in ("quality", "margin"):
        shaped = [shaped_reward(reward, earlier, kind, 0.5) for reward in rewards]
        for reward, other in zip(rewards, shaped, strict=True):
            assert other - shaped[0] == pytest.approx(1.5 * (reward - rewards[0]), abs=1e-9)


def test_an_early_success_earns_more_under_quality_and_less_under_margin():
    gains = {}
    for kind in ("quality", "margin"):
        early, late = (
            sample_returns(history_rewards(rollout(chain(paid)), kind).root, "a", 1.0)[0]
            for paid in ([(1.0, 0.0), (1.0, 0.0)], [(0.0, 0.0), (1.0, 0.0)])
        )
        gains[kind] = early - late
    assert gains == {"quality": 1.5, "margin": 0.5}


def test_turns_in_which_an_agent_waits_are_not_part_of_its_record():
    root = chain([(1.0, 0.0), (1.0, 1.0)], acts=("a",))
    found = rewards_by_turn(history_rewards(rollout(root), "margin"))
    assert found == [{"a": 1.0, "b": 0.0}, {"a": 1.0, "b": 1.0}]


def test_rewards_that_are_no_share_of_success_are_refused():
    with pytest.raises(ConfigError, match=r"'margin' takes rewards in \[0, 1\], got 2.0"):
        shaped_reward(2.0, [0.0], "margin")


@given(paid=st.tuples(st.floats(-3, 3), st.floats(-3, 3)), weight=st.floats(0, 2))
def test_mixed_rewards_are_the_own_and_the_weighted_mean_of_all(paid, weight):
    found = mixed_rewards(rollout(chain([paid])), weight).root.steps[0].rewards
    mean = sum(paid) / 2
    assert found["a"] == pytest.approx(paid[0] + weight * mean)
    assert found["b"] == pytest.approx(paid[1] + weight * mean)
