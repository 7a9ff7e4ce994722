"""Playing tasks of a split and reporting how well it went, with an interval.

An episode's team return is the mean of its agents' undiscounted returns. Episodes that
infrastructure broke are reported beside the figures and are part of none of them.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import mlrl_envs
from mlrl_envs.errors import InfraError
from mlrl_learners.playing import batches, plan_jobs, play_jobs, sampling_from
from mlrl_learners.progress import progress_bar
from mlrl_learners.statistics import bootstrap_interval, component_means, mean, pass_at_k
from mlrl_learners.types import Actor, AgentID, Episode, FailedEpisode, Usage

__all__ = ["EvaluationResult", "evaluate"]


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
        solved_rate: Mean over tasks of a task's share of solved episodes.
        pass_at_k: For each k up to `samples`, the chance that one of k episodes solves a task.
        task_returns: For each task, the team return of each of its episodes.
        tokens: Tokens that were written, drafts included.
        prompt_tokens: Tokens that were read.
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
    solved_rate: float
    pass_at_k: Mapping[int, float]
    task_returns: Mapping[str, tuple[float, ...]]
    tokens: int
    prompt_tokens: int
    seconds: float
    episodes: tuple[Episode, ...]
    failures: tuple[FailedEpisode, ...]

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
            "solved_rate": self.solved_rate,
            "pass_at_k": {str(k): value for k, value in self.pass_at_k.items()},
            "task_returns": {task: list(values) for task, values in self.task_returns.items()},
            "tokens": self.tokens,
            "prompt_tokens": self.prompt_tokens,
            "seconds": self.seconds,
            "episodes": [episode_record(episode) for episode in self.episodes],
            "failures": [
                {name: getattr(failure, name) for name in FailedEpisode.__dataclass_fields__}
                for failure in self.failures
            ],
        }


def evaluate(
    *,
    env_id: str,
    actor: Actor,
    split: str | None = "eval",
    env_options: Mapping[str, Any] | None = None,
    samples: int = 1,
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
        split: Split to play; None for environments that have none.
        env_options: Arguments of `mlrl_envs.make`, the split apart.
        samples: Episodes of each task, at least 1.
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
    options = dict(env_options or {})
    if split is not None:
        options["split"] = split
    env = mlrl_envs.make(env_id, **options)
    started = time.perf_counter()
    episodes: list[Episode] = []
    failures: list[FailedEpisode] = []
    try:
        jobs = plan_jobs(
            getattr(env, "num_tasks", None),
            tasks,
            samples=samples,
            seed=seed,
            batch_size=batch_size,
        )
        bar = progress_bar(total=len(jobs), description=env_id, enabled=progress)
        with bar, sampling_from(actor, seed):
            for batch in batches(jobs, batch_size):
                for outcome in play_jobs(env, env_id, actor, batch, explore=explore):
                    if isinstance(outcome, FailedEpisode):
                        failures.append(outcome)
                        continue
                    episodes.append(outcome)
                    if on_episode is not None:
                        on_episode(outcome)
                bar.update(len(batch))
    finally:
        env.close()
    if not episodes:
        raise InfraError(f"every episode of {env_id} failed: {failures[0].message}")
    seconds = time.perf_counter() - started
    return EvaluationResult(
        env_id=env_id,
        split=split,
        seed=seed,
        samples=samples,
        explore=explore,
        seconds=seconds,
        failures=tuple(failures),
        **_figures(episodes, samples, seed),
    )


def episode_record(episode: Episode) -> dict[str, Any]:
    """Return an episode as JSON values: texts and verdicts, no token ids."""
    return {
        "task_id": episode.task_id,
        "seed": episode.seed,
        "return": _team_return(episode),
        "returns": dict(episode.returns),
        "solved": episode.solved,
        "turns": [
            {
                "observations": dict(turn.observations),
                "actions": {agent: c.text for agent, c in turn.completions.items()},
                "tokens": {a: c.cost.completion_tokens for a, c in turn.completions.items()},
                "prompt_tokens": {a: c.cost.prompt_tokens for a, c in turn.completions.items()},
                "finish_reasons": {a: c.finish_reason for a, c in turn.completions.items()},
                "rewards": dict(turn.rewards),
                "components": {agent: dict(parts) for agent, parts in turn.components.items()},
                "diagnostics": {a: info.get("diagnostics") for a, info in turn.infos.items()},
            }
            for turn in episode.turns
        ],
    }


def _figures(episodes: Sequence[Episode], samples: int, seed: int) -> dict[str, Any]:
    by_task: dict[str, list[Episode]] = {}
    for episode in episodes:
        by_task.setdefault(episode.task_id or f"seed {episode.seed}", []).append(episode)
    task_returns = {
        task: tuple(_team_return(episode) for episode in played) for task, played in by_task.items()
    }
    means = [mean(values) for values in task_returns.values()]
    solved = [[episode.solved for episode in played] for played in by_task.values()]
    agents = list(episodes[0].returns)
    cost = sum((c.cost for e in episodes for t in e.turns for c in t.completions.values()), Usage())
    return {
        "mean_return": mean(means),
        "interval": bootstrap_interval(means, seed=seed),
        "agent_returns": {a: mean([e.returns[a] for e in episodes]) for a in agents},
        "components": component_means(episodes),
        "solved_rate": mean([mean(flags) for flags in solved]),
        "pass_at_k": pass_at_k([(len(flags), sum(flags)) for flags in solved], samples),
        "task_returns": task_returns,
        "tokens": cost.completion_tokens,
        "prompt_tokens": cost.prompt_tokens,
        "episodes": tuple(episodes),
    }


def _team_return(episode: Episode) -> float:
    return mean(list(episode.returns.values()))
