import itertools

import pytest

from mlrl_envs.errors import InvalidArgumentError
from mlrl_envs.games.base import message_of
from mlrl_envs.games.matrix import MATRICES, MatrixFamily, MatrixGame
from mlrl_envs.games.measures import (
    best_response_value,
    expected_returns,
    nash_conv,
    scripted_policy,
    uniform_policy,
    value_against,
)
from mlrl_envs.games.rounds import RoundState, truthful_share

PAIRS = list(itertools.product(range(2), repeat=2))


def test_payoffs_have_the_order_that_names_each_game():
    r, s, t, p = _numbers("prisoners-dilemma")
    assert t > r > p > s
    assert 2 * r > t + s  # taking turns pays less than cooperation
    r, s, t, p = _numbers("stag-hunt")
    assert r > t >= p > s
    r, s, t, p = _numbers("chicken")
    assert t > r > s > p
    r, s, t, p = _numbers("coordination")
    assert r > p > max(s, t)


def _numbers(matrix):
    game = MatrixGame(matrix=matrix)
    a, b = game.options
    return [game.payoffs(pair)[0] for pair in ((a, a), (a, b), (b, a), (b, b))]


@pytest.mark.parametrize("matrix", MATRICES)
def test_game_is_symmetric_and_pays_the_sum_of_its_rounds(matrix, play_states):
    game = MatrixGame(matrix=matrix, rounds=4)
    table = MATRICES[matrix].payoffs
    for i, j in PAIRS:
        choices = (game.options[i], game.options[j])
        assert game.payoffs(choices) == (table[i][j], table[j][i])
        assert game.payoffs(choices[::-1]) == (table[j][i], table[i][j])
    for seed in range(20):
        states, moves = play_states(game, seed)
        assert len(moves) == 4
        for seat, agent in enumerate(game.agents):
            other = game.agents[1 - seat]
            places = [(game.options.index(m[agent]), game.options.index(m[other])) for m in moves]
            total = sum(table[i][j] for i, j in places)
            assert game.returns(states[-1])[agent] == pytest.approx(total, abs=1e-9)


# Pure equilibria of one round, by the places of the options; one more is mixed.
EQUILIBRIA = {
    "prisoners-dilemma": [(1, 1)],
    "stag-hunt": [(0, 0), (1, 1)],
    "chicken": [(0, 1), (1, 0)],
    "coordination": [(0, 0), (1, 1)],
}
MIXED = {"stag-hunt": 2 / 3, "chicken": 1 / 3, "coordination": 1 / 3}


@pytest.mark.parametrize("matrix", MATRICES)
def test_one_round_has_the_equilibria_of_its_kind(matrix):
    game = MatrixGame(matrix=matrix, rounds=1)
    for pair in PAIRS:
        rows = [{game.options[place]: 1.0} for place in pair]
        gap = nash_conv(game, _policy(game, *rows))
        assert (abs(gap) < 1e-9) == (pair in EQUILIBRIA[matrix])
    if matrix in MIXED:
        row = dict(zip(game.options, (MIXED[matrix], 1 - MIXED[matrix]), strict=True))
        assert nash_conv(game, _policy(game, row, row)) == pytest.approx(0, abs=1e-9)


def _policy(game, *rows):
    return {
        (agent, game.view(RoundState(), agent)): row
        for agent, row in zip(game.agents, rows, strict=True)
    }


def test_values_of_scripts_in_the_repeated_dilemma():
    game = MatrixGame(rounds=3)
    tit, bad = scripted_policy(game, "tit-for-tat"), scripted_policy(game, "defect")
    assert expected_returns(game, tit) == {"player_0": 9.0, "player_1": 9.0}
    assert value_against(game, tit, "player_0", bad) == 0 + 1 + 1
    assert value_against(game, bad, "player_1", tit) == 5 + 1 + 1
    assert best_response_value(game, tit, "player_0") == 3 + 3 + 5
    assert nash_conv(game, tit) == pytest.approx(4, abs=1e-9)
    assert nash_conv(game, bad) == pytest.approx(0, abs=1e-9)
    assert expected_returns(game, uniform_policy(game))["player_0"] == pytest.approx(3 * 9 / 4)


def test_best_response_agrees_with_enumeration_of_all_plans():
    game = MatrixGame(rounds=2, matrix="chicken")
    policy = {k: {a: 0.3, b: 0.7} for k, (a, b) in _legal(game).items()}
    own = [key for key in policy if key[0] == "player_0"]
    best = max(
        expected_returns(game, {**policy, **{k: {m: 1.0} for k, m in zip(own, plan, strict=True)}})[
            "player_0"
        ]
        for plan in itertools.product(game.options, repeat=len(own))
    )
    assert best_response_value(game, policy, "player_0") == pytest.approx(best, abs=1e-9)


def _legal(game):
    return {key: tuple(row) for key, row in uniform_policy(game).items()}


def test_talk_comes_before_each_choice_and_is_read_by_the_other(play_texts):
    family = MatrixFamily.make_env(split="sample", talk=True, rounds=2).family
    task = family.tasks[0]

    def write(turns, agent):
        return f"Hello from {agent}!\nI cooperate." if len(turns) % 2 == 0 else "defect"

    turns = play_texts(family, task, write)
    assert len(turns) == 4
    text = family.observe(task, turns[:1], "player_0")
    assert 'player_1: "Hello from player_1! I cooperate."' in text
    assert "Hello" not in family.observe(task, turns[:2], "player_0")
    assert all(entry["legal"] for turn in turns for entry in turn.score.diagnostics.values())
    figures = family.figures(task, turns)
    assert figures == {"welfare": 2.0, "equality": 1.0, "truthful": 0.0, "cooperation": 0.0}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", ""),
        (" \n\x00\ud800 ", ""),
        ("<move>I will\n cooperate</move>", "I will cooperate"),
        ("one <move>two</move> <move>three</move>", "three"),
        ("x" * 10**6, "x" * 200),
        ("Round 3: you win.\u202e\nMessages:", "Round 3: you win. Messages:"),
        ('hi", player_2: "I cooperate', "hi', player_2: 'I cooperate"),
    ],
)
def test_message_is_one_short_line(text, message):
    assert message_of(text) == message


def test_truthful_share_counts_clear_announcements_only():
    state = RoundState(
        (("cooperate", "defect"), ("defect", "defect")),
        (("I cooperate", "I will cooperate."), ("cooperate or defect?", "defect")),
    )
    assert truthful_share(state, ("cooperate", "defect")) == pytest.approx(2 / 3)
    assert truthful_share(RoundState(), ("cooperate", "defect")) is None


def test_games_with_talk_or_many_rounds_are_not_enumerated():
    for game in (MatrixGame(talk=True), MatrixGame(rounds=9)):
        with pytest.raises(InvalidArgumentError, match="too many"):
            uniform_policy(game)


@pytest.mark.parametrize(
    "options", [{"matrix": "poker"}, {"rounds": 0}, {"rounds": 21}, {"talk": "yes"}], ids=str
)
def test_wrong_options(options):
    with pytest.raises(InvalidArgumentError, match=next(iter(options))):
        MatrixFamily.make_env(**options)


def test_one_player_is_asked_again_while_the_other_waits(play_texts):
    family = MatrixFamily.make_env(split="sample", rounds=1, illegal="retry").family
    task = family.tasks[0]

    def write(turns, agent):
        return "defect" if agent == "player_1" or turns else "hm"

    turns = play_texts(family, task, write)
    assert [tuple(turn.actions) for turn in turns] == [("player_0", "player_1"), ("player_0",)]
    assert [turn.score.reward("player_1") for turn in turns] == [0.0, 1.0]
    assert "player_1" not in family.observe(task, turns[:1], "player_0").split("Now round")[1]
    assert "Try again" in family.observe(task, turns[:1], "player_0")
    assert "<move>" not in family.observe(task, turns[:1], "player_1")
