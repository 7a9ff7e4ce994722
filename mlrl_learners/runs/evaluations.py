"""Encoding and decoding of evaluations and of training metrics."""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from mlrl_learners.figures.episode_figures import EnvFigures
from mlrl_learners.runs.records import episode_record, failure_record
from mlrl_learners.runs.stored import Record, StoredEpisode, decode_episode, whole_number
from mlrl_learners.types import AgentID, Episode, FailedEpisode, Usage

__all__ = [
    "EvaluationResult",
    "StoredEvaluation",
    "StoredIteration",
    "decode_evaluation",
    "decode_iteration",
    "parse_figures",
]

_EPISODES = b', "episodes": ['


@dataclass(frozen=True, slots=True)
class EvaluationResult:
    """Figures and episodes of an evaluation.

    Attributes:
        env_id: Id of the environment.
        split: Split of its data; None if it was not chosen.
        seed: Seed from which the seeds of the episodes are derived.
        samples: Episodes per task.
        explore: Whether answers were sampled rather than greedy.
        mean_return: Mean over tasks of a task's mean team return.
        interval: 95 % bootstrap interval of that mean over tasks.
        agent_returns: Agent -> mean return.
        components: Named part of the reward -> mean share of the team return.
        component_intervals: Named part -> 95 % bootstrap interval of that mean over tasks.
        solved_rate: Mean over tasks of a task's share of solved episodes.
        solved_interval: 95 % bootstrap interval of that mean over tasks.
        pass_at_k: k -> probability that at least one of k episodes solves a task.
        task_returns: Task -> team return of each of its episodes.
        agent_tokens: Agent -> tokens it read and wrote, drafts included.
        tokens: Tokens written by all agents.
        prompt_tokens: Tokens read by all agents.
        seconds: Wall-clock time.
        episodes: Every episode, in the order of tasks and samples.
        failures: Episodes that infrastructure broke; they are part of no figure.
        environments: Name -> figures of each environment; empty where there is one.
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
    environments: Mapping[str, EnvFigures] = field(default_factory=dict)

    @property
    def seconds_per_episode(self) -> float:
        """Wall-clock time divided by the number of episodes, which are played in batches."""
        return self.seconds / (len(self.episodes) + len(self.failures))

    def as_dict(self) -> dict[str, Any]:
        """Return everything as JSON values, episodes included."""
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
            **self._environments(),
            "episodes": [episode_record(episode) for episode in self.episodes],
            "failures": [failure_record(failure) for failure in self.failures],
        }

    def _environments(self) -> dict[str, Any]:
        """Return the key `environments`, which evaluations of one environment lack."""
        figures = {name: asdict(each) for name, each in self.environments.items()}
        return {"environments": figures} if figures else {}


@dataclass(frozen=True, slots=True)
class StoredEvaluation:
    """One line of `evaluations.jsonl`.

    Attributes:
        iteration: Number of training iterations before it.
        env_id: Id of the environment.
        split: Split of its data; empty if it was not chosen.
        seed: Seed of the evaluation; None if the line does not say.
        mean_return: Mean over tasks of a task's mean team return.
        interval: 95 % interval of it.
        solved_rate: Share of solved episodes.
        components: Named part of the reward -> mean share of the team return.
        episodes: Its episodes.
    """

    iteration: int
    env_id: str
    split: str
    seed: int | None
    mean_return: float
    interval: tuple[float, float]
    solved_rate: float
    components: Mapping[str, float]
    episodes: tuple[StoredEpisode, ...]


@dataclass(frozen=True, slots=True)
class StoredIteration:
    """One line of `metrics.jsonl`.

    Attributes:
        iteration: Its number.
        seconds: Wall-clock time; 0 if the line does not say.
        metrics: Name -> value, finite values only, without `iteration` and `seconds`.
    """

    iteration: int
    seconds: float
    metrics: Mapping[str, float]


def decode_evaluation(record: Record) -> StoredEvaluation:
    """Decode an evaluation.

    Raises:
        KeyError: If the iteration, the environment or the mean return is missing.
    """
    mean = float(record["mean_return"])
    low, high = record.get("interval") or (mean, mean)
    return StoredEvaluation(
        iteration=whole_number(record["iteration"]),
        env_id=str(record["env_id"]),
        split=str(record.get("split") or ""),
        seed=None if record.get("seed") is None else int(record["seed"]),
        mean_return=mean,
        interval=(float(low), float(high)),
        solved_rate=float(record.get("solved_rate") or 0.0),
        components={name: float(v) for name, v in (record.get("components") or {}).items()},
        episodes=tuple(decode_episode(episode) for episode in record.get("episodes") or ()),
    )


def decode_iteration(record: Record) -> StoredIteration:
    """Decode the metrics of an iteration.

    Raises:
        KeyError: If the iteration is missing.
    """
    iteration = whole_number(record["iteration"])
    metrics = {
        name: float(value)
        for name, value in record.items()
        if isinstance(value, int | float) and _is_finite(value) and name != "iteration"
    }
    return StoredIteration(iteration, metrics.pop("seconds", 0.0), metrics)


def parse_figures(line: bytes) -> StoredEvaluation:
    """Decode a line of `evaluations.jsonl` without its episodes, which are most of its bytes."""
    figures, found, _ = line.partition(_EPISODES)
    if found:
        try:
            return decode_evaluation(json.loads(figures + b"}"))
        except ValueError:
            pass
    return decode_evaluation({**json.loads(line), "episodes": ()})


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # an int of more than 308 digits
        return False
