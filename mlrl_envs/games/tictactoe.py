"""Tic-tac-toe: three in a row on a board of nine cells.

Agents:
    `player_0`, who plays X and moves first, and `player_1`, who plays O. They take turns.

Observation:
    The rules and the board; an empty cell shows its number.

Action:
    The number of an empty cell, `<move>5</move>`.

Reward:
    1 for the winner and -1 for the loser, at the end of the game; 0 for a draw. A random move
    instead of an illegal answer costs `illegal_penalty`.

Data:
    Seeds. With `opening_moves` the first moves are drawn from the seed, so that games differ. With
    `random_start` their number is drawn as well, so that games begin in every position in which
    there is a choice.

Version history:
    v0: First version.

Example:
    env = mlrl_envs.make("mlrl/tictactoe-v0", split="sample")
    observations, infos = env.reset(seed=0)
    observations, *_ = env.step({"player_0": "<move>5</move>"})
    assert "4 X 6" in observations["player_1"]

Measures:
    Play against a perfect player and the share of positions that are played perfectly
    (`mlrl_envs.games.measures`). Perfect play of both is a draw.
"""

import functools
import itertools
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import ClassVar

from mlrl_envs.config import check_int
from mlrl_envs.datasets.draws import Draws
from mlrl_envs.errors import InvalidArgumentError
from mlrl_envs.games.base import PLAYERS, Game, Script, pick
from mlrl_envs.games.family import GameFamily
from mlrl_envs.games.options import GameConfig
from mlrl_envs.types import AgentID

__all__ = [
    "TicTacToe",
    "TicTacToeConfig",
    "TicTacToeFamily",
    "best_cells",
    "parallel_env",
    "value_of",
]

EMPTY, MARKS = ".", "XO"
START = EMPTY * 9
LINES = ((0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6))
MAX_OPENING = 4  # no game is over before the fifth move
MAX_START = 7  # with eight marks one move is left


@dataclass(frozen=True)
class TicTacToeConfig(GameConfig):
    """Options of tic-tac-toe.

    Attributes:
        opening_moves: Number of random moves before the first, 0 to 4, drawn from the seed.
        random_start: Whether games begin after 0 to 7 random moves that do not end the game; not
            together with `opening_moves`.
    """

    opening_moves: int = 0
    random_start: bool = False

    def __post_init__(self) -> None:
        """Check types and ranges.

        Raises:
            InvalidArgumentError: If a value has the wrong type or is outside its range.
        """
        super().__post_init__()
        check_int("opening_moves", self.opening_moves, 0, MAX_OPENING)
        if not isinstance(self.random_start, bool):
            raise InvalidArgumentError(f"random_start must be a bool, got {self.random_start!r}")
        if self.random_start and self.opening_moves:
            raise InvalidArgumentError(
                f"random_start draws the opening: leave opening_moves {self.opening_moves} out"
            )


@dataclass(frozen=True)
class TicTacToe(Game[str]):
    """The rules of tic-tac-toe; a state is the board, nine characters of `X`, `O` and `.`."""

    zero_sum: ClassVar[bool] = True

    opening_moves: int = 0
    random_start: bool = False

    @property
    def agents(self) -> tuple[AgentID, ...]:
        """`player_0` plays X."""
        return PLAYERS

    @property
    def reward_range(self) -> tuple[float, float]:
        """Lost or won."""
        return -1.0, 1.0

    @property
    def max_moves(self) -> int:
        """One move for each cell that is empty at first."""
        return len(START) - self.opening_moves

    def rules(self, agent: AgentID) -> str:
        """Return the rules."""
        mark = MARKS[PLAYERS.index(agent)]
        return f"Tic-tac-toe. Three in a row win. You play {mark}."

    def start(self, seed: int) -> str:
        """Return the empty board, or a board after random opening moves."""
        board, draws = START, Draws(f"tictactoe/{seed}")
        number = draws.integer(0, MAX_START) if self.random_start else self.opening_moves
        for _ in range(number):
            cells = _quiet(board)
            if not cells:
                break
            board = _put(board, draws.pick(cells))
        return board

    def roots(self) -> Sequence[tuple[float, str]]:
        """Return the first boards with their probabilities."""
        if self.random_start:
            return _random_starts()
        orders = list(itertools.permutations(range(9), self.opening_moves))
        boards = Counter(functools.reduce(_put, order, START) for order in orders)
        return [(count / len(orders), board) for board, count in boards.items()]

    def acting(self, state: str) -> tuple[AgentID, ...]:
        """Return the players in turn, until a row or a full board."""
        if _winner(state) is not None or EMPTY not in state:
            return ()
        return (PLAYERS[_seat(state)],)

    def legal(self, state: str, agent: AgentID) -> tuple[str, ...]:  # noqa: ARG002  one acts
        """Return the numbers of the empty cells, from 1."""
        return tuple(str(cell + 1) for cell in _empty(state))

    def play(self, state: str, moves: Mapping[AgentID, str]) -> str:
        """Put a mark."""
        (move,) = moves.values()
        return _put(state, int(move) - 1)

    def returns(self, state: str) -> Mapping[AgentID, float]:
        """Return 1 and -1 after a row, else 0."""
        winner = _winner(state)
        if winner is None:
            return dict.fromkeys(PLAYERS, 0.0)
        return {agent: 1.0 if seat == winner else -1.0 for seat, agent in enumerate(PLAYERS)}

    def view(self, state: str, agent: AgentID) -> str:
        """Return the board, and the result at the end."""
        cells = [str(cell + 1) if mark == EMPTY else mark for cell, mark in enumerate(state)]
        rows = [" ".join(cells[row : row + 3]) for row in (0, 3, 6)]
        if not self.acting(state):
            rows.append(("A draw.", "You won.", "You lost.")[int(self.returns(state)[agent])])
        return "\n".join(rows)

    @property
    def scripts(self) -> Mapping[str, Script[str]]:
        """Scripted players: random, greedy (wins or blocks if it can), and perfect."""
        return {"random": self.random_move, "greedy": _greedy, "perfect": _perfect}


@dataclass(frozen=True)
class TicTacToeFamily(GameFamily[TicTacToeConfig]):
    """Episodes of tic-tac-toe."""

    env_id: ClassVar[str] = "mlrl/tictactoe-v0"
    config_type: ClassVar[type[TicTacToeConfig]] = TicTacToeConfig
    game_type: ClassVar[type[TicTacToe]] = TicTacToe


parallel_env = TicTacToeFamily.make_env


@functools.cache
def value_of(board: str) -> int:
    """Return the value for the player to move: 1 won, 0 drawn, -1 lost with perfect play."""
    if _winner(board) is not None:
        return -1  # the other player made the last move
    return max((-value_of(_put(board, cell)) for cell in _empty(board)), default=0)


def best_cells(board: str) -> tuple[int, ...]:
    """Return the empty cells, from 0, that keep the value of a board that is not over."""
    return tuple(c for c in _empty(board) if -value_of(_put(board, c)) == value_of(board))


def _random_starts() -> list[tuple[float, str]]:
    """Return the boards after 0 to 7 random moves with their probabilities."""
    boards = {START: 1.0}
    found = [boards]
    for _ in range(MAX_START):
        after: dict[str, float] = defaultdict(float)
        for board, chance in boards.items():
            cells = _quiet(board)
            if not cells:
                after[board] += chance
            for cell in cells:
                after[_put(board, cell)] += chance / len(cells)
        boards = dict(after)
        found.append(boards)
    total: dict[str, float] = defaultdict(float)
    for boards in found:
        for board, chance in boards.items():
            total[board] += chance / len(found)
    return [(chance, board) for board, chance in total.items()]


def _quiet(board: str) -> tuple[int, ...]:
    """Return the empty cells that complete no row; all empty cells before the fifth move."""
    return tuple(cell for cell in _empty(board) if _winner(_put(board, cell)) is None)


def _empty(board: str) -> tuple[int, ...]:
    return tuple(cell for cell, mark in enumerate(board) if mark == EMPTY)


def _seat(board: str) -> int:
    return (len(board) - board.count(EMPTY)) % 2


def _put(board: str, cell: int) -> str:
    return board[:cell] + MARKS[_seat(board)] + board[cell + 1 :]


def _winner(board: str) -> int | None:
    for a, b, c in LINES:
        if board[a] != EMPTY and board[a] == board[b] == board[c]:
            return MARKS.index(board[a])
    return None


def _perfect(state: str, agent: AgentID, rng: Random) -> str:  # noqa: ARG001  one acts
    return pick([str(cell + 1) for cell in best_cells(state)], rng)


def _greedy(state: str, agent: AgentID, rng: Random) -> str:
    own = MARKS[PLAYERS.index(agent)]
    for mark in (own, MARKS[1 - MARKS.index(own)]):
        for cell in _empty(state):
            if _winner(state[:cell] + mark + state[cell + 1 :]) is not None:
                return str(cell + 1)
    return pick([str(cell + 1) for cell in _empty(state)], rng)
