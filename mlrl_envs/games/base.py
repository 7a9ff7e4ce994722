"""Base class of games, and the reading of moves from text.

A game is a set of pure functions over frozen states. All chance is drawn from the seed that `start`
gets and is part of the state, so that an episode is a function of its seed and its moves.
`mlrl_envs.games.family.GameFamily` turns a game into a text environment.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from random import Random
from typing import ClassVar, Generic, TypeVar

from mlrl_envs.types import AgentID

__all__ = [
    "MAX_MESSAGE_CHARS",
    "MAX_READ_CHARS",
    "PLAYERS",
    "Game",
    "Script",
    "answer_parts",
    "draw",
    "message_of",
    "named_move",
    "pick",
    "player_names",
    "tagged",
]

ItemT = TypeVar("ItemT")
StateT = TypeVar("StateT", bound=Hashable)
Script = Callable[[StateT, AgentID, Random], str]
"""A scripted player: the canonical move of an agent in a state in which it acts."""

MAX_READ_CHARS = 10_000
"""Longer answers are read from their last 10,000 characters."""

MAX_MESSAGE_CHARS = 200
"""Longer messages to other agents are cut."""

# A tag holds no other tag, so that the time is linear in the length of the text.
_TAG = re.compile(r"<move>([^<]*)</move>", re.IGNORECASE)


def player_names(count: int) -> tuple[AgentID, ...]:
    """Return `("player_0", "player_1", ...)`."""
    return tuple(f"player_{number}" for number in range(count))


PLAYERS = player_names(2)


class Game(ABC, Generic[StateT]):
    """The rules of a game as pure functions; a subclass is a frozen dataclass of its options.

    States are frozen, hashable and picklable. A state is over when `acting` is empty. Moves are
    short canonical texts; where agents talk freely, a subclass redefines `read`.

    Attributes:
        zero_sum: Whether the returns of all agents always sum to 0.
        cooperative: Whether the returns of all agents are always equal.
        solvable: Whether the best script always solves the game, see `solved`.
    """

    zero_sum: ClassVar[bool] = False
    cooperative: ClassVar[bool] = False
    solvable: ClassVar[bool] = False

    @property
    @abstractmethod
    def agents(self) -> tuple[AgentID, ...]:
        """Names of the agents, in a fixed order."""

    @property
    @abstractmethod
    def reward_range(self) -> tuple[float, float]:
        """Lowest and highest change of an agent's return by one call of `play`."""

    @property
    @abstractmethod
    def max_moves(self) -> int:
        """Maximum number of calls of `play` in a game, at least 1."""

    @abstractmethod
    def rules(self, agent: AgentID) -> str:
        """Return the rules as `agent` reads them, in a few sentences."""

    @abstractmethod
    def start(self, seed: int) -> StateT:
        """Return the first state, with all chance drawn from `seed`."""

    @abstractmethod
    def acting(self, state: StateT) -> tuple[AgentID, ...]:
        """Return the agents that move next, in the order of `agents`; () when the game is over."""

    @abstractmethod
    def legal(self, state: StateT, agent: AgentID) -> tuple[str, ...]:
        """Return the moves of an agent that acts, at least one.

        Where agents talk freely, the moves are examples of what they may say.
        """

    @abstractmethod
    def play(self, state: StateT, moves: Mapping[AgentID, str]) -> StateT:
        """Return the state after a move of every agent that acts."""

    @abstractmethod
    def returns(self, state: StateT) -> Mapping[AgentID, float]:
        """Return what every agent has earned since the start."""

    @abstractmethod
    def view(self, state: StateT, agent: AgentID) -> str:
        """Return what `agent` may know of a state, as text.

        Two states in which an agent acts have the same view exactly if it cannot tell them apart.
        """

    def roots(self) -> Sequence[tuple[float, StateT]] | None:
        """Return all first states with their probabilities, or None if there are too many.

        Exact measures (`mlrl_envs.games.measures`) enumerate a game from here.
        """
        return None

    def read(self, state: StateT, agent: AgentID, text: str) -> str | None:
        """Return the move that an answer names, or None if it names none or more than one."""
        return named_move(text, self.legal(state, agent))

    def request(self, state: StateT, agent: AgentID) -> str:
        """Return the request to move, the last paragraph of an observation."""
        moves = ", ".join(self.legal(state, agent))
        return f"Moves: {moves}\nAnswer with one of them: <move>...</move>"

    def forfeit(self, state: StateT, losers: Sequence[AgentID]) -> Mapping[AgentID, float]:  # noqa: ARG002  for games whose stakes differ
        """Return the last rewards of a game that ends because `losers` named no legal move.

        By default losers get the lowest reward of `reward_range`, at most 0. The others get
        nothing, or share what the losers lost if the game is `zero_sum`; it is a draw if all lose.
        """
        low = min(self.reward_range[0], 0.0)  # otherwise losers would earn more than the others
        winners = [agent for agent in self.agents if agent not in losers]
        if self.zero_sum and not winners:
            return dict.fromkeys(self.agents, 0.0)
        share = -low * len(losers) / len(winners) if self.zero_sum else 0.0
        return {agent: low if agent in losers else share for agent in self.agents}

    def left(self, state: StateT) -> tuple[AgentID, ...]:  # noqa: ARG002  everybody stays
        """Return the agents that have left before the end and earn nothing more."""
        return ()

    def solved(self, state: StateT) -> bool:  # noqa: ARG002  nothing to solve
        """Return whether the task of a cooperative game is done; the episode ends then."""
        return False

    def figures(self, state: StateT) -> Mapping[str, float]:  # noqa: ARG002  none
        """Return measures of a game that is over, such as its score, besides the returns."""
        return {}

    @property
    def scripts(self) -> Mapping[str, Script[StateT]]:
        """Scripted players by name, from random to the best, which comes last."""
        return {"random": self.random_move}

    def random_move(self, state: StateT, agent: AgentID, rng: Random) -> str:
        """Return a uniformly drawn legal move; a scripted player."""
        return pick(self.legal(state, agent), rng)


def pick(moves: Sequence[ItemT], rng: Random) -> ItemT:
    """Return one of `moves`, equal in all versions of Python for a seed."""
    return moves[int(rng.random() * len(moves))]


def draw(chances: Mapping[ItemT, float], rng: Random) -> ItemT:
    """Return a key drawn with its probability, equal in all versions of Python for a seed."""
    left = rng.random()
    for item, chance in chances.items():
        left -= chance
        if left < 0:
            return item
    return max(chances, key=chances.__getitem__)


def message_of(text: str) -> str:
    """Return what an answer says to other agents, as one line of at most 200 characters.

    The content of the last `<move>...</move>` counts, without it the whole text. Characters that
    are not printable become spaces, and double quotation marks single ones, because observations
    quote messages. Any text is a message; an empty one is silence.
    """
    tags = _TAG.findall(text[-MAX_READ_CHARS:])
    said = tags[-1] if tags else text[:MAX_READ_CHARS]
    shown = "".join(char if char.isprintable() else " " for char in said)
    return " ".join(shown.replace('"', "'").split())[:MAX_MESSAGE_CHARS].strip()


def tagged(move: str) -> str:
    """Return the answer that names a move."""
    return f"<move>{move}</move>"


def answer_parts(text: str) -> list[str]:
    """Return the parts of an answer that are to name the same move.

    These are the contents of all `<move>...</move>`, except repetitions of these dots, without any
    the last line that is not empty and no fence.
    """
    text = text[-MAX_READ_CHARS:]
    tags = _TAG.findall(text)
    named = [tag for tag in tags if tag.strip() not in ("...", "\u2026")]
    return named or tags or [line for line in text.splitlines() if line.strip(" \t`~")][-1:]


def named_move(text: str, legal: Sequence[str]) -> str | None:
    """Return the legal move that an answer names, or None.

    The content of `<move>...</move>` counts, without it the last line that is not empty. A move is
    named by its words, in any case, with any spaces and punctuation around them. Several tags must
    name the same move. A name that is part of a longer name that is there does not count, nor does
    a digit of a negative or decimal number.

    Args:
        text: Any text.
        legal: The legal moves.
    """
    found = {_named(part, legal) for part in answer_parts(text)}
    return found.pop() if len(found) == 1 else None


def _named(line: str, legal: Sequence[str]) -> str | None:
    line = _simplified(line)
    names = {move: _simplified(move) for move in legal}
    alone = line.strip(" .!:;,\"'`*")
    found = [move for move, name in names.items() if name == alone]
    if found:
        return found[0]
    for move in sorted(legal, key=len, reverse=True):  # a longer name hides those inside it
        if names[move] and names[move] in line:
            line, count = re.subn(_pattern_of(names[move]), "\0", line)
            found += [move] if count else []
    return found[0] if len(found) == 1 else None


def _pattern_of(name: str) -> str:
    before = r"(?<![\w\-\u2013\u2212])(?<!\d[.,])" if name[0].isdigit() else r"(?<!\w)"
    after = r"(?!\w)(?![.,]\d)" if name[-1].isdigit() else r"(?!\w)"
    return before + re.escape(name) + after


def _simplified(text: str) -> str:
    return " ".join(text.lower().split())
