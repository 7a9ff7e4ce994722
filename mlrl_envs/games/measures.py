"""Exact values, best responses and NashConv of policies in games with few states.

A policy gives the probabilities of moves for every information set, that is for every agent and
every view in which it acts. Games are enumerated once and cached; several agents may act at the
same time. Agents must have perfect recall: a view tells all that was known before.

    NashConv = sum over agents of (value of a best response - value of the policy)

NashConv is 0 exactly in a Nash equilibrium. In a zero-sum game of two players, exploitability is
half of it (Lanctot et al., "A Unified Game-Theoretic Approach to Multiagent Reinforcement
Learning", 2017).
"""

import itertools
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from random import Random
from typing import Any

from mlrl_envs.errors import InvalidArgumentError, unknown_name
from mlrl_envs.games.base import Game
from mlrl_envs.games.enumeration import InformationSet, Layers, Node, information_sets, layers_of
from mlrl_envs.types import AgentID

__all__ = [
    "Policy",
    "best_response_value",
    "checked_policy",
    "expected_returns",
    "nash_conv",
    "scripted_policy",
    "uniform_policy",
    "value_against",
]

Policy = Mapping[InformationSet, Mapping[str, float]]
"""Probabilities of moves, for each information set; moves that are left out have probability 0."""

TOLERANCE = 1e-6


def uniform_policy(game: Game[Any]) -> Policy:
    """Return the policy that plays every legal move equally often."""
    policy = {}
    for node in itertools.chain.from_iterable(layers_of(game)):
        for key, legal in zip(node.keys, node.legal, strict=True):
            policy[key] = dict.fromkeys(legal, 1 / len(legal))
    return policy


def expected_returns(game: Game[Any], policy: Policy) -> dict[AgentID, float]:
    """Return the expected return of every agent when all play by `policy`.

    Raises:
        InvalidArgumentError: If the policy lacks an information set, or its probabilities are not
            numbers from 0 to 1 with the sum 1; or if the game has too many states to enumerate.
    """
    layers = layers_of(game)
    table = checked_policy(layers, policy)
    return {
        agent: _values(game, layers, table, index, best=False)
        for index, agent in enumerate(game.agents)
    }


def best_response_value(game: Game[Any], policy: Policy, agent: AgentID) -> float:
    """Return the highest expected return of `agent` while the others play by `policy`.

    Raises:
        InvalidArgumentError: See `expected_returns`.
    """
    layers = layers_of(game)
    return _values(
        game, layers, checked_policy(layers, policy), game.agents.index(agent), best=True
    )


def nash_conv(game: Game[Any], policy: Policy) -> float:
    """Return the sum over agents of what a best response earns more than the policy.

    Raises:
        InvalidArgumentError: See `expected_returns`.
    """
    values = expected_returns(game, policy)
    return math.fsum(best_response_value(game, policy, agent) - values[agent] for agent in values)


def scripted_policy(game: Game[Any], script: str) -> Policy:
    """Return the policy of a scripted player that draws no random numbers.

    Raises:
        UnknownNameError: If the game has no such script.
        InvalidArgumentError: If the game has too many states to enumerate.
    """
    if script not in game.scripts:
        raise unknown_name("script", script, game.scripts)
    choose = game.scripts[script]
    return {
        key: {choose(state, key[0], Random(0)): 1.0}  # noqa: S311  no secret
        for key, state in information_sets(game).items()
    }


def value_against(game: Game[Any], policy: Policy, agent: AgentID, opponents: Policy) -> float:
    """Return the expected return of `agent` by `policy` while the others play by `opponents`.

    Raises:
        InvalidArgumentError: See `expected_returns`.
    """
    own = {key: row for key, row in policy.items() if key[0] == agent}
    return expected_returns(game, {**opponents, **own})[agent]


def checked_policy(layers: Layers, policy: Policy) -> dict[InformationSet, dict[str, float]]:
    """Return the probabilities of all legal moves.

    Raises:
        InvalidArgumentError: If the policy lacks an information set, or its probabilities are not
            numbers from 0 to 1 with the sum 1.
    """
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
    layers: Layers,
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
    layers: Layers,
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
    node: Node,
    moves: Sequence[str],
    table: Mapping[InformationSet, Mapping[str, float]],
    agent: AgentID,
) -> float:
    """Return the probability that the agents other than `agent` make these moves."""
    return math.prod(
        table[key][move] for key, move in zip(node.keys, moves, strict=True) if key[0] != agent
    )


def _outcomes(
    node: Node,
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
    layer: Sequence[Node],
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
