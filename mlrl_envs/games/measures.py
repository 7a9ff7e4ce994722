"""Exact measures of policies in games: NashConv, values, optimal play, welfare, equality.

A policy gives the probabilities of moves for every information set, that is for every agent and
every view in which it acts. Games with few states are enumerated once and cached; several agents
may act at the same time. Agents must have perfect recall: a view tells all that was known before.

    NashConv = sum over agents of (value of a best response - value of the policy)

NashConv is 0 exactly in a Nash equilibrium. In a zero-sum game of two players, exploitability is
half of it (Lanctot et al., "A Unified Game-Theoretic Approach to Multiagent Reinforcement
Learning", 2017).
"""

import functools
import itertools
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from mlrl_envs.errors import InvalidArgumentError
from mlrl_envs.games.base import Game, Script
from mlrl_envs.types import AgentID

__all__ = [
    "InformationSet",
    "Policy",
    "best_response_value",
    "equality",
    "expected_returns",
    "information_sets",
    "mean_returns",
    "nash_conv",
    "uniform_policy",
    "welfare",
]

InformationSet = tuple[AgentID, str]
"""An agent and what it sees: `game.view(state, agent)`."""

Policy = Mapping[InformationSet, Mapping[str, float]]
"""Probabilities of moves, for each information set; moves that are left out have probability 0."""

MAX_NODES = 2_000_000
TOLERANCE = 1e-6


@dataclass(frozen=True, slots=True)
class _Node:
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


_Layers = tuple[tuple[_Node, ...], ...]


def information_sets(game: Game[Any]) -> dict[InformationSet, Any]:
    """Return all information sets, each with one of its states.

    Raises:
        InvalidArgumentError: If the game has too many states to enumerate.
    """
    layers = _layers_of(game)
    found: dict[InformationSet, Any] = {}
    for node in itertools.chain.from_iterable(layers):
        for key in node.keys:
            found.setdefault(key, node.state)
    return found


def uniform_policy(game: Game[Any]) -> Policy:
    """Return the policy that plays every legal move equally often."""
    policy = {}
    for node in itertools.chain.from_iterable(_layers_of(game)):
        for key, legal in zip(node.keys, node.legal, strict=True):
            policy[key] = dict.fromkeys(legal, 1 / len(legal))
    return policy


def expected_returns(game: Game[Any], policy: Policy) -> dict[AgentID, float]:
    """Return the expected return of every agent when all play by `policy`.

    Raises:
        InvalidArgumentError: If the policy lacks an information set, or its probabilities are not
            numbers from 0 to 1 with the sum 1; or if the game has too many states to enumerate.
    """
    layers = _layers_of(game)
    table = _checked(layers, policy)
    return {
        agent: _values(game, layers, table, index, best=False)
        for index, agent in enumerate(game.agents)
    }


def best_response_value(game: Game[Any], policy: Policy, agent: AgentID) -> float:
    """Return the highest expected return of `agent` while the others play by `policy`.

    Raises:
        InvalidArgumentError: See `expected_returns`.
    """
    layers = _layers_of(game)
    return _values(game, layers, _checked(layers, policy), game.agents.index(agent), best=True)


def nash_conv(game: Game[Any], policy: Policy) -> float:
    """Return the sum over agents of what a best response earns more than the policy.

    Raises:
        InvalidArgumentError: See `expected_returns`.
    """
    values = expected_returns(game, policy)
    return math.fsum(best_response_value(game, policy, agent) - values[agent] for agent in values)


def mean_returns(
    game: Game[Any], players: Mapping[AgentID, Script[Any]], seeds: Iterable[int]
) -> dict[AgentID, float]:
    """Return the mean return of scripted players over one game for each seed."""
    totals: defaultdict[AgentID, list[float]] = defaultdict(list)
    for seed in seeds:
        state, rng = game.start(seed), Random(seed)  # noqa: S311  no secret
        while acting := game.acting(state):
            state = game.play(state, {agent: players[agent](state, agent, rng) for agent in acting})
        for agent, value in game.returns(state).items():
            totals[agent].append(value)
    return {agent: math.fsum(values) / len(values) for agent, values in totals.items()}


def welfare(returns: Mapping[AgentID, float]) -> float:
    """Return the mean return over agents."""
    return math.fsum(returns.values()) / len(returns)


def equality(returns: Mapping[AgentID, float]) -> float:
    """Return 1 minus the Gini coefficient of returns of at least 0: 1 if all earn the same.

    Returns of which all are 0 are equal.

    Raises:
        InvalidArgumentError: If a return is negative, for which the coefficient is not defined.
    """
    values = list(returns.values())
    if min(values) < 0:
        raise InvalidArgumentError(f"equality needs returns of at least 0, got {min(values)}")
    total = math.fsum(values)
    if total == 0:
        return 1.0
    gaps = math.fsum(abs(a - b) for a in values for b in values)
    return 1 - gaps / (2 * len(values) * total)


@functools.lru_cache(maxsize=8)
def _layers_of(game: Game[Any]) -> _Layers:
    """Enumerate the states of a game by the number of moves; equal states share a node."""
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


def _node_of(game: Game[Any], state: Any, following: dict[Any, int]) -> _Node:  # noqa: ANN401  a state
    acting = game.acting(state)
    legal = tuple(game.legal(state, agent) for agent in acting)
    children = []
    for moves in itertools.product(*legal) if acting else ():
        child = game.play(state, dict(zip(acting, moves, strict=True)))
        children.append((moves, following.setdefault(child, len(following))))
    earned = game.returns(state)
    return _Node(
        state,
        tuple((agent, game.view(state, agent)) for agent in acting),
        legal,
        tuple(children),
        tuple(earned[agent] for agent in game.agents),
    )


def _checked(layers: _Layers, policy: Policy) -> dict[InformationSet, dict[str, float]]:
    """Return the probabilities of all legal moves."""
    table: dict[InformationSet, dict[str, float]] = {}
    for node in itertools.chain.from_iterable(layers):
        for key, legal in zip(node.keys, node.legal, strict=True):
            if key in table:
                continue
            if key not in policy:
                raise InvalidArgumentError(f"the policy lacks the information set {key!r}")
            row = {move: float(policy[key].get(move, 0.0)) for move in legal}
            # A NaN fails both comparisons.
            if not all(0 <= p <= 1 + TOLERANCE for p in row.values()) or not (
                abs(math.fsum(row.values()) - 1) <= TOLERANCE
            ):
                raise InvalidArgumentError(f"probabilities at {key!r} must sum to 1, got {row}")
            table[key] = row
    return table


def _values(
    game: Game[Any],
    layers: _Layers,
    table: Mapping[InformationSet, Mapping[str, float]],
    index: int,
    *,
    best: bool,
) -> float:
    """Return the value of an agent, by the policy or with its own best response.

    The best move of an information set maximises the sum of values over its states, weighted with
    the probability that chance and the other agents lead there.
    """
    agent = game.agents[index]
    reach = _reach(game, layers, table, agent)
    values: list[float] = []
    for depth in reversed(range(len(layers))):
        layer, later = layers[depth], values
        choice = _best_moves(layer, reach[depth], table, agent, later) if best else {}
        values = [
            math.fsum(p * later[child] for p, child in _outcomes(node, table, agent, choice))
            if node.children
            else node.returns[index]
            for node in layer
        ]
    roots = game.roots() or ()
    return math.fsum(p * value for (p, _), value in zip(roots, values, strict=True))


def _reach(
    game: Game[Any],
    layers: _Layers,
    table: Mapping[InformationSet, Mapping[str, float]],
    agent: AgentID,
) -> list[list[float]]:
    """Return how probably chance and the agents other than `agent` lead to each state."""
    reach = [[p for p, _ in game.roots() or ()]]
    for depth, layer in enumerate(layers[:-1]):
        following = [0.0] * len(layers[depth + 1])
        for node, probability in zip(layer, reach[depth], strict=True):
            for moves, child in node.children:
                following[child] += probability * _probability(node, moves, table, agent)
        reach.append(following)
    return reach


def _probability(
    node: _Node,
    moves: Sequence[str],
    table: Mapping[InformationSet, Mapping[str, float]],
    agent: AgentID,
) -> float:
    """Return the probability that the agents other than `agent` make these moves."""
    return math.prod(
        table[key][move] for key, move in zip(node.keys, moves, strict=True) if key[0] != agent
    )


def _outcomes(
    node: _Node,
    table: Mapping[InformationSet, Mapping[str, float]],
    agent: AgentID,
    choice: Mapping[InformationSet, str],
) -> Iterable[tuple[float, int]]:
    """Yield the children with their probabilities; `agent` plays `choice`, else the policy."""
    for moves, child in node.children:
        p = _probability(node, moves, table, agent)
        for key, move in zip(node.keys, moves, strict=True):
            if key[0] == agent:
                p *= float(choice[key] == move) if key in choice else table[key][move]
        yield p, child


def _best_moves(
    layer: Sequence[_Node],
    reach: Sequence[float],
    table: Mapping[InformationSet, Mapping[str, float]],
    agent: AgentID,
    later: Sequence[float],
) -> dict[InformationSet, str]:
    """Return the best move of `agent` in each of its information sets of a layer."""
    sums: defaultdict[InformationSet, defaultdict[str, float]] = defaultdict(
        lambda: defaultdict(float)
    )
    for node, probability in zip(layer, reach, strict=True):
        for place, key in enumerate(node.keys):
            if key[0] == agent:
                for moves, child in node.children:
                    weight = probability * _probability(node, moves, table, agent)
                    sums[key][moves[place]] += weight * later[child]
    return {key: max(row, key=row.__getitem__) for key, row in sums.items()}
