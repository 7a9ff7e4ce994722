"""Actors from command-line words: baselines, scripts, runs, models, endpoints and wrappers.

`pipeline:runs/a` is the run `runs/a` wrapped as a pipeline; wrappers nest.
"""

import difflib
import functools
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import mlrl_envs
from mlrl_envs.references import import_reference
from mlrl_envs.workflows import SHAPES
from mlrl_learners.actors import (
    RandomActor,
    ReferenceActor,
    ScriptActor,
    SingleActor,
    WorkflowActor,
)
from mlrl_learners.actors.game_script import check_script
from mlrl_learners.cli.parser import printable
from mlrl_learners.cli.referenced_actor import is_code, referenced_actor
from mlrl_learners.cli.served_actor import SERVED, served_actor, split_served
from mlrl_learners.config.option_places import merge_options
from mlrl_learners.config.run import LearnerConfig, RunConfig
from mlrl_learners.config.stored import load_stored_config
from mlrl_learners.errors import CheckpointError, ConfigError, ModelNotFoundError, unknown_name
from mlrl_learners.registry import make
from mlrl_learners.runs.files import CONFIG_FILE
from mlrl_learners.runs.folders import STATE_FILE
from mlrl_learners.testing import ScriptedActor
from mlrl_learners.training.checkpoint import latest_checkpoint, read_checkpoint
from mlrl_learners.types import Actor, AgentID, Learner

__all__ = [
    "SCRIPT",
    "SERVED",
    "SUMMARIES",
    "check_path",
    "check_player",
    "check_word",
    "load_run",
    "make_actor",
    "make_learner",
    "options_of",
    "run_of",
    "unwrapped",
]


def _just(base: Actor) -> Actor:
    return base


def _clause(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:].rstrip(".")


SCRIPTS = {
    "reference": "reference actions of the data: the highest score",
    "random": "short random text: the lowest score",
    "human": "input from the keyboard",
}
SCRIPT = "script"
WRAPPERS: dict[str, tuple[Callable[[Actor], Actor], str]] = {
    "single": (SingleActor, "one agent acts, its teammates send empty text"),
    "concatenation": (_just, "each agent answers without seeing the others: the default"),
    **{
        name: (functools.partial(WorkflowActor, shape=name), f"workflow: {_clause(shape.summary)}")
        for name, shape in SHAPES.items()
    },
}

SUMMARIES: dict[str, str] = {
    **SCRIPTS,
    f"{SCRIPT}:NAME": "a scripted player of a game, such as script:perfect; see env.scripts",
    f"{SERVED}:MODEL@URL": "a model on an OpenAI-compatible server",
    "FILE.py:NAME, MODULE:NAME": "a function (agent, observation) -> answer, or a class of actors",
    "RUN, CHECKPOINT or MODEL": "a trained run, or a model by its name or folder",
    **{f"{name}:ACTOR": summary for name, (_, summary) in WRAPPERS.items()},
}
"""Every word that `--actor` accepts, with one line about it."""


def make_actor(
    word: str, agents: Sequence[AgentID], *, seed: int = 0, options: Mapping[str, Any] | None = None
) -> Actor:
    """Make an actor from a command-line word.

    Args:
        word: A word as in `SUMMARIES`, such as `random`, `runs/a`, `pipeline:runs/a` or
            `endpoint:my-model@http://host/v1`.
        agents: Agents that it acts for.
        seed: Seed of all its random numbers.
        options: Options of the learner for a run or a model, such as `sampling`; options of
            the endpoint for an endpoint, such as `max_tokens`.

    Raises:
        UnknownNameError: If the word is a misspelt script or wrapper, or has an unknown prefix.
        ConfigError: If a prefix is not followed by an actor or a model.
        ModelNotFoundError: If the word is neither a run nor a model.
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
    if prefix in (SCRIPT, SERVED):
        return (
            ScriptActor(_script_name(rest), seed)
            if prefix == SCRIPT
            else served_actor(rest, seed, options)
        )
    if is_code(word):
        return referenced_actor(word, agents, seed, options or {})
    check_word(word)
    return _from_path(word, agents, seed, options)


def check_word(word: str) -> None:
    """Check the spelling of a word before a model of that name is looked up on the hub.

    Raises:
        UnknownNameError: If the word is a misspelt script or wrapper, or has an unknown prefix.
    """
    prefix, colon, _ = word.partition(":")
    if word in SCRIPTS or Path(word).exists() or (colon and prefix in (*WRAPPERS, SERVED, SCRIPT)):
        return
    if is_code(word):
        return
    known = [*WRAPPERS, SERVED, SCRIPT] if colon else [*SCRIPTS, *WRAPPERS, SERVED, SCRIPT]
    is_near = difflib.get_close_matches(prefix, known, n=1, cutoff=0.75)
    if colon or (is_near and "/" not in word):
        raise unknown_name("actor", prefix, known)


def check_player(word: str, env: Any) -> None:  # noqa: ANN401 - any PettingZoo environment
    """Check, before a model is loaded, that a word names an actor that can play an environment.

    Raises:
        UnknownNameError: If the word is misspelt, or the environment has no such script.
        ConfigError: If a prefix is incomplete, or the environment has no scripts.
        CheckpointError: If the word is a run without a checkpoint.
        ModelNotFoundError: If the word looks like a path and there is nothing.
    """
    _, base = unwrapped(word)
    check_word(base)
    prefix, _, rest = base.partition(":")
    run_dir = run_of(Path(base))
    if run_dir is not None and Path(base) == run_dir and latest_checkpoint(run_dir) is None:
        raise CheckpointError(f"{base!r} has no checkpoint yet")
    if Path(base).exists() or base in SCRIPTS:
        return
    if is_code(base):
        import_reference(base)
    elif prefix == SCRIPT:
        check_script(_script_name(rest), env)
    elif prefix == SERVED:
        split_served(rest)
    else:
        check_path(base)


def check_path(word: str) -> None:
    """Check that a run or model exists, if its name looks like a path.

    Raises:
        ModelNotFoundError: If there is nothing.
    """
    is_path = word.count("/") > 1 or word.startswith((".", "/", "runs/"))
    if is_path and not Path(word).exists():
        raise ModelNotFoundError(f"there is no run, snapshot or model at {word!r}")


def unwrapped(word: str) -> tuple[list[str], str]:
    """Split a word into its wrappers, outermost first, and the wrapped actor.

    Raises:
        ConfigError: If a wrapper is not followed by an actor.
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
    _check_own(options or {})
    settings = merge_options({"team": {"share_weights": True}}, options or {})
    return make("magrpo", agents=agents, model=word, seed=seed, **settings)


def _script_name(rest: str) -> str:
    if not rest:
        raise ConfigError(f"write {SCRIPT}:NAME, such as {SCRIPT}:random or {SCRIPT}:perfect")
    return rest


def _ask(agent: AgentID, observation: str) -> str:
    """Print an observation and read an answer from the keyboard."""
    print(f"\n--- you are {agent} ---\n{printable(observation)}", file=sys.stderr)
    print("\nyour answer; end it with a line that holds a single dot:", file=sys.stderr)
    lines = []
    for line in sys.stdin:
        if line.rstrip("\n") == ".":
            break
        lines.append(line)
    return "".join(lines).removesuffix("\n")


def run_of(path: Path) -> Path | None:
    """Return the run directory of a run or of one of its checkpoints; None for other paths."""
    if (path / CONFIG_FILE).is_file():
        return path
    if (path / STATE_FILE).is_file() and (path.parent.parent / CONFIG_FILE).is_file():
        return path.parent.parent
    return None


def options_of(learner: LearnerConfig) -> Mapping[str, Any]:
    """Return the learner options of a command line whose actor is given by a word.

    Raises:
        ConfigError: If the learner or the model is given as well.
    """
    if learner != LearnerConfig(options=learner.options):
        raise ConfigError("the actor is given: leave --learner.name and --learner.model out")
    return learner.options


def load_run(
    run_dir: Path, checkpoint: Path | None = None, options: Mapping[str, Any] | None = None
) -> Learner:
    """Make the learner of a run and load a checkpoint.

    Args:
        run_dir: Run directory.
        checkpoint: A checkpoint of the run; None for the last one.
        options: Options of the learner that replace those of the run.

    Raises:
        UnknownNameError: If the learner has no such option.
        CheckpointError: If there is no checkpoint.
    """
    path = checkpoint or latest_checkpoint(run_dir)
    if path is None:
        raise CheckpointError(f"{str(run_dir)!r} has no checkpoint yet")
    config = load_stored_config(run_dir / CONFIG_FILE)
    changed = merge_options(config.learner.options, options or {})
    learner = make_learner(replace(config, learner=replace(config.learner, options=changed)))
    read_checkpoint(path, learner)
    return learner


def make_learner(config: RunConfig) -> Learner:
    """Make the learner of a configuration for the agents of its environment."""
    env = mlrl_envs.make(config.env.location, **config.env.options)
    agents = list(env.possible_agents)
    env.close()
    _check_own(config.learner.options)
    return make(
        config.learner.name,
        agents=agents,
        model=config.learner.model,
        seed=config.train.seed,
        **config.learner.options,
    )


def _check_own(options: Mapping[str, Any]) -> None:
    """Check that options do not set what the command sets."""
    for name in ("agents", "model", "name", "seed"):
        if name in options:
            raise ConfigError(f"learner.options.{name} is set by the run; remove it there")
