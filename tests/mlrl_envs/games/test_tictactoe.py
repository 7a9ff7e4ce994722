import functools

import pytest

from mlrl_envs.errors import InvalidArgumentError
from mlrl_envs.games.enumeration import information_sets, tree_of
from mlrl_envs.games.measures import (
    best_response_value,
    expected_returns,
    nash_conv,
    uniform_policy,
)
from mlrl_envs.games.outcomes import mean_returns
from mlrl_envs.games.perfect import optimal_moves, optimal_play, perfect_policy
from mlrl_envs.games.tictactoe import TicTacToe, TicTacToeFamily, best_cells, value_of

GAME = TicTacToe()
# Rows as sums in a magic square: three cells are a row exactly if their numbers sum to 15.
MAGIC = (2, 7, 6, 9, 5, 1, 4, 3, 8)


def _has_row(cells):
    cells = sorted(cells)
    return any(
        MAGIC[a] + MAGIC[b] + MAGIC[c] == 15
        for i, a in enumerate(cells)
        for j, b in enumerate(cells[i + 1 :], i + 1)
        for c in cells[j + 1 :]
    )


@functools.cache
def _solve(mine, theirs):
    """Return the value for the player to move; sets of cells instead of a board."""
    if _has_row(theirs):
        return -1
    free = frozenset(range(9)) - mine - theirs
    return max((-_solve(theirs, mine | {cell}) for cell in free), default=0)


def _sets(board):
    x = frozenset(i for i, mark in enumerate(board) if mark == "X")
    o = frozenset(i for i, mark in enumerate(board) if mark == "O")
    return (x, o) if len(x) == len(o) else (o, x)


def _boards():
    return [node.state for layer in tree_of(GAME).layers for node in layer]


def test_there_are_as_many_positions_as_known():
    boards = _boards()
    assert len(boards) == 5478
    assert len(information_sets(GAME)) == 4520
    over = [board for board in boards if not GAME.acting(board)]
    won = [GAME.returns(board)["player_0"] for board in over]
    assert (len(over), won.count(1), won.count(-1), won.count(0)) == (958, 626, 316, 16)


def test_positions_end_and_pay_as_the_independent_rules_say():
    for board in _boards():
        mine, theirs = _sets(board)
        over = _has_row(mine) or _has_row(theirs) or len(mine | theirs) == 9
        assert (GAME.acting(board) == ()) == over
        assert value_of(board) == _solve(mine, theirs)
        if over and len(mine) != len(theirs):
            assert GAME.returns(board)["player_1"] == _solve(mine, theirs)


def test_best_cells_and_backward_induction_agree_with_the_independent_solver():
    moves = optimal_moves(GAME)
    for key, board in information_sets(GAME).items():
        mine, theirs = _sets(board)
        free = set(range(9)) - mine - theirs
        best = {c for c in free if -_solve(theirs, mine | {c}) == _solve(mine, theirs)}
        assert set(best_cells(board)) == best
        assert {int(move) - 1 for move in moves[key]} == best


def test_perfect_play_is_a_draw_and_unexploitable():
    policy = perfect_policy(GAME)
    assert expected_returns(GAME, policy)["player_0"] == pytest.approx(0, abs=1e-9)
    assert nash_conv(GAME, policy) == pytest.approx(0, abs=1e-9)
    assert optimal_play(GAME, policy)["perfect"] == 1.0
    uniform = uniform_policy(GAME)
    assert best_response_value(GAME, uniform, "player_0") > 0.9
    assert optimal_play(GAME, uniform)["perfect"] == 0.0


def test_uniform_play_wins_as_often_as_known():
    # 0.5849 of random games are won by X, 0.2881 by O, 0.1270 are drawn.
    value = expected_returns(GAME, uniform_policy(GAME))["player_0"]
    assert value == pytest.approx(737 / 1260 - 121 / 420, abs=1e-9)


def test_scripts_get_better():
    for weaker, stronger in (("random", "greedy"), ("greedy", "perfect")):
        players = {"player_0": GAME.scripts[weaker], "player_1": GAME.scripts[stronger]}
        swapped = {"player_0": GAME.scripts[stronger], "player_1": GAME.scripts[weaker]}
        gain = mean_returns(GAME, swapped, range(150))["player_0"]
        assert gain + mean_returns(GAME, players, range(150))["player_1"] > 0


@pytest.mark.parametrize("number", [1, 2, 4])
def test_openings_are_drawn_from_the_seed(number):
    game = TicTacToe(number)
    starts = {game.start(seed) for seed in range(3000)}
    roots = {state: p for p, state in game.roots()}
    assert sum(roots.values()) == pytest.approx(1, abs=1e-9)
    assert starts <= set(roots)
    assert len(starts) > 0.9 * len(roots)
    assert all(9 - board.count(".") == number for board in starts)


@pytest.mark.parametrize("value", [-1, 5, True])
def test_wrong_opening(value):
    with pytest.raises(InvalidArgumentError, match="opening_moves"):
        TicTacToeFamily.make_env(opening_moves=value)


def test_random_starts_are_all_positions_with_a_choice():
    game = TicTacToe(random_start=True)
    starts = [game.start(seed) for seed in range(3000)]
    roots = {state: p for p, state in game.roots()}
    assert sum(roots.values()) == pytest.approx(1, abs=1e-9)
    open_boards = [board for board in _boards() if GAME.acting(board)]
    assert set(roots) == {board for board in open_boards if board.count(".") > 1}
    assert set(starts) <= set(roots)
    assert starts.count("." * 9) / 3000 == pytest.approx(roots["." * 9], abs=0.03)
    assert game.max_moves == 9


@pytest.mark.parametrize(
    "options", [{"random_start": 1}, {"random_start": True, "opening_moves": 2}]
)
def test_wrong_random_start(options):
    with pytest.raises(InvalidArgumentError, match="random_start"):
        TicTacToeFamily.make_env(**options)


def test_taken_cells_are_illegal():
    board = GAME.play(GAME.start(0), {"player_0": "5"})
    assert GAME.read(board, "player_1", "<move>5</move>") is None
    assert GAME.read(board, "player_1", "<move>0</move>") is None
    assert GAME.read(board, "player_1", "cell 10") is None
    assert GAME.read(board, "player_1", "I take cell 1.") == "1"
