"""Actors of a benchmark suite: `--actor` words with the token budget of the suite.

The learner of a run gets the token limit of the suite instead of the limit of its training.
`{seed}` in a word is replaced by each seed of the suite, so that one result covers runs of several
training seeds, and `{env}` by the name of each environment, so that it covers a team for each.
"""

import dataclasses
import hashlib
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mlrl_learners.cli.actors import (
    SCRIPT,
    SCRIPTS,
    SERVED,
    WRAPPERS,
    check_path,
    check_word,
    make_actor,
    make_learner,
    run_of,
    unwrapped,
)
from mlrl_learners.cli.referenced_actor import is_code
from mlrl_learners.config.option_places import has_groups, merge_options
from mlrl_learners.config.run import load_config
from mlrl_learners.config.stored import load_stored_config
from mlrl_learners.errors import CheckpointError, ConfigError
from mlrl_learners.registry import registry
from mlrl_learners.runs.files import CONFIG_FILE
from mlrl_learners.training.checkpoint import latest_checkpoint, read_checkpoint
from mlrl_learners.types import Actor, AgentID

__all__ = ["NamedActor", "check_agents", "short_name", "takes_options"]

SEED, ENV = "{seed}", "{env}"
LONGEST_NAME = 80  # characters, as in the schema of results
NO_WEIGHTS = ("baselines.pt", "optimizer.pt", "generator.pt", "team.json")


class NamedActor:
    """Actor of a command-line word, made anew for each entry of a suite.

    Args:
        word: A word as for `mlrl evaluate --actor`; it may contain `{seed}` and `{env}`.
        options: Options of the wrapped learner or endpoint, without the token budget.
        name: Name in results, at most 80 characters; by default the word, with paths shortened to
            their last part.
        prepare: Called with each actor that is made, before it is wrapped.

    Raises:
        UnknownNameError: If the word is misspelt.
        ConfigError: If the actor takes no options, an option is set by the suite, or the name is
            too long.
    """

    def __init__(
        self,
        word: str,
        options: Mapping[str, Any] | None = None,
        name: str | None = None,
        prepare: Callable[[Actor], object] | None = None,
    ) -> None:
        self._prepare = prepare
        self._ways, self._base = unwrapped(word)
        self._options = dict(options or {})
        for option in ("sampling.max_new_tokens", "max_new_tokens", "max_tokens"):
            group, _, field = option.rpartition(".")
            if field in (self._options.get(group, {}) if group else self._options):
                raise ConfigError(f"{option} is the suite's budget; change tokens there")
        if self._options and not takes_options(self._base):
            raise ConfigError(f"{self._base} takes no options, got {', '.join(self._options)}")
        if not self._has_places():
            check_word(self._base)
        if name and len(name) > LONGEST_NAME:
            raise ConfigError(f"--name has at most {LONGEST_NAME} characters, got {len(name)}")
        self.name = name or short_name(":".join([*self._ways, self._short(self._base)]))
        self._weights: dict[str, str] = {}
        self._settings: dict[str, dict[str, Any]] = {}

    def describe(self, seeds: Sequence[int], env_ids: Sequence[str]) -> dict[str, Any]:
        """Return a description of the actor as JSON values, for a result file."""
        plays: dict[str, list[str]] = {}  # wrapped actor -> environments
        for env_id in env_ids:
            for word in dict.fromkeys(self.words(seeds, env_id)):
                plays.setdefault(word, []).append(env_id)
        words = list(plays)
        trained = [{**found, "plays": plays[w]} for w in words if (found := self._trained(w))]
        return {
            "name": self.name,
            "way": ":".join(self._ways) or "plain",
            "base": self._short(self._base),
            "options": self._options,
            "weights": [digest for digest in map(self._hash, words) if digest],
            **({} if all(map(self._takes_budget, words)) else {"token_budget": "not taken"}),
            **({"trained": trained} if trained else {}),
        }

    def words(self, seeds: Sequence[int], env_id: str) -> list[str]:
        """Return the wrapped actors that play an environment, each once."""
        return list(dict.fromkeys(self._word(seed, env_id) for seed in seeds))

    def _takes_budget(self, word: str) -> bool:
        """Return whether answers are limited to the tokens of the suite.

        A learner of another package is limited if its factory has a keyword `max_new_tokens`.
        """
        path = Path(word)
        if run_of(path) is None:
            return True
        config = load_stored_config(_checkpoint(path)[0] / CONFIG_FILE)
        return bool(_token_limit(config.learner.name, 1))

    def identity(self, seed: int, env_id: str) -> dict[str, Any]:
        """Return values that identify the actor: wrappers, weights, settings and server.

        Raises:
            ModelNotFoundError: If a place is filled by a seed or environment without a run.
        """
        word = self._word(seed, env_id)
        if self._has_places():
            check_path(word)
        server = self._base.rpartition("@")[2] if self._base.startswith(f"{SERVED}:") else ""
        return {
            "ways": self._ways,
            "base": self._short(word),
            "options": self._settings_of(word),
            "weights": self._hash(word),
            "server": hashlib.sha256(server.encode()).hexdigest() if server else "",
        }

    def make(self, agents: Sequence[AgentID], *, env_id: str, tokens: int, seed: int) -> Actor:
        """Make the actor.

        Raises:
            ConfigError: If a run was trained for other agents.
            CheckpointError: If a run has no checkpoint.
            ModelNotFoundError: If there is no such model.
        """
        word = self._word(seed, env_id)
        if run_of(Path(word)) is not None:
            actor: Actor = self._learned(Path(word), agents, tokens)
        else:
            given = {}
            if takes_options(word):
                given = merge_options(self._options, _word_limit(word, tokens))
            actor = make_actor(word, agents, seed=seed, options=given)
        if self._prepare is not None:
            self._prepare(actor)
        for way in reversed(self._ways):
            actor = WRAPPERS[way][0](actor)
        return actor

    def _learned(self, path: Path, agents: Sequence[AgentID], tokens: int) -> Actor:
        run_dir, checkpoint = _checkpoint(path)
        config = load_stored_config(run_dir / CONFIG_FILE)
        limit = _token_limit(config.learner.name, tokens)
        options = merge_options(config.learner.options, self._options, limit)
        learner = make_learner(
            dataclasses.replace(
                config, learner=dataclasses.replace(config.learner, options=options)
            )
        )
        check_agents(run_dir, getattr(learner, "agents", tuple(agents)), agents)
        read_checkpoint(checkpoint, learner)
        return learner

    def _settings_of(self, word: str) -> dict[str, Any]:
        """Return the options of the actor, including those of the training run."""
        if word not in self._settings:
            learner: dict[str, Any] = {}
            if run_of(Path(word)) is not None:
                config = load_config(_checkpoint(Path(word))[0] / CONFIG_FILE).learner
                learner = {"name": config.name, "model": config.model, **config.options}
            self._settings[word] = merge_options(learner, self._options)
        return self._settings[word]

    def _has_places(self) -> bool:
        return SEED in self._base or ENV in self._base

    def _word(self, seed: int, env_id: str) -> str:
        """Return the word of one seed and environment: `{env}` is `story` for `mlrl/story-v1`."""
        name = re.sub(r"-v\d+$", "", env_id.rpartition("/")[2])
        return self._base.replace(SEED, str(seed)).replace(ENV, name)

    def _short(self, word: str) -> str:
        """Return the wrapped actor without folders and servers."""
        if word.startswith(f"{SERVED}:"):
            return word.rpartition("@")[0] or word
        is_path = self._has_places() or Path(word).exists() or ".py:" in word
        return Path(word).name if is_path else word

    def _hash(self, word: str) -> str:
        """Return a hash of the weights of a run or model folder, or of a script; else empty."""
        if word not in self._weights:
            file, is_file, _ = word.partition(".py:")
            path = Path(f"{file}.py" if is_file else word)
            if run_of(path) is not None:
                path = _checkpoint(path)[1] / "learner"
            known = path.is_dir() or (is_file and path.is_file())
            self._weights[word] = _hash_of(path) if known else ""
        return self._weights[word]

    def _trained(self, word: str) -> dict[str, Any] | None:
        path = Path(word)
        if run_of(path) is None:
            return None
        run_dir, checkpoint = _checkpoint(path)
        config = load_config(run_dir / CONFIG_FILE)
        return {
            "learner": config.learner.name,
            "model": config.learner.model,
            "env": config.env.id,
            "options": dict(config.env.options),
            "iterations": int(checkpoint.name.rpartition("_")[2]),
            "tasks_per_iteration": config.train.tasks_per_iteration,
            "seed": config.train.seed,
        }


def _token_limit(learner: str, tokens: int) -> dict[str, Any]:
    """Return the option of a learner that limits the tokens of an answer; empty without one."""
    limit = {"max_new_tokens": tokens}
    if has_groups(learner):
        return {"sampling": limit}
    named = inspect.signature(registry[learner].load()).parameters
    return limit if "max_new_tokens" in named else {}


def _word_limit(word: str, tokens: int) -> dict[str, Any]:
    """Return the option that limits the tokens of an endpoint or a model; empty for code."""
    if word.startswith(f"{SERVED}:"):
        return {"max_tokens": tokens}
    return {} if is_code(word) else _token_limit("magrpo", tokens)


def check_agents(run_dir: Path, trained: Sequence[AgentID], agents: Sequence[AgentID]) -> None:
    """Check that a run was trained for the agents that it is to play.

    Args:
        run_dir: The run.
        trained: Agents of its training.
        agents: Agents that it is to play.

    Raises:
        ConfigError: If there are others among them.
    """
    if set(agents) - set(trained):
        raise ConfigError(
            f"{run_dir.name} was trained for the agents {', '.join(trained)}, "
            f"not for {', '.join(agents)}; choose entries with --only"
        )


def short_name(name: str) -> str:
    """Return a name of at most 80 characters: the end of a longer one is replaced by a hash."""
    if len(name) <= LONGEST_NAME:
        return name
    mark = hashlib.sha256(name.encode("utf-8", "backslashreplace")).hexdigest()[:8]
    return f"{name[: LONGEST_NAME - 9]}-{mark}"


def takes_options(word: str) -> bool:
    """Return whether an unwrapped actor has options: a run, a model, an endpoint or code."""
    return word not in SCRIPTS and not word.startswith(f"{SCRIPT}:")


def _checkpoint(path: Path) -> tuple[Path, Path]:
    run_dir = run_of(path) or path
    checkpoint = latest_checkpoint(run_dir) if path == run_dir else path
    if checkpoint is None:
        raise CheckpointError(f"{str(run_dir)!r} has no checkpoint yet")
    return run_dir, checkpoint


def _hash_of(folder: Path) -> str:
    if folder.is_file():  # a script
        return hashlib.sha256(folder.read_bytes()).hexdigest()
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.name not in NO_WEIGHTS:
            digest.update(path.relative_to(folder).as_posix().encode())
            with path.open("rb") as file:
                while block := file.read(1 << 20):
                    digest.update(block)
    return digest.hexdigest()
