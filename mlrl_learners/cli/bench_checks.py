"""Checks of a benchmark before an episode is played: its actors and the place of its result."""

import functools
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import mlrl_envs
from mlrl_learners.bench.suite import Suite
from mlrl_learners.cli.actors import check_player, run_of
from mlrl_learners.cli.bench_actors import NamedActor, check_agents
from mlrl_learners.cli.early_checks import check_writable
from mlrl_learners.config.option_places import has_groups
from mlrl_learners.config.stored import load_stored_config
from mlrl_learners.errors import ConfigError, RunDirError
from mlrl_learners.runs.files import CONFIG_FILE
from mlrl_learners.types import AgentID

__all__ = ["check_bench", "default_folder"]

STEM = re.compile(r"[\w.+-]+")
"""Names of results whose transcripts the schema of results accepts."""


def check_bench(path: Path, actors: Sequence[NamedActor], suite: Suite) -> None:
    """Check, before a model is loaded, that a result can be written and its suite be played.

    Args:
        path: File of the result; its transcripts are beside it.
        actors: Actors that play the suite.
        suite: The suite.

    Raises:
        RunDirError: If `path` is a folder, or its folder cannot be written.
        ConfigError: If its name has characters that names of transcripts do not have, or a script,
            a run or a reference does not fit an entry.
        CheckpointError: If a run has no checkpoint.
        ModelNotFoundError: If an actor looks like a path, and is neither a run nor a model.
    """
    _check_file(path)
    for actor in actors:
        _check_actor(actor, suite)


def default_folder(suite: Suite, name: str) -> Path:
    """Return the folder of an actor inside that of a suite, also for names without letters."""
    slug = re.sub(r"[^\w.+-]+", "-", name).strip("-.") or "actor"
    return Path("runs") / "bench" / f"{suite.name}-v{suite.version}" / slug


def _check_actor(actor: NamedActor, suite: Suite) -> None:
    for entry in suite.entries:
        env = entry.make_env()
        try:
            for word in actor.words(suite.seeds, entry.env):
                _check_word(word, env)
        finally:
            env.close()


def _check_file(path: Path) -> None:
    if path.is_dir():
        raise RunDirError(f"{str(path)!r} is a folder: name a file for the result")
    if not STEM.fullmatch(path.stem):
        raise ConfigError(
            f"a result is named by letters, digits and the signs _.+-, got {path.name!r}"
        )
    check_writable(path.parent)


def _check_word(word: str, env: Any) -> None:  # noqa: ANN401 - any PettingZoo parallel environment
    check_player(word, env)
    run_dir = run_of(Path(word))
    trained = _trained_agents(run_dir) if run_dir is not None else None
    if run_dir is not None and trained is not None:
        check_agents(run_dir, trained, env.possible_agents)


@functools.lru_cache(maxsize=64)
def _trained_agents(run_dir: Path) -> Sequence[AgentID] | None:
    """Return the agents of a run; None for learners of others, which may play any agents."""
    config = load_stored_config(run_dir / CONFIG_FILE)
    if not has_groups(config.learner.name):
        return None
    env = mlrl_envs.make(config.env.location, **config.env.options)
    try:
        return tuple(env.possible_agents)
    finally:
        env.close()
