import pytest
from hypothesis import given
from hypothesis import strategies as st

import mlrl_envs
from mlrl_learners.report.board_picture import board_picture, find_board


@pytest.mark.parametrize(
    ("env_id", "size"),
    [("mlrl/connect-four-v0", (7, 7)), ("mlrl/tictactoe-v0", (3, 3)), ("mlrl/puzzle-v0", None)],
)
def test_boards_of_games_are_found(env_id, size):
    observations, _ = mlrl_envs.make(env_id).reset(seed=1)
    board = find_board(next(iter(observations.values())))
    assert size is None or (len(board), len(board[0])) == size
    assert all(len(row) == len(board[0]) for row in board)


def test_discs_walls_and_letters_differ():
    drawn = board_picture("Look:\n\nX O .\n. # R\n. . .\n\nMoves: 1")
    assert drawn.count("disc") == 2 + 2  # a disc and the letter on it
    assert drawn.count('class="wall"') == 1
    assert ">R</text>" in drawn
    assert 'aria-label="Board: XO. / .#R / ..."' in drawn


@pytest.mark.parametrize("text", ["", "a b\nc d", "one two\nthree four\nfive six", "X O X\nX O X"])
def test_a_text_without_a_board_has_no_picture(text):
    assert board_picture(text) is None


@given(st.text(st.sampled_from("X#. <\n"), max_size=60))
def test_any_text_is_drawn_or_not(text):
    drawn = board_picture(text)
    assert drawn is None or "<svg" in drawn
