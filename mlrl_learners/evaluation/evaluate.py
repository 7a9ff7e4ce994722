"""Playing tasks of a split and reporting how well it went, with an interval.

An episode's team return is the mean of its agents' undiscounted returns. Episodes that
infrastructure broke are reported beside the figures and are part of none of them.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import mlrl_envs
from mlrl_envs.errors import InfraError
from mlrl_learners.errors import ConfigError
from mlrl_learners.figures.means import figures_of
from mlrl_learners.play.jobs import Job, batches, plan_jobs, play_jobs, sampling_from
from mlrl_learners.progress import progress_bar
from mlrl_learners.runs.records import episode_record
from mlrl_learners.types import Actor, AgentID, Episode, FailedEpisode, Usage

__all__ = ["EvaluationResult", "episode_record", "evaluate"]

Outcomes = tuple[list[Episode], list[FailedEpisode]]


@dataclass(frozen=True, slots=True)
class EvaluationResult:
    """What an evaluation found.

    Attributes:
        env_id: The environment.
        split: Its split, None where it was not chosen.
        seed: What the episodes were seeded with.
        samples: Episodes asked for of each task.
        explore: Whether answers were sampled, or greedy.
        mean_return: Mean over tasks of a task's mean team return.
        interval: 95 % bootstrap interval of that mean, tasks drawn with replacement.
        agent_returns: For each agent, its mean return.
        components: For each named part of the reward, its mean share of the team return.
        component_intervals: 95 % bootstrap interval of each of these, tasks drawn with
            replacement.
        solved_rate: Mean over tasks of a task's share of solved episodes.
        solved_interval: 95 % bootstrap interval of that mean.
        pass_at_k: For each k asked for, the chance that one of k episodes solves a task.
        task_returns: For each task, the team return of each of its episodes.
        agent_tokens: For each agent, tokens it read and wrote, drafts included.
        tokens: Tokens that were written by all.
        prompt_tokens: Tokens that were read by all.
        seconds: How long it took.
        episodes: Every episode, in the order of tasks and samples.
        failures: Episodes that infrastructure broke.
    """

    env_id: str
    split: str | None
    seed: int
    samples: int
    explore: bool
    mean_return: float
    interval: tuple[float, float]
    agent_returns: Mapping[AgentID, float]
    components: Mapping[str, float]
    component_intervals: Mapping[str, tuple[float, float]]
    solved_rate: float
    solved_interval: tuple[float, float]
    pass_at_k: Mapping[int, float]
    task_returns: Mapping[str, tuple[float, ...]]
    agent_tokens: Mapping[AgentID, Usage]
    tokens: int
    prompt_tokens: int
    seconds: float
    episodes: tuple[Episode, ...]
    failures: tuple[FailedEpisode, ...]

    @property
    def seconds_per_episode(self) -> float:
        """Seconds over episodes; several are played side by side."""
        return self.seconds / (len(self.episodes) + len(self.failures))

    def as_dict(self) -> dict[str, Any]:
        """Return everything as JSON values, transcripts included."""
        return {
            "env_id": self.env_id,
            "split": self.split,
            "seed": self.seed,
            "samples": self.samples,
            "explore": self.explore,
            "mean_return": self.mean_return,
            "interval": list(self.interval),
            "agent_returns": dict(self.agent_returns),
            "components": dict(self.components),
            "component_intervals": {n: list(i) for n, i in self.component_intervals.items()},
            "solved_rate": self.solved_rate,
            "solved_interval": list(self.solved_interval),
            "pass_at_k": {str(k): value for k, value in self.pass_at_k.items()},
            "task_returns": {task: list(values) for task, values in self.task_returns.items()},
            "agent_tokens": {
                agent: {"tokens": used.completion_tokens, "prompt_tokens": used.prompt_tokens}
                for agent, used in self.agent_tokens.items()
            },
            "tokens": self.tokens,
            "prompt_tokens": self.prompt_tokens,
            "seconds": self.seconds,
            "seconds_per_episode": self.seconds_per_episode,
            "episodes": [episode_record(episode) for episode in self.episodes],
            "failures": [asdict(failure) for failure in self.failures],
        }


def evaluate(
    *,
    env_id: str,
    actor: Actor,
    split: str | None = "eval",
    env_options: Mapping[str, Any] | None = None,
    samples: int = 1,
    k: Sequence[int] | None = None,
    tasks: int | Sequence[int] | None = None,
    seed: int = 0,
    explore: bool = True,
    batch_size: int = 32,
    progress: bool = False,
    on_episode: Callable[[Episode], None] | None = None,
) -> EvaluationResult:
    """Let an actor play tasks of a split.

    An actor with a method `sampling_seed(seed)`, as ours have, samples from `seed` meanwhile, and
    its own random state is left as it was.

    Args:
        env_id: A registered environment.
        actor: Plays every agent.
        split: Split to play, the held-out one by default; None for environments that have none.
        env_options: Arguments of `mlrl_envs.make`, the split apart.
        samples: Episodes of each task, at least 1.
        k: Which k of pass@k, each from 1 to `samples`; None for all of them.
        tasks: How many of the first tasks, or which by index; None for the whole split.
        seed: Decides the seed of every episode.
        explore: Sample answers; greedy ones otherwise.
        batch_size: Episodes that are played side by side, at least 1.
        progress: Show a progress bar.
        on_episode: Called with each episode as soon as it is done.

    Raises:
        ConfigError: If a number is outside its range.
        InfraError: If infrastructure broke every episode.
    """
    ks = _checked_ks(k, samples)
    env = mlrl_envs.make(env_id, **{**(env_options or {}), **({"split": split} if split else {})})
    started = time.perf_counter()
    try:
        num_tasks = getattr(env, "num_tasks", None)
        jobs = plan_jobs(num_tasks, tasks, samples=samples, seed=seed, batch_size=batch_size)
        bar = progress_bar(total=len(jobs), description=env_id, enabled=progress)
        with bar, sampling_from(actor, seed):
            episodes, failures = _play_all(
                batches(jobs, batch_size),
                lambda batch: play_jobs(env, env_id, actor, batch, explore=explore),
                on_episode or (lambda _: None),
                bar.update,
            )
    finally:
        env.close()
    if not episodes:
        raise InfraError(f"every episode of {env_id} failed: {failures[0].message}")
    seconds = time.perf_counter() - started
    figures = figures_of(episodes, ks=ks, seed=seed)
    return EvaluationResult(
        env_id=env_id,
        split=split,
        seed=seed,
        samples=samples,
        explore=explore,
        seconds=seconds,
        episodes=tuple(episodes),
        failures=tuple(failures),
        **{name: getattr(figures, name) for name in figures.__slots__},
    )


def _checked_ks(k: Sequence[int] | None, samples: int) -> list[int]:
    ks = list(range(1, max(1, samples) + 1)) if k is None else sorted(set(k))
    if not ks or ks[0] < 1 or ks[-1] > max(1, samples):
        raise ConfigError(f"k must be numbers from 1 to samples = {samples}, got {list(k or ())}")
    return ks


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
