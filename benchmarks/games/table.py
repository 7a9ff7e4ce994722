"""The plans of all games."""

from collections.abc import Mapping

from benchmarks.games.dilemmas import MATRIX, PUBLIC_GOODS
from benchmarks.games.hanabi import HANABI
from benchmarks.games.kuhn import KUHN
from benchmarks.games.liars_dice import LIARS_DICE
from benchmarks.games.perfect_information import CONNECT_FOUR, NIM, TICTACTOE
from benchmarks.games.plans import Plan

__all__ = ["PLANS"]

PLANS: Mapping[str, Plan] = {
    "kuhn": KUHN,
    "nim": NIM,
    "tictactoe": TICTACTOE,
    "connect-four": CONNECT_FOUR,
    "liars-dice": LIARS_DICE,
    "matrix": MATRIX,
    "public-goods": PUBLIC_GOODS,
    "hanabi": HANABI,
}
