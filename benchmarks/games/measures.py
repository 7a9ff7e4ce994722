"""Measures of a model in a game: exact where the game can be enumerated, else means of games."""

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import mlrl_envs
from benchmarks.games.answers import game_policy
from benchmarks.games.plans import Measure
from mlrl_envs.errors import InfraError
from mlrl_envs.games import (
    Policy,
    expected_returns,
    nash_conv,
    optimal_play,
    perfect_policy,
    value_against,
    welfare,
)
from mlrl_learners import evaluate, make

__all__ = ["measure"]

Figures = dict[str, float]
GAMES, EVALUATION_SEED = 200, 0


def measure(kind: Measure, folder: Path, env_id: str, options: Mapping[str, Any]) -> Figures:
    """Measure a model that plays all agents of a game.

    Args:
        kind: What is measured.
        folder: Folder of the model.
        env_id: The environment.
        options: Its options.

    Raises:
        InfraError: If games of a score failed.
    """
    if kind == "score":
        return _score(folder, env_id, options)
    env: Any = mlrl_envs.make(env_id, **options)
    policy, legal = game_policy(env, folder)
    return {"legal": legal, **EXACT[kind](env.family.game, policy)}


def _nash_conv(game: Any, policy: Policy) -> Figures:  # noqa: ANN401 - any game
    returns = expected_returns(game, policy)
    first = game.agents[0]
    return {"nash_conv": nash_conv(game, policy), f"return of {first}": returns[first]}


def _perfect(game: Any, policy: Policy) -> Figures:  # noqa: ANN401 - any game
    """Return how much of optimal play a policy plays, and its value against a perfect player."""
    found = optimal_play(game, policy)
    against = [value_against(game, policy, agent, perfect_policy(game)) for agent in game.agents]
    return {**found, "value_against_perfect": math.fsum(against) / len(against)}


def _outcome(game: Any, policy: Policy) -> Figures:  # noqa: ANN401 - any game
    """Return welfare, NashConv, and how much agents give or cooperate in the first round.

    `given` is the expected share of tokens that is given, `cooperation` the probability of the
    first option of a matrix.
    """
    found = {
        "welfare": welfare(expected_returns(game, policy)),
        "nash_conv": nash_conv(game, policy),
    }
    ((_, start),) = game.roots()
    rows = [policy[agent, game.view(start, agent)] for agent in game.agents]
    moves = game.legal(start, game.agents[0])
    shares = {move: math.fsum(row[move] for row in rows) / len(rows) for move in moves}
    if all(move.isdecimal() for move in moves):
        most = max(map(int, moves))
        return {**found, "given": math.fsum(int(m) * share for m, share in shares.items()) / most}
    return {**found, "cooperation": shares[moves[0]]}


def _score(folder: Path, env_id: str, options: Mapping[str, Any]) -> Figures:
    """Return the mean return of sampled games from seeds that training does not use."""
    env = mlrl_envs.make(env_id, **options)
    sampling = {
        "sampling": {"temperature": 1.0, "top_p": 1.0, "max_new_tokens": 8},
        "team": {"share_weights": True},
    }
    actor = make("magrpo", agents=env.possible_agents, model=str(folder), seed=0, **sampling)
    found = {}
    for name, explore in (("score", True), ("greedy score", False)):
        result = evaluate(
            env_id=env_id, actor=actor, env_options=options, split="eval", tasks=GAMES,
            seed=EVALUATION_SEED, explore=explore,
        )  # fmt: skip
        if result.failures:
            raise InfraError(f"{len(result.failures)} of {GAMES} games failed")
        found[name] = result.mean_return
    return found


EXACT: Mapping[str, Callable[[Any, Policy], Figures]] = {
    "nash_conv": _nash_conv,
    "perfect": _perfect,
    "outcome": _outcome,
}
