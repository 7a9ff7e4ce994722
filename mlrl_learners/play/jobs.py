"""Many episodes of a split, planned by number and played in batches.

What is random about an episode follows from the seed, its task and its sample; what an actor
samples, from the seed it is given for a batch. An episode that infrastructure broke comes back as a
`FailedEpisode`, and its neighbours are played without it.
"""

import copy
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import islice
from typing import Any

from mlrl_envs.errors import InfraError
from mlrl_learners.errors import ConfigError
from mlrl_learners.play.rollout import play_episodes
from mlrl_learners.seeding import derive_seed
from mlrl_learners.types import Actor, Episode, FailedEpisode

__all__ = ["Job", "batches", "plan_jobs", "play_jobs", "sampling_from"]


@dataclass(frozen=True, slots=True)
class Job:
    """One episode that is to be played.

    Attributes:
        options: Of the environment's `reset`.
        seed: Of the environment's `reset`.
    """

    options: Mapping[str, Any]
    seed: int


def plan_jobs(
    num_tasks: int | None,
    tasks: int | Sequence[int] | None,
    *,
    samples: int,
    seed: int,
    batch_size: int,
) -> list[Job]:
    """Return every episode that is to be played, all samples of a task in a row.

    Args:
        num_tasks: Tasks of the environment's split; None where it does not say.
        tasks: How many of the first tasks, or which by index; None for the whole split.
        samples: Episodes of each task, at least 1.
        seed: Decides the seed of every episode.
        batch_size: Checked here, with the other numbers.

    Raises:
        ConfigError: If a number is outside its range, or the tasks cannot be counted.
    """
    for name, number in (("samples", samples), ("batch_size", batch_size)):
        if number < 1:
            raise ConfigError(f"{name} must be at least 1, got {number}")
    if isinstance(tasks, int) and tasks < 1:
        raise ConfigError(f"tasks must be at least 1, got {tasks}")
    if num_tasks is None and not isinstance(tasks, int):
        raise ConfigError("this environment does not say how many tasks it has; give a number")
    if tasks is None or isinstance(tasks, int):
        limit = tasks or num_tasks or 0
        tasks = range(limit if num_tasks is None else min(limit, num_tasks))
    options: list[Mapping[str, Any]] = [
        {} if num_tasks is None else {"task_index": index} for index in tasks
    ]
    return [
        Job(option, derive_seed(seed, index, sample))
        for index, option in zip(tasks, options, strict=True)
        for sample in range(samples)
    ]


def batches(jobs: Sequence[Job], size: int) -> Iterator[list[Job]]:
    """Yield the jobs in order, `size` at a time."""
    remaining = iter(jobs)
    while batch := list(islice(remaining, size)):
        yield batch


def sampling_from(actor: Actor, seed: int) -> AbstractContextManager[None]:
    """Let an actor that can be seeded sample from `seed` inside the block."""
    context: AbstractContextManager[None] = nullcontext()
    if hasattr(actor, "sampling_seed"):
        context = actor.sampling_seed(seed)
    return context


def play_jobs(
    env: Any,  # noqa: ANN401 - any PettingZoo parallel environment
    env_id: str,
    actor: Actor,
    batch: Sequence[Job],
    *,
    explore: bool,
) -> list[Episode | FailedEpisode]:
    """Play a batch on copies of `env`; where infrastructure fails, its episodes one by one."""
    try:
        return list(
            play_episodes(
                [copy.deepcopy(env) for _ in batch],
                actor,
                task_options=[job.options for job in batch],
                seeds=[job.seed for job in batch],
                explore=explore,
            )
        )
    except InfraError as error:
        if len(batch) == 1:
            task = str(batch[0].options.get("task_index", ""))
            kind = type(error).__name__
            return [FailedEpisode(env_id, task, batch[0].seed, kind, str(error))]
    return [
        outcome
        for job in batch
        for outcome in play_jobs(env, env_id, actor, [job], explore=explore)
    ]
