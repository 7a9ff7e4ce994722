"""Who plays, by the word a user writes: `random`, `human`, a run, a checkpoint or a model."""

import difflib
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import mlrl_envs
from mlrl_learners.checkpoint import latest_checkpoint, read_checkpoint
from mlrl_learners.config import RunConfig, load_config
from mlrl_learners.errors import CheckpointError, ConfigError, unknown_name
from mlrl_learners.registry import make
from mlrl_learners.types import Actor, AgentID, Completion, Learner

__all__ = ["RandomActor", "load_run", "make_actor", "make_learner", "run_of"]

CONFIG_FILE = "config.yaml"
STATE_FILE = "state.json"
WORDS = ("reference", "random", "human")


class RandomActor:
    """Writes short random text: the floor that every actor should beat.

    Args:
        seed: Decides what is written.
    """

    ALPHABET = "etaoin shrdlu\n()=:.,"

    def __init__(self, seed: int = 0) -> None:
        self._random = random.Random(seed)  # noqa: S311 - reproducible on purpose

    def act(
        self,
        observations: Sequence[Mapping[AgentID, str]],
        *,
        num_samples: int = 1,
        explore: bool = True,  # noqa: ARG002 - it has no better judgement to fall back on
    ) -> list[Mapping[AgentID, list[Completion]]]:
        """Answer without reading."""
        return [
            {agent: [Completion(self._text()) for _ in range(num_samples)] for agent in node}
            for node in observations
        ]

    def _text(self) -> str:
        return "".join(self._random.choices(self.ALPHABET, k=self._random.randint(0, 200)))


def make_actor(
    word: str, agents: Sequence[AgentID], *, seed: int = 0, options: Mapping[str, Any] | None = None
) -> Actor:
    """Make an actor from what a user wrote.

    Args:
        word: `random`, a run directory, a checkpoint in one, or a model's name or folder.
        agents: Whom it plays.
        seed: Decides everything it draws.
        options: Of the learner that a model is played by, such as `max_new_tokens`.

    Raises:
        ModelNotFoundError: If it is none of these.
        CheckpointError: If it is a run without a checkpoint.
    """
    if word == "random":
        return RandomActor(seed)
    near = difflib.get_close_matches(word, WORDS, n=1, cutoff=0.75)
    if near and "/" not in word and not Path(word).exists():  # do not ask a hub for a misspelling
        raise unknown_name("actor", word, WORDS)
    run_dir = run_of(Path(word))
    if run_dir is not None:
        return load_run(run_dir, None if Path(word) == run_dir else Path(word))
    settings = {"share_weights": True, **(options or {})}
    return make("magrpo", agents=agents, model=word, seed=seed, **settings)


def run_of(path: Path) -> Path | None:
    """Return the run directory that `path` is, or is a checkpoint of; None for anything else."""
    if (path / CONFIG_FILE).is_file():
        return path
    if (path / STATE_FILE).is_file() and (path.parent.parent / CONFIG_FILE).is_file():
        return path.parent.parent
    return None


def load_run(run_dir: Path, checkpoint: Path | None = None) -> Learner:
    """Make a run's learner as it was at a checkpoint, the last one by default.

    Raises:
        CheckpointError: If there is no checkpoint.
    """
    path = checkpoint or latest_checkpoint(run_dir)
    if path is None:
        raise CheckpointError(f"{str(run_dir)!r} has no checkpoint yet")
    learner = make_learner(load_config(run_dir / CONFIG_FILE))
    read_checkpoint(path, learner)
    return learner


def make_learner(config: RunConfig) -> Learner:
    """Make the learner that a configuration describes, for its environment's agents."""
    env = mlrl_envs.make(config.env.id, **config.env.options)
    agents = list(env.possible_agents)
    env.close()
    for name in ("agents", "model", "seed"):
        if name in config.learner.options:
            raise ConfigError(f"learner.options.{name} is set elsewhere; remove it there")
    return make(
        config.learner.name,
        agents=agents,
        model=config.learner.model,
        seed=config.train.seed,
        **config.learner.options,
    )
