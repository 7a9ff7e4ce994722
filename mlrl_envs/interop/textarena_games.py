"""List of TextArena's games: those that the adapter opens, and why it does not open the others.

`textarena_games.json` is written by `python -m benchmarks.textarena.games`, which tries every game.
A game is TextArena's id up to its version (`TicTacToe-v0`), a variant what follows (`small-train`).
"""

import functools
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any

from mlrl_envs.errors import InvalidArgumentError, UnknownNameError, unknown_name

__all__ = [
    "NAMESPACE",
    "ArenaGame",
    "ArenaVariant",
    "forget",
    "game_of",
    "games",
    "split_id",
    "textarena_version",
]

NAMESPACE = "textarena/"
DATA = "textarena_games.json"


@dataclass(frozen=True, slots=True)
class ArenaVariant:
    """A game with settings, as TextArena registers it.

    Attributes:
        players: Numbers of players that it can be played with.
        rewards: Lowest and highest reward.
        python: Lowest version of Python that its code compiles on.
        reason: Why the adapter does not open it; empty if it does.
    """

    players: tuple[int, ...] = ()
    rewards: tuple[float, float] = (-1.0, 1.0)
    python: tuple[int, ...] = ()
    reason: str = ""

    @property
    def refused(self) -> str:
        """Why it cannot be played with this Python; empty if it can."""
        if self.reason or self.python <= sys.version_info:
            return self.reason
        return "needs Python {}.{}, this is {}.{}".format(*self.python, *sys.version_info)


@dataclass(frozen=True, slots=True)
class ArenaGame:
    """A game of TextArena.

    Attributes:
        name: Its id without settings, such as `"TicTacToe-v0"`.
        variants: Its variants by name; that of the default settings is `""`.
    """

    name: str
    variants: Mapping[str, ArenaVariant]

    @property
    def open(self) -> dict[str, ArenaVariant]:
        """The variants that the adapter opens, some of them with a newer Python only."""
        return {name: each for name, each in self.variants.items() if not each.reason}

    def variant(self, name: str) -> ArenaVariant:
        """Return a variant that the adapter opens.

        Raises:
            UnknownNameError: If the game has no such variant.
            InvalidArgumentError: If the variant is not on the list.
        """
        if name not in self.variants and not name:
            known = ", ".join(map(repr, self.open or self.variants))
            raise InvalidArgumentError(f"{NAMESPACE}{self.name} needs a variant, one of {known}")
        if name not in self.variants:
            raise unknown_name(f"variant of {NAMESPACE}{self.name}", name, self.variants)
        found = self.variants[name]
        if found.refused:
            which = f"variant {name!r} of {NAMESPACE}{self.name}" if name else NAMESPACE + self.name
            raise InvalidArgumentError(f"{which} cannot be played here: {found.refused}")
        return found


def split_id(textarena_id: str) -> tuple[str, str]:
    """Return the game and the variant of an id of TextArena: `"Nim-v0-large"` has both."""
    base, version, variant = textarena_id.partition("-v0")
    return base + version, variant.removeprefix("-")


@functools.cache
def games() -> Mapping[str, ArenaGame]:
    """Return every game of TextArena by name, whether the adapter opens it or not."""
    return {
        name: ArenaGame(name, {key: _variant(each) for key, each in variants.items()})
        for name, variants in _stored()["games"].items()
    }


def forget() -> None:
    """Read the list again at its next use."""
    games.cache_clear()
    _stored.cache_clear()


def textarena_version() -> str:
    """Return the version of TextArena that the list was made with."""
    return str(_stored()["textarena"])


def game_of(env_id: str) -> ArenaGame:
    """Return the game with an id such as `"textarena/TicTacToe-v0"`, open or not.

    Raises:
        UnknownNameError: If TextArena has no such game; the message names the nearest one.
    """
    name = env_id.removeprefix(NAMESPACE)
    if name not in games():
        raise _unknown(env_id, name)
    return games()[name]


def _unknown(env_id: str, name: str) -> UnknownNameError:
    base, variant = split_id(name)
    if base in games() and variant in games()[base].variants:
        return UnknownNameError(
            f"unknown environment {env_id!r}; use {NAMESPACE + base!r} with variant={variant!r}"
        )
    return unknown_name("environment", env_id, [NAMESPACE + each for each in games()])


def _variant(stored: Mapping[str, Any]) -> ArenaVariant:
    if "reason" in stored:
        return ArenaVariant(reason=str(stored["reason"]))
    low, high = stored["rewards"]
    python = tuple(map(int, stored["python"].split("."))) if "python" in stored else ()
    return ArenaVariant(tuple(stored["players"]), (float(low), float(high)), python)


@functools.cache
def _stored() -> dict[str, dict[str, dict[str, dict[str, object]]]]:
    text = resources.files("mlrl_envs.interop").joinpath(DATA).read_text(encoding="utf-8")
    return json.loads(text)  # type: ignore[no-any-return]
