"""Optimal play in games with perfect information, and how much of it a policy plays."""

import math
from typing import Any

from mlrl_envs.errors import InvalidArgumentError
from mlrl_envs.games.base import Game
from mlrl_envs.games.enumeration import InformationSet, layers_of
from mlrl_envs.games.measures import Policy, checked_policy

__all__ = ["optimal_moves", "optimal_play", "perfect_policy"]

TOLERANCE = 1e-6


def optimal_moves(game: Game[Any]) -> dict[InformationSet, tuple[str, ...]]:
    """Return the moves that keep the value of every position, by backward induction.

    Raises:
        InvalidArgumentError: If the game has too many states, is not a zero-sum game of two
            players, or some state has several agents that act.
    """
    layers = layers_of(game)
    if not game.zero_sum or len(game.agents) != 2:
        raise InvalidArgumentError(f"{game!r} is not a zero-sum game of two players")
    found: dict[InformationSet, tuple[str, ...]] = {}
    later: list[float] = []
    for layer in reversed(layers):
        values = []
        for node in layer:
            if not node.children:
                values.append(node.returns[0])
                continue
            if len(node.keys) != 1:
                raise InvalidArgumentError(f"several agents act in {node.state!r}")
            sign = 1 if node.keys[0][0] == game.agents[0] else -1
            best = max(sign * later[child] for _, child in node.children)
            found[node.keys[0]] = tuple(
                moves[0]
                for moves, child in node.children
                if abs(sign * later[child] - best) <= TOLERANCE
            )
            values.append(sign * best)
        later = values
    return found


def perfect_policy(game: Game[Any]) -> Policy:
    """Return the policy that draws evenly from the optimal moves of every position.

    Raises:
        InvalidArgumentError: See `optimal_moves`.
    """
    return {key: dict.fromkeys(moves, 1 / len(moves)) for key, moves in optimal_moves(game).items()}


def optimal_play(game: Game[Any], policy: Policy) -> dict[str, float]:
    """Return how well a policy plays in all positions of a game with perfect information.

    Returns:
        `probability`: mean probability of an optimal move over all positions with a choice, that is
        with a move that is not optimal; `perfect`: share of them in which the most probable move is
        optimal (a tie counts only if all of its moves are optimal); `positions`: their number.

    Raises:
        InvalidArgumentError: See `optimal_moves` and `expected_returns`.
    """
    table = checked_policy(layers_of(game), policy)
    rows = [
        (table[key], moves)
        for key, moves in optimal_moves(game).items()
        if len(moves) < len(table[key])
    ]
    chances = [math.fsum(row[move] for move in moves) for row, moves in rows]
    perfect = [
        all(move in moves for move in row if row[move] >= max(row.values()) - TOLERANCE)
        for row, moves in rows
    ]
    number = max(len(rows), 1)
    return {
        "probability": math.fsum(chances) / number,
        "perfect": sum(perfect) / number,
        "positions": float(len(rows)),
    }
