"""Opponents of a configuration: their checks, and the actors of their words."""

import difflib
import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import mlrl_envs
from mlrl_learners.cli.actors import SCRIPT, SCRIPTS, check_player, make_actor, unwrapped
from mlrl_learners.config.opponents import LATEST, SNAPSHOTS
from mlrl_learners.config.option_places import grouped
from mlrl_learners.config.run import RunConfig
from mlrl_learners.errors import ConfigError, unknown_name
from mlrl_learners.runs.folders import is_below
from mlrl_learners.selfplay.opponents import OpponentDraw
from mlrl_learners.selfplay.seats import Seats
from mlrl_learners.selfplay.snapshots import SnapshotPool
from mlrl_learners.types import Actor, Learner

__all__ = ["check_opponents", "evaluation_config", "evaluation_seats", "make_players"]


def check_opponents(config: RunConfig, future: Sequence[Path] = ()) -> None:
    """Check, before a model is loaded, that the opponents exist and leave an agent to the learner.

    Args:
        config: A configuration.
        future: Folders that are written before the run begins; opponents in them are not checked.

    Raises:
        UnknownNameError: If there is no such agent, opponent or script.
        ConfigError: If the opponents play every agent, or a word is incomplete.
        CheckpointError: If an opponent is a run without a checkpoint.
        ModelNotFoundError: If an opponent is a path without a run or a model.
    """
    if not config.opponents.words():
        return
    env = mlrl_envs.make(config.env.location, **config.env.options)
    try:
        agents = list(env.possible_agents)
        options = grouped(config.learner.name, config.learner.options)
        frozen = options.get("team", options).get("frozen") or ()
        trained = [agent for agent in agents if agent not in frozen]
        config.opponents.check_agents(agents, trained=trained)
        for word in _words(config):
            if is_below(unwrapped(word)[1], future):
                continue
            _check_spelling(word, env)
            check_player(word, env)
    finally:
        env.close()


def make_players(config: RunConfig) -> dict[str, Actor]:
    """Make the actor of every opponent besides `latest` and `snapshots`, by its word."""
    words = _words(config)
    if not words:
        return {}
    env = mlrl_envs.make(config.env.location, **config.env.options)
    agents = list(env.possible_agents)
    env.close()
    return {word: make_actor(word, agents, seed=config.train.seed) for word in words}


def evaluation_config(config: RunConfig) -> RunConfig:
    """Return the configuration with the opponents of evaluations as its only ones."""
    weights = config.opponents.weights(evaluation=True)
    opponents = replace(config.opponents, agents=dict(weights), eval_agents=None)
    return replace(config, opponents=opponents)


def evaluation_seats(
    config: RunConfig, actor: Actor, run_dir: Path | None, done: int, seed: int
) -> Callable[[int], Seats] | None:
    """Return the opponents of each episode of an evaluation, or None without any.

    Args:
        config: From `evaluation_config`, checked by `check_opponents`.
        actor: The actor that is evaluated.
        run_dir: The run that it is from, with its snapshots; None for other actors.
        done: Iterations of its training.
        seed: Seed of the draws.

    Raises:
        ConfigError: If an opponent is `snapshots` and the actor is not from a run with snapshots.
    """
    if not config.opponents.words():
        return None
    env = mlrl_envs.make(config.env.location, **config.env.options)
    agents = list(env.possible_agents)
    env.close()
    pool = None
    if config.opponents.has_pool:
        if run_dir is None or not hasattr(actor, "update"):
            raise ConfigError("the opponent 'snapshots' takes a run directory; name a snapshot")
        pool = SnapshotPool(run_dir, cast("Learner", actor), config.opponents)
    players = make_players(config)
    draw = OpponentDraw(
        config.opponents, agents, actor=actor, players=players, pool=pool, seed=seed
    )
    return functools.partial(draw.evaluation, done)


def _check_spelling(word: str, env: Any) -> None:  # noqa: ANN401 - any PettingZoo environment
    """Refuse words that are nearly those of opponents, and not words of actors."""
    if word in getattr(env, "scripts", ()) and word not in SCRIPTS:
        raise unknown_name("opponent", word, [f"{SCRIPT}:{word}"])
    if difflib.get_close_matches(word, (LATEST, SNAPSHOTS), 1, 0.75) and not Path(word).exists():
        raise unknown_name("opponent", word, (LATEST, SNAPSHOTS))


def _words(config: RunConfig) -> list[str]:
    return [word for word in config.opponents.words() if word not in (LATEST, SNAPSHOTS)]
