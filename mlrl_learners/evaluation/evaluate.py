"""Evaluation of an actor on a split, with bootstrap intervals.

The team return of an episode is the mean over agents of their undiscounted returns; agents that an
opponent plays do not count. Episodes that infrastructure broke are listed separately and enter no
figure.
"""

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import mlrl_envs
from mlrl_envs.errors import InfraError
from mlrl_envs.serve import remote_id
from mlrl_learners.config.env import EnvLike, chosen_env, evaluation_options
from mlrl_learners.errors import ConfigError, NumericsError
from mlrl_learners.figures.episode_figures import env_figures, figures_of
from mlrl_learners.play.jobs import (
    Job,
    batches,
    chosen_tasks,
    plan_jobs,
    play_jobs,
    sampling_from,
    sampling_opponents,
)
from mlrl_learners.progress import progress_bar
from mlrl_learners.runs.evaluations import EvaluationResult
from mlrl_learners.selfplay.own import own_episode
from mlrl_learners.selfplay.seats import Seats
from mlrl_learners.types import Actor, Episode, FailedEpisode
from mlrl_learners.types.contract import check_actor

__all__ = ["EvaluationResult", "evaluate"]

Outcomes = tuple[list[Episode], list[FailedEpisode]]


def evaluate(
    *,
    actor: Actor,
    env_id: str | None = None,
    env: EnvLike | Sequence[Any] | None = None,
    split: str | None = "eval",
    env_options: Mapping[str, Any] | None = None,
    env_server: str | Sequence[str] | None = None,
    samples: int = 1,
    k: Sequence[int] | None = None,
    tasks: int | Sequence[int] | None = None,
    seed: int = 0,
    explore: bool = True,
    batch_size: int = 32,
    progress: bool = False,
    on_episode: Callable[[Episode], None] | None = None,
    seats_of: Callable[[int], Seats] | None = None,
) -> EvaluationResult:
    """Play tasks of a split with an actor and return the figures.

    An actor with a method `sampling_seed(seed)` samples from `seed`, and its own random state is
    restored afterwards.

    Args:
        actor: Plays every agent that has no opponent; figures are those of its agents.
        env_id: A registered environment, or a reference as for `mlrl_envs.make`.
        env: In place of `env_id`, an environment, of which copies are played, a function or class
            that makes one, or a list of several, see `mlrl_learners.config.env.several_envs`.
        split: Split to play; None, or the default, for environments without splits.
        env_options: Arguments of `mlrl_envs.make` other than the split.
        env_server: Environment servers that play it, `host:port`; None for this process.
        samples: Episodes per task, at least 1.
        k: Values of k for pass@k, each from 1 to `samples`; None for powers of two and `samples`.
        tasks: Number of tasks, counted from the first, or their indices; None for all, and for
            16 episodes by seed in environments without `num_tasks`.
        seed: Seed from which the seeds of the episodes are derived.
        explore: Sample answers; decode greedily if false.
        batch_size: Number of episodes played in parallel, at least 1.
        progress: Show a progress bar.
        on_episode: Called with each episode when its batch is done.
        seats_of: From the number of an episode to its opponents by agent; None for none.

    Raises:
        ConfigError: If `samples`, `k`, `tasks` or `batch_size` is out of range.
        ContractError: If `actor` has no method `act`.
        InfraError: If infrastructure broke every episode.
        NumericsError: If a return is not finite; the message names the task and the agent.
    """
    check_actor(actor)
    ks = _checked_ks(k, samples)
    env_id, options = chosen_env(env_id, env, env_options)
    location = remote_id(env_id, env_server)
    if split:
        options = evaluation_options(location, {**options, "split": split})
        split = options.get("split")
    made = mlrl_envs.make(location, **options)
    started = time.perf_counter()
    try:
        num_tasks = getattr(made, "num_tasks", None)
        jobs = _plan(num_tasks, tasks, seats_of, samples=samples, seed=seed, batch_size=batch_size)
        bar = progress_bar(total=len(jobs), description=env_id, enabled=progress)
        seats = [job.seats for job in jobs]
        with bar, sampling_from(actor, seed), sampling_opponents(seats, actor, seed):
            episodes, failures = _play_all(
                batches(jobs, batch_size),
                lambda batch: play_jobs(made, env_id, actor, batch, explore=explore),
                on_episode or (lambda _: None),
                bar.update,
            )
    finally:
        made.close()
    if not episodes:
        raise InfraError(f"every episode of {env_id} failed: {failures[0].message}")
    seconds = time.perf_counter() - started
    own = [own_episode(each) for each in episodes]
    _check_returns(own)
    figures = figures_of(own, ks=ks, seed=seed)
    return EvaluationResult(
        env_id=env_id,
        split=split,
        seed=seed,
        samples=samples,
        explore=explore,
        seconds=seconds,
        episodes=tuple(episodes),
        failures=tuple(failures),
        environments=env_figures(own, seed=seed),
        **{name: getattr(figures, name) for name in figures.__slots__},
    )


def _check_returns(episodes: Sequence[Episode]) -> None:
    """Raise `NumericsError` if a return is not finite, with which every mean would be unknown."""
    for episode in episodes:
        for agent, value in episode.returns.items():
            if not math.isfinite(value):
                raise NumericsError(f"{episode.task_id}: the return of {agent} is {value}")


def _checked_ks(k: Sequence[int] | None, samples: int) -> list[int]:
    powers = [2**n for n in range(max(1, samples).bit_length())]
    ks = sorted({*powers, max(1, samples)}) if k is None else sorted(set(k))
    if not ks or ks[0] < 1 or ks[-1] > max(1, samples):
        raise ConfigError(f"k must be numbers from 1 to samples = {samples}, got {list(k or ())}")
    return ks


def _plan(
    num_tasks: int | None,
    tasks: int | Sequence[int] | None,
    seats_of: Callable[[int], Seats] | None,
    **options: int,
) -> list[Job]:
    """Return every episode to play, with its opponents; `options` are those of `plan_jobs`."""
    jobs = plan_jobs(num_tasks, chosen_tasks(num_tasks, tasks), **options)
    if seats_of is None:
        return jobs
    return [replace(job, seats=seats_of(number)) for number, job in enumerate(jobs)]


def _play_all(
    planned: Iterable[Sequence[Job]],
    play: Callable[[Sequence[Job]], Sequence[Episode | FailedEpisode]],
    on_episode: Callable[[Episode], None],
    on_batch: Callable[[int], object],
) -> Outcomes:
    episodes: list[Episode] = []
    failures: list[FailedEpisode] = []
    for batch in planned:
        for outcome in play(batch):
            if isinstance(outcome, FailedEpisode):
                failures.append(outcome)
            else:
                episodes.append(outcome)
                on_episode(outcome)
        on_batch(len(batch))
    return episodes, failures
