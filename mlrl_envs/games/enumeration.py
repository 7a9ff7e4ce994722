"""Enumeration of all states of a game, for exact measures."""

import functools
import itertools
from dataclasses import dataclass
from typing import Any

from mlrl_envs.errors import InvalidArgumentError
from mlrl_envs.games.base import Game
from mlrl_envs.types import AgentID

__all__ = ["InformationSet", "Layers", "Node", "information_sets", "layers_of"]

InformationSet = tuple[AgentID, str]
"""An agent and what it sees: `game.view(state, agent)`."""

MAX_NODES = 2_000_000


@dataclass(frozen=True, slots=True)
class Node:
    """A state in the enumeration of a game.

    Attributes:
        state: The state.
        keys: The information set of each agent that acts.
        legal: Their moves.
        children: The joint moves, and the place of the state after each in the next layer.
        returns: The returns, in the order of the agents; of interest at the end.
    """

    state: Any
    keys: tuple[InformationSet, ...]
    legal: tuple[tuple[str, ...], ...]
    children: tuple[tuple[tuple[str, ...], int], ...]
    returns: tuple[float, ...]


Layers = tuple[tuple[Node, ...], ...]
"""The states of a game by the number of moves before them."""


def information_sets(game: Game[Any]) -> dict[InformationSet, Any]:
    """Return all information sets, each with one of its states.

    Raises:
        InvalidArgumentError: If the game has too many states to enumerate.
    """
    layers = layers_of(game)
    found: dict[InformationSet, Any] = {}
    for node in itertools.chain.from_iterable(layers):
        for key in node.keys:
            found.setdefault(key, node.state)
    return found


@functools.lru_cache(maxsize=8)
def layers_of(game: Game[Any]) -> Layers:
    """Return the states of a game by the number of moves; equal states share a node.

    Raises:
        InvalidArgumentError: If the game has too many states to enumerate.
    """
    roots = game.roots()
    if roots is None:
        raise InvalidArgumentError(f"{game!r} has too many states to enumerate")
    layers = []
    places = {state: number for number, (_, state) in enumerate(roots)}
    total = 0
    while places:
        total += len(places)
        if total > MAX_NODES:
            raise InvalidArgumentError(f"{game!r} has more than {MAX_NODES} states")
        following: dict[Any, int] = {}
        layers.append(tuple(_node_of(game, state, following) for state in places))
        places = following
    return tuple(layers)


def _node_of(game: Game[Any], state: Any, following: dict[Any, int]) -> Node:  # noqa: ANN401  a state
    acting = game.acting(state)
    legal = tuple(game.legal(state, agent) for agent in acting)
    children = []
    for moves in itertools.product(*legal) if acting else ():
        child = game.play(state, dict(zip(acting, moves, strict=True)))
        children.append((moves, following.setdefault(child, len(following))))
    earned = game.returns(state)
    return Node(
        state,
        tuple((agent, game.view(state, agent)) for agent in acting),
        legal,
        tuple(children),
        tuple(earned[agent] for agent in game.agents),
    )
