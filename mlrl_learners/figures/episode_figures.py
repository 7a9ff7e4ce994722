"""Figures of an evaluation, computed from its episodes.

Every mean is over tasks of a task's mean over its episodes, and every interval a bootstrap over
tasks, so that a task has the same weight however many of its episodes were played.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mlrl_learners.figures.bootstrap import Interval, bootstrap_interval
from mlrl_learners.figures.means import component_means, mean, pass_at_k, team_return
from mlrl_learners.types import AgentID, Episode, Usage

__all__ = ["EnvFigures", "Figures", "env_figures", "figures_of"]


@dataclass(frozen=True, slots=True)
class Figures:
    """Means over episodes; `EvaluationResult` documents the fields."""

    mean_return: float
    interval: Interval
    agent_returns: Mapping[AgentID, float]
    components: Mapping[str, float]
    component_intervals: Mapping[str, Interval]
    solved_rate: float
    solved_interval: Interval
    pass_at_k: Mapping[int, float]
    task_returns: Mapping[str, tuple[float, ...]]
    agent_tokens: Mapping[AgentID, Usage]
    tokens: int
    prompt_tokens: int


@dataclass(frozen=True, slots=True)
class EnvFigures:
    """Figures of one environment among several; `EvaluationResult` documents the fields."""

    mean_return: float
    interval: Interval
    solved_rate: float
    solved_interval: Interval


def env_figures(episodes: Sequence[Episode], *, seed: int) -> dict[str, EnvFigures]:
    """Return the figures of each environment by name; nothing where a run has one environment.

    Args:
        episodes: As in `figures_of`.
        seed: Seed of the intervals' draws.
    """
    found: dict[str, EnvFigures] = {}
    for name in dict.fromkeys(each.env_name for each in episodes if each.env_name):
        played = [each for each in episodes if each.env_name == name]
        all_figures = figures_of(played, ks=[1], seed=seed)
        found[name] = EnvFigures(
            **{field: getattr(all_figures, field) for field in EnvFigures.__slots__}
        )
    return found


def figures_of(episodes: Sequence[Episode], *, ks: Sequence[int], seed: int) -> Figures:
    """Return the figures of at least one episode.

    Args:
        episodes: In any order, without opponents (`mlrl_learners.selfplay.own`). Episodes with
            one task id are of one task; without an id, those with one seed.
        ks: Values of k for pass@k; a k that no task has enough episodes for is left out.
        seed: Seed of the intervals' draws.
    """
    by_task: dict[str, list[Episode]] = {}
    for episode in episodes:
        by_task.setdefault(episode.task_id or f"seed {episode.seed}", []).append(episode)
    returns = {task: tuple(map(team_return, played)) for task, played in by_task.items()}
    means = [mean(values) for values in returns.values()]
    counts = [(len(played), sum(e.solved for e in played)) for played in by_task.values()]
    solved = [c / n for n, c in counts]
    chances = pass_at_k(counts, max(ks))
    parts = _columns([component_means(played) for played in by_task.values()])
    tokens = _agent_tokens(episodes)
    total = sum(tokens.values(), Usage())
    return Figures(
        mean_return=mean(means),
        interval=bootstrap_interval(means, seed=seed),
        agent_returns=_agent_returns(list(by_task.values())),
        components={name: mean(values) for name, values in parts.items()},
        component_intervals={
            name: bootstrap_interval(values, seed=seed) for name, values in parts.items()
        },
        solved_rate=mean(solved),
        solved_interval=bootstrap_interval(solved, seed=seed),
        pass_at_k={k: chances[k] for k in ks if k in chances},
        task_returns=returns,
        agent_tokens=tokens,
        tokens=total.completion_tokens,
        prompt_tokens=total.prompt_tokens,
    )


def _columns(rows: Sequence[Mapping[str, float]]) -> dict[str, list[float]]:
    """Return name -> values from one mapping per task; a missing name counts as 0."""
    names = sorted({name for row in rows for name in row})
    return {name: [row.get(name, 0.0) for row in rows] for name in names}


def _agent_returns(by_task: Sequence[Sequence[Episode]]) -> dict[AgentID, float]:
    """Return each agent's mean over tasks of its mean return in a task, where it has returns."""
    means: dict[AgentID, list[float]] = {agent: [] for agent in by_task[0][0].returns}
    for played in by_task:
        returns: dict[AgentID, list[float]] = {}
        for episode in played:
            for agent, value in episode.returns.items():
                returns.setdefault(agent, []).append(value)
        for agent, values in returns.items():
            means.setdefault(agent, []).append(mean(values))
    return {agent: mean(values) for agent, values in means.items()}


def _agent_tokens(episodes: Sequence[Episode]) -> dict[AgentID, Usage]:
    spent = dict.fromkeys(episodes[0].returns, Usage())
    for episode in episodes:
        for turn in episode.turns:
            for agent, completion in turn.completions.items():
                spent[agent] = spent.get(agent, Usage()) + completion.cost
    return spent
