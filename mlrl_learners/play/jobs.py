"""Planning and batched play of many episodes of a split.

The seed of an episode follows from the run's seed, the task and the sample; an actor samples from a
seed per batch. If infrastructure fails, the episodes of the batch are played one by one, and the
failing ones are returned as `FailedEpisode`.
"""

import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from mlrl_envs.errors import InfraError
from mlrl_learners.errors import ConfigError
from mlrl_learners.play.rollout import play_episodes
from mlrl_learners.seeding import derive_seed
from mlrl_learners.selfplay.seats import Seats
from mlrl_learners.types import Actor, Episode, FailedEpisode

__all__ = [
    "Job",
    "batches",
    "chosen_tasks",
    "plan_jobs",
    "play_jobs",
    "sampling_from",
    "sampling_opponents",
]

UNKNOWN_TASKS = 16


@dataclass(frozen=True, slots=True)
class Job:
    """One episode to play.

    Attributes:
        options: Options of the environment's `reset`.
        seed: Seed of the environment's `reset`.
        seats: Opponents in the episode, by agent.
    """

    options: Mapping[str, Any]
    seed: int
    seats: Seats = field(default_factory=dict)


def chosen_tasks(
    num_tasks: int | None, tasks: int | Sequence[int] | None
) -> int | Sequence[int] | None:
    """Return `tasks`, or 16 for all tasks of an environment that does not know their number."""
    return UNKNOWN_TASKS if num_tasks is None and tasks is None else tasks


def plan_jobs(
    num_tasks: int | None,
    tasks: int | Sequence[int] | None,
    *,
    samples: int,
    seed: int,
    batch_size: int,
) -> list[Job]:
    """Return every episode to play, with all samples of a task in a row.

    Args:
        num_tasks: Number of tasks of the environment's split; None if it is unknown.
        tasks: Number of tasks from the first on, or their indices; None for the whole split.
        samples: Episodes per task, at least 1.
        seed: Seed that the seeds of all episodes are derived from.
        batch_size: Batch size, at least 1; only checked here.

    Raises:
        ConfigError: If a number is outside its range, or the number of tasks is unknown.
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
    """Return a context in which an actor samples from `seed`, if the actor supports it."""
    context: AbstractContextManager[None] = nullcontext()
    if hasattr(actor, "sampling_seed"):
        context = actor.sampling_seed(seed)
    return context


@contextmanager
def sampling_opponents(seats: Iterable[Seats], actor: Actor, seed: int) -> Iterator[None]:
    """Let all opponents sample from seeds of their own inside the block, if they support that.

    Args:
        seats: Opponents of some episodes.
        actor: The actor that they play with; if it is also an opponent, its state is not changed.
        seed: Seed that theirs are derived from.
    """
    players = {id(opponent.actor): opponent.actor for seat in seats for opponent in seat.values()}
    players.pop(id(actor), None)
    with ExitStack() as stack:
        for number, player in enumerate(players.values()):
            stack.enter_context(sampling_from(player, derive_seed(seed, number)))
        yield


def play_jobs(
    env: Any,  # noqa: ANN401 - any PettingZoo parallel environment
    env_id: str,
    actor: Actor,
    batch: Sequence[Job],
    *,
    explore: bool,
) -> list[Episode | FailedEpisode]:
    """Play a batch of episodes on copies of `env`, one by one if infrastructure fails."""
    try:
        return list(
            play_episodes(
                [copy.deepcopy(env) for _ in batch],
                actor,
                task_options=[job.options for job in batch],
                seeds=[job.seed for job in batch],
                explore=explore,
                seats=[job.seats for job in batch],
            )
        )
    except InfraError as error:
        if len(batch) == 1:
            task = str(batch[0].options.get("task_index", ""))
            kind = type(error).__name__
            return [FailedEpisode(env_id, task, batch[0].seed, kind, str(error))]
    return [
        episode
        for job in batch
        for episode in play_jobs(env, env_id, actor, [job], explore=explore)
    ]
