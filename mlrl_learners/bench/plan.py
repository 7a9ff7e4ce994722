"""What a suite asks an actor to play: every episode, under a key that says what it is.

The key is a hash of the entry's name, the task's content, the environment's options, the actor and
how it samples.
An episode that is stored under its key is done; one whose task, actor or budget has changed has
another key, and is played.
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

    def identity(self, seed: int) -> Mapping[str, Any]:
        """Return what tells this actor from any other, weights included, as JSON values."""
        ...

    def make(self, agents: Sequence[AgentID], *, tokens: int, seed: int) -> Actor:
        """Make the actor for an entry's agents.

        Args:
            agents: Whom it plays.
            tokens: Longest answer, in tokens.
            seed: One of the suite's.
        """
        ...


@dataclass(frozen=True, slots=True)
class Unit:
    """One episode of a suite.

    Attributes:
        key: Content hash.
        entry: Name of the entry.
        suite_seed: One of the suite's seeds.
        job: Task and seed, as it is played.
    """

    key: str
    entry: str
    suite_seed: int
    job: Job


@dataclass(frozen=True, slots=True)
class Batch:
    """Episodes that are played side by side, always the same ones.

    Attributes:
        units: In order.
        seed: What the actor samples from.
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
    """Return every episode of an entry, seed by seed, in batches.

    Seeds that one actor plays share batches; a batch never holds two actors.

    Raises:
        ConfigError: If a number is outside its range, or the tasks cannot be counted.
    """
    by_actor = groupby(suite.seeds, key=lambda seed: content_hash(dict(source.identity(seed))))
    return [
        batch
        for _, seeds in by_actor
        for batch in _batches(
            [
                unit
                for seed in seeds
                for unit in _units(entry, env, seed, source.identity(seed), explore=explore)
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
        )
        for job in jobs
    ]


def _task_hash(env: Any, job: Job) -> str:  # noqa: ANN401 - any PettingZoo parallel environment
    """Hash a task's content; a stranger's task is known by its number alone."""
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
