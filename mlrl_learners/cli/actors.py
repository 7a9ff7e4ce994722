"""Who plays, by the word a user writes: a script, a run, a model, an endpoint, or a way of playing.

`pipeline:runs/a` plays the run `runs/a` as a pipeline; such words nest.
"""

import difflib
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import mlrl_envs
from mlrl_envs.models.endpoint import as_endpoint
from mlrl_learners.actors import (
    DiscussionActor,
    EndpointActor,
    PipelineActor,
    RandomActor,
    ReferenceActor,
    SingleActor,
)
from mlrl_learners.cli.parser import printable
from mlrl_learners.config.run import LearnerConfig, RunConfig, load_config
from mlrl_learners.errors import CheckpointError, ConfigError, unknown_name
from mlrl_learners.registry import make
from mlrl_learners.runs.files import CONFIG_FILE
from mlrl_learners.testing import ScriptedActor
from mlrl_learners.training.checkpoint import latest_checkpoint, read_checkpoint
from mlrl_learners.types import Actor, AgentID, Learner

__all__ = [
    "SERVED",
    "SUMMARIES",
    "check_word",
    "load_run",
    "make_actor",
    "make_learner",
    "options_of",
    "run_of",
    "unwrapped",
]

STATE_FILE = "state.json"


def _just(base: Actor) -> Actor:
    return base


SCRIPTS = {
    "reference": "the right answers that come with the data: what full marks are",
    "random": "short random text: the floor",
    "human": "you, at the keyboard",
}
SERVED = "endpoint"
WRAPPERS: dict[str, tuple[Callable[[Actor], Actor], str]] = {
    "single": (SingleActor, "one agent alone, its teammates write nothing"),
    "concatenation": (_just, "each agent answers alone, blind to the others: plain play"),
    "pipeline": (PipelineActor, "one after another, each reads what those before it wrote"),
    "discussion": (DiscussionActor, "all answer, read all answers, and answer again"),
}

SUMMARIES: dict[str, str] = {
    **SCRIPTS,
    f"{SERVED}:MODEL@URL": "a model on an OpenAI-compatible server",
    "RUN, CHECKPOINT or MODEL": "what a run has learned, or a model by its name or folder",
    **{f"{name}:ACTOR": summary for name, (_, summary) in WRAPPERS.items()},
}
"""Every word that `--actor` takes, with a line about each."""


def make_actor(
    word: str, agents: Sequence[AgentID], *, seed: int = 0, options: Mapping[str, Any] | None = None
) -> Actor:
    """Make an actor from what a user wrote.

    Args:
        word: One of `SUMMARIES`, such as `random`, `runs/a`, `endpoint:my-model@http://host/v1`,
            `pipeline:runs/a`.
        agents: Whom it plays.
        seed: Decides everything it draws.
        options: Of the learner that a model is played by, such as `max_new_tokens`, or that a run
            was trained by; of the endpoint, such as `max_tokens`.

    Raises:
        UnknownNameError: If the word is close to one of ours, or its prefix is none.
        ConfigError: If a word lacks its second half.
        ModelNotFoundError: If it is none of these.
        CheckpointError: If it is a run without a checkpoint.
    """
    if word in SCRIPTS:
        return _script(word, seed)
    if Path(word).exists():
        return _from_path(word, agents, seed, options)
    prefix, _, rest = word.partition(":")
    if prefix in WRAPPERS:
        if not rest:
            raise ConfigError(f"{prefix} wraps another actor: write {prefix}:ACTOR")
        return WRAPPERS[prefix][0](make_actor(rest, agents, seed=seed, options=options))
    if prefix == SERVED:
        return _served(rest, seed, options)
    check_word(word)
    return _from_path(word, agents, seed, options)


def check_word(word: str) -> None:
    """Find misspelt words before anything is made: a hub is not asked for them.

    Raises:
        UnknownNameError: If the word is close to one of ours, or its prefix is none.
    """
    prefix, colon, _ = word.partition(":")
    if word in SCRIPTS or Path(word).exists() or (colon and prefix in (*WRAPPERS, SERVED)):
        return
    known = [*WRAPPERS, SERVED] if colon else [*SCRIPTS, *WRAPPERS, SERVED]
    is_near = difflib.get_close_matches(prefix, known, n=1, cutoff=0.75)
    if colon or (is_near and "/" not in word):
        raise unknown_name("actor", prefix, known)


def unwrapped(word: str) -> tuple[list[str], str]:
    """Split a word into the ways of playing, outermost first, and who plays at the bottom.

    Raises:
        ConfigError: If a way of playing lacks its actor.
    """
    ways = []
    while not Path(word).exists():
        prefix, colon, rest = word.partition(":")
        if prefix not in WRAPPERS or not colon:
            break
        if not rest:
            raise ConfigError(f"{prefix} wraps another actor: write {prefix}:ACTOR")
        ways.append(prefix)
        word = rest
    return ways, word


def _script(word: str, seed: int) -> Actor:
    if word == "reference":
        return ReferenceActor()
    return RandomActor(seed) if word == "random" else ScriptedActor(_ask)


def _from_path(
    word: str, agents: Sequence[AgentID], seed: int, options: Mapping[str, Any] | None
) -> Actor:
    run_dir = run_of(Path(word))
    if run_dir is not None:
        return load_run(run_dir, None if Path(word) == run_dir else Path(word), options)
    settings = {"share_weights": True, **(options or {})}
    return make("magrpo", agents=agents, model=word, seed=seed, **settings)


def _served(rest: str, seed: int, options: Mapping[str, Any] | None) -> Actor:
    """Make an actor of `MODEL@URL`; the name of a model may itself hold an @."""
    model, at, url = rest.rpartition("@")
    if not (model and at and url):
        raise ConfigError(
            f"write {SERVED}:MODEL@URL, such as {SERVED}:my-model@http://host:8000/v1"
        )
    settings = {"temperature": 0.8, "top_p": 0.95, "seed": seed, **(options or {})}
    return EndpointActor(as_endpoint({**settings, "base_url": url, "model": model}))


def _ask(agent: AgentID, observation: str) -> str:
    """Show an observation and read an answer from the keyboard."""
    print(f"\n--- you are {agent} ---\n{printable(observation)}", file=sys.stderr)
    print("\nyour answer, ended by a line with a single dot:", file=sys.stderr)
    lines = []
    for line in sys.stdin:
        if line.rstrip("\n") == ".":
            break
        lines.append(line)
    return "".join(lines).removesuffix("\n")


def run_of(path: Path) -> Path | None:
    """Return the run directory that `path` is, or is a checkpoint of; None for anything else."""
    if (path / CONFIG_FILE).is_file():
        return path
    if (path / STATE_FILE).is_file() and (path.parent.parent / CONFIG_FILE).is_file():
        return path.parent.parent
    return None


def options_of(learner: LearnerConfig) -> Mapping[str, Any]:
    """Return what a command line says of the learner of an actor: its options, and nothing else.

    Raises:
        ConfigError: If it names a learner or a model, which the actor does already.
    """
    if learner != LearnerConfig(options=learner.options):
        raise ConfigError("who plays is said already: leave --learner.name and --learner.model out")
    return learner.options


def load_run(
    run_dir: Path, checkpoint: Path | None = None, options: Mapping[str, Any] | None = None
) -> Learner:
    """Make a run's learner as it was at a checkpoint, the last one by default.

    Args:
        run_dir: The run's folder.
        checkpoint: One of its checkpoints.
        options: Of the learner, in place of those that it was trained with.

    Raises:
        UnknownNameError: If the learner has no such option.
        CheckpointError: If there is no checkpoint.
    """
    path = checkpoint or latest_checkpoint(run_dir)
    if path is None:
        raise CheckpointError(f"{str(run_dir)!r} has no checkpoint yet")
    config = load_config(run_dir / CONFIG_FILE)
    changed = replace(config.learner, options={**config.learner.options, **(options or {})})
    learner = make_learner(replace(config, learner=changed))
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
