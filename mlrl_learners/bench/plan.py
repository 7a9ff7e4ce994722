"""Episodes that a suite asks for, each identified by a content hash.

The hash covers the name of the entry, the content of the task, the options of the environment, the
fingerprint of the scorer, the actor and its sampling. An episode that is stored under its hash is
not played again; a change of task, scorer, actor or budget gives another hash, so that one result
has one scorer.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Protocol

import mlrl_envs
from mlrl_learners.bench.suite import Entry, Suite
from mlrl_learners.play.jobs import Job, plan_jobs
from mlrl_learners.seeding import derive_seed
from mlrl_learners.types import Actor, AgentID

__all__ = ["ActorSource", "Batch", "Unit", "content_hash", "plan_entry"]


class ActorSource(Protocol):
    """Makes the actor that plays a suite."""

    def identity(self, seed: int, env_id: str) -> Mapping[str, Any]:
        """Return JSON values that identify the actor, including its weights."""
        ...

    def make(self, agents: Sequence[AgentID], *, env_id: str, tokens: int, seed: int) -> Actor:
        """Make the actor for an entry's agents.

        Args:
            agents: Agents that it plays.
            env_id: Id of the environment.
            tokens: Maximum length of an answer in tokens.
            seed: Seed of the suite.
        """
        ...


@dataclass(frozen=True, slots=True)
class Unit:
    """One episode of a suite.

    Attributes:
        key: Content hash.
        entry: Name of the entry.
        suite_seed: Seed of the suite.
        job: Task and seed of the episode.
        scorer: Fingerprint of the scorer; empty for environments of others.
    """

    key: str
    entry: str
    suite_seed: int
    job: Job
    scorer: str


@dataclass(frozen=True, slots=True)
class Batch:
    """Episodes that are played in parallel; a batch is the same in every attempt.

    Attributes:
        units: Its episodes, in order.
        seed: Sampling seed of the actor.
    """

    units: tuple[Unit, ...]
    seed: int


def plan_entry(
    suite: Suite,
    entry: Entry,
    env: Any,  # noqa: ANN401 - any PettingZoo parallel environment
    source: ActorSource,
    *,
    explore: bool,
    batch_size: int,
) -> list[Batch]:
    """Return the episodes of an entry in batches, ordered by seed.

    Seeds with the same actor share batches; a batch never has two actors.

    Raises:
        ConfigError: If a number is out of range, or the environment has no `num_tasks`.
    """
    identities = {seed: source.identity(seed, entry.env) for seed in suite.seeds}
    by_actor = groupby(suite.seeds, key=lambda seed: content_hash(dict(identities[seed])))
    return [
        batch
        for _, seeds in by_actor
        for batch in _batches(
            [
                unit
                for seed in seeds
                for unit in _units(entry, env, seed, identities[seed], explore=explore)
            ],
            batch_size,
        )
    ]


def content_hash(value: object) -> str:
    """Return the SHA-256 of JSON values; the order of keys does not matter."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def _units(
    entry: Entry,
    env: Any,  # noqa: ANN401 - any PettingZoo parallel environment
    seed: int,
    identity: Mapping[str, Any],
    *,
    explore: bool,
) -> list[Unit]:
    jobs = plan_jobs(
        getattr(env, "num_tasks", None),
        entry.tasks,
        samples=entry.budget.samples,
        seed=seed,
        batch_size=1,
    )
    common = {
        "entry": entry.name,
        "env": entry.env,
        "options": entry.env_options,
        "scorer": mlrl_envs.fingerprint(env).get("scorer", ""),
        "actor": dict(identity),
        "tokens": entry.budget.tokens,
        "explore": explore,
        "suite_seed": seed,
    }
    return [
        Unit(
            content_hash({**common, "task": _task_hash(env, job), "seed": job.seed}),
            entry.name,
            seed,
            job,
            str(common["scorer"]),
        )
        for job in jobs
    ]


def _task_hash(env: Any, job: Job) -> str:  # noqa: ANN401 - any PettingZoo parallel environment
    """Hash the content of a task; tasks of third-party environments by their index alone."""
    index = job.options.get("task_index")
    if index is None or not isinstance(env, mlrl_envs.TextParallelEnv):
        return f"{index}"
    text = repr(env.family.tasks[index]).encode("utf-8", "surrogatepass")
    return hashlib.sha256(text).hexdigest()


def _batches(units: Sequence[Unit], size: int) -> list[Batch]:
    return [
        Batch(tuple(units[first : first + size]), derive_seed(units[0].suite_seed, first))
        for first in range(0, len(units), size)
    ]
