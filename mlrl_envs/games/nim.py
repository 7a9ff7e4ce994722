"""Nim: two players take objects from piles; the last object decides.

In turn, a player takes any number of objects, at least one, from one pile. Whoever takes the last
object wins, or loses with `misere=True`.

Agents:
    `player_0`, who moves first, and `player_1`. They take turns.

Observation:
    The rules and the piles.

Action:
    A move, such as `<move>take 2 from B</move>`.

Reward:
    1 for the winner and -1 for the loser, at the end of the game. A random move instead of an
    illegal answer costs `illegal_penalty`.

Data:
    Seeds, from which the sizes of the piles are drawn, each from 1 to `max_pile`. With
    `random_start` piles may be empty, so that games begin in every position.

Version history:
    v0: First version.

Example:
    env = mlrl_envs.make("mlrl/nim-v0", split="sample", num_piles=1)
    observations, infos = env.reset(seed=0)
    observations, rewards, *_ = env.step(env.reference_actions())
    assert rewards == {"player_0": 1.0, "player_1": -1.0}

Measures:
    Play against a perfect player and the share of positions that are played perfectly
    (`mlrl_envs.games.measures`). The player to move wins if the exclusive or of the piles is not 0
    (Bouton, "Nim, a game with a complete mathematical theory", 1901).
"""

import functools
import itertools
import operator
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

__all__ = ["Nim", "NimConfig", "NimFamily", "NimState", "parallel_env", "winning_moves"]

PILES = "ABCDEFGH"
MAX_ROOTS = 20_000


@dataclass(frozen=True)
class NimConfig(GameConfig):
    """Options of Nim.

    Attributes:
        num_piles: Number of piles, 1 to 8.
        max_pile: Largest size of a pile, 1 to 20.
        misere: Whether the player who takes the last object loses.
        random_start: Whether games begin in any position, each equally probable; piles may then
            be empty, but not all of them.
    """

    num_piles: int = 3
    max_pile: int = 4
    misere: bool = False
    random_start: bool = False

    def __post_init__(self) -> None:
        """Check types and ranges.

        Raises:
            InvalidArgumentError: If a value has the wrong type or is outside its range.
        """
        super().__post_init__()
        check_int("num_piles", self.num_piles, 1, len(PILES))
        check_int("max_pile", self.max_pile, 1, 20)
        for name in ("misere", "random_start"):
            if not isinstance(getattr(self, name), bool):
                raise InvalidArgumentError(f"{name} must be a bool, got {getattr(self, name)!r}")


@dataclass(frozen=True, slots=True)
class NimState:
    """The sizes of the piles, and the seat of the player to move."""

    piles: tuple[int, ...]
    seat: int = 0


@dataclass(frozen=True)
class Nim(Game[NimState]):
    """The rules of Nim; see `NimConfig` for the options."""

    zero_sum: ClassVar[bool] = True

    num_piles: int = 3
    max_pile: int = 4
    misere: bool = False
    random_start: bool = False

    @property
    def agents(self) -> tuple[AgentID, ...]:
        """`player_0` moves first."""
        return PLAYERS

    @property
    def reward_range(self) -> tuple[float, float]:
        """Lost or won."""
        return -1.0, 1.0

    @property
    def max_moves(self) -> int:
        """One object in each move."""
        return self.num_piles * self.max_pile

    def rules(self, agent: AgentID) -> str:  # noqa: ARG002  the same for both
        """Return the rules."""
        end = "loses" if self.misere else "wins"
        return f"Nim. In turn, take objects from one pile. Who takes the last object {end}."

    def start(self, seed: int) -> NimState:
        """Return piles with sizes drawn from the seed."""
        draws = Draws(f"nim/{seed}")
        piles: tuple[int, ...] = ()
        while not any(piles):
            sizes = (draws.integer(self._least, self.max_pile) for _ in range(self.num_piles))
            piles = tuple(sizes)
        return NimState(piles)

    def roots(self) -> Sequence[tuple[float, NimState]] | None:
        """Return all first positions, equally probable; None if there are more than 20,000."""
        sizes = range(self._least, self.max_pile + 1)
        if len(sizes) ** self.num_piles > MAX_ROOTS:
            return None
        positions = [each for each in itertools.product(sizes, repeat=self.num_piles) if any(each)]
        return [(1 / len(positions), NimState(piles)) for piles in positions]

    def acting(self, state: NimState) -> tuple[AgentID, ...]:
        """Return the players in turn, until all piles are empty."""
        return (PLAYERS[state.seat],) if any(state.piles) else ()

    def legal(self, state: NimState, agent: AgentID) -> tuple[str, ...]:  # noqa: ARG002  one acts
        """Return a move for each number of objects of each pile."""
        return tuple(
            f"take {count} from {name}"
            for name, size in zip(PILES, state.piles, strict=False)
            for count in range(1, size + 1)
        )

    def play(self, state: NimState, moves: Mapping[AgentID, str]) -> NimState:
        """Take the objects."""
        (move,) = moves.values()
        _, count, _, name = move.split()
        piles = list(state.piles)
        piles[PILES.index(name)] -= int(count)
        return NimState(tuple(piles), 1 - state.seat)

    def returns(self, state: NimState) -> Mapping[AgentID, float]:
        """Return 1 and -1 at the end, 0 before."""
        if any(state.piles):
            return dict.fromkeys(PLAYERS, 0.0)
        winner = state.seat if self.misere else 1 - state.seat  # the other took the last object
        return {agent: 1.0 if seat == winner else -1.0 for seat, agent in enumerate(PLAYERS)}

    def view(self, state: NimState, agent: AgentID) -> str:
        """Return the piles, and the result at the end."""
        if not any(state.piles):
            return "You won." if self.returns(state)[agent] > 0 else "You lost."
        sizes = zip(PILES, state.piles, strict=False)
        return f"Piles: {', '.join(f'{name} {size}' for name, size in sizes)}."

    @property
    def _least(self) -> int:
        """The smallest size of a pile at the start."""
        return 0 if self.random_start else 1

    @property
    def scripts(self) -> Mapping[str, Script[NimState]]:
        """Scripted players: random, greedy (takes the largest pile), and perfect."""
        return {"random": self.random_move, "greedy": _greedy, "perfect": self._perfect}

    def _perfect(self, state: NimState, agent: AgentID, rng: Random) -> str:
        winning = winning_moves(state.piles, misere=self.misere)
        return pick(winning or self.legal(state, agent), rng)


@dataclass(frozen=True)
class NimFamily(GameFamily[NimConfig]):
    """Episodes of Nim."""

    env_id: ClassVar[str] = "mlrl/nim-v0"
    config_type: ClassVar[type[NimConfig]] = NimConfig
    game_type: ClassVar[type[Nim]] = Nim


parallel_env = NimFamily.make_env


def winning_moves(piles: Sequence[int], *, misere: bool = False) -> tuple[str, ...]:
    """Return the moves after which the opponent loses, by Bouton's theory."""
    found = []
    for place, size in enumerate(piles):
        for left in range(size):
            rest = [*piles[:place], left, *piles[place + 1 :]]
            if _is_lost(rest, misere=misere):
                found.append(f"take {size - left} from {PILES[place]}")
    return tuple(sorted(found))


def _is_lost(piles: Sequence[int], *, misere: bool) -> bool:
    """Return whether the player to move loses."""
    total = functools.reduce(operator.xor, piles, 0)
    if misere and max(piles, default=0) <= 1:
        return total == 1
    return total == 0


def _greedy(state: NimState, agent: AgentID, rng: Random) -> str:  # noqa: ARG001  not random
    size = max(state.piles)
    return f"take {size} from {PILES[state.piles.index(size)]}"
