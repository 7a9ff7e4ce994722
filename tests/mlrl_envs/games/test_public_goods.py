import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlrl_envs.errors import InvalidArgumentError
from mlrl_envs.games.measures import (
    best_response_value,
    expected_returns,
    nash_conv,
    scripted_policy,
)
from mlrl_envs.games.outcomes import equality, mean_returns, welfare
from mlrl_envs.games.public_goods import PublicGoods, PublicGoodsFamily
from mlrl_envs.games.rounds import RoundState


@given(st.lists(st.integers(0, 4), min_size=2, max_size=6), st.floats(0.1, 2))
def test_payoffs_follow_the_formula(given_tokens, multiplier):
    number = len(given_tokens)
    game = PublicGoods(num_agents=number, multiplier=multiplier)
    paid = game.payoffs([str(tokens) for tokens in given_tokens])
    pot = multiplier * sum(given_tokens) / 4
    for tokens, payoff in zip(given_tokens, paid, strict=True):
        assert payoff == pytest.approx(1 - tokens / 4 + pot / number, abs=1e-9)
    total = number - sum(given_tokens) / 4 + pot
    assert sum(paid) == pytest.approx(total, abs=1e-9)
    low, high = game.reward_range
    assert all(low - 1e-9 <= payoff <= high + 1e-9 for payoff in paid)


@pytest.mark.parametrize("number", [2, 3, 5])
def test_giving_costs_the_agent_and_helps_the_team(number):
    game = PublicGoods(num_agents=number, endowment=2)
    for others in itertools.product(game.options, repeat=number - 1):
        paid = [game.payoffs((own, *others)) for own in game.options]
        assert paid[0][0] > paid[1][0] > paid[2][0]
        assert sum(paid[0]) < sum(paid[1]) < sum(paid[2])


def test_giving_nothing_is_the_equilibrium_and_all_the_optimum():
    game = PublicGoods(num_agents=3, endowment=1, rounds=2)
    nothing, everything = scripted_policy(game, "nothing"), scripted_policy(game, "all")
    assert nash_conv(game, nothing) == pytest.approx(0, abs=1e-9)
    assert expected_returns(game, nothing) == pytest.approx(dict.fromkeys(game.agents, 2.0))
    assert expected_returns(game, everything) == pytest.approx(dict.fromkeys(game.agents, 3.2))
    free = best_response_value(game, everything, "player_2")
    assert free == pytest.approx(2 * (1 + 1.6 * 2 / 3), abs=1e-9)


def test_conditional_player_gives_back():
    game = PublicGoods(num_agents=3)
    give = game.scripts["conditional"]
    assert give(RoundState(), "player_0", None) == "4"
    assert give(RoundState((("4", "0", "1"),)), "player_0", None) == "0"
    assert give(RoundState((("0", "4", "3"),)), "player_0", None) == "4"
    players = dict.fromkeys(game.agents, give)
    assert mean_returns(game, players, range(2)) == pytest.approx(dict.fromkeys(game.agents, 8.0))


def test_figures_of_a_game():
    game = PublicGoods(num_agents=2, rounds=1)
    figures = game.figures(RoundState((("4", "0"),)))
    assert figures == pytest.approx(
        {"welfare": 1.3, "equality": 1 - abs(0.8 - 1.8) / (2 * 2.6), "given": 0.5}
    )


def test_welfare_and_equality():
    assert welfare({"a": 1.0, "b": -3.0}) == -1.0
    assert equality({"a": 2.0, "b": 2.0}) == 1.0
    assert equality({"a": 0.0, "b": 0.0}) == 1.0
    assert equality({"a": 1.0, "b": 0.0}) == pytest.approx(0.5)
    assert equality({"a": 1.0, "b": 0.0, "c": 0.0, "d": 0.0}) == pytest.approx(0.25)
    with pytest.raises(InvalidArgumentError, match="at least 0"):
        equality({"a": -1.0, "b": 1.0})


@pytest.mark.parametrize(
    "options",
    [
        {"num_agents": 1},
        {"num_agents": 21},
        {"endowment": 0},
        {"multiplier": 0},
        {"multiplier": 5},
        {"multiplier": float("nan")},
    ],
    ids=str,
)
def test_wrong_options(options):
    with pytest.raises(InvalidArgumentError, match=next(iter(options))):
        PublicGoodsFamily.make_env(**options)


def test_a_step_of_twenty_agents_is_read_by_all(play_texts):
    family = PublicGoodsFamily.make_env(split="sample", num_agents=20, rounds=2).family
    turns = play_texts(family, family.tasks[0], lambda turns, agent: agent[-1:] if turns else "2")
    text = family.observe(family.tasks[0], turns[:1], "player_7")
    assert "you 2" in text
    assert "player_19 2" in text
    assert "player_7 " not in text


def test_a_message_earns_a_reward_in_range():
    env = PublicGoodsFamily.make_env(split="sample", talk=True, illegal_penalty=0.0)
    env.reset(seed=0)
    low, high = env.reward_range
    rewards = env.step(dict.fromkeys(env.acting, "hello"))[1]
    assert all(low <= reward <= high for reward in rewards.values())
