"""From played episodes to the figures of an evaluation.

Every mean is over tasks of a task's mean over its episodes, and every interval a bootstrap over
tasks, so that a task of which more episodes were played weighs no more than another.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mlrl_learners.figures.bootstrap import bootstrap_interval, component_means, mean, pass_at_k
from mlrl_learners.types import AgentID, Episode, Usage

__all__ = ["Figures", "figures_of", "team_return"]

Interval = tuple[float, float]


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


def figures_of(episodes: Sequence[Episode], *, ks: Sequence[int], seed: int) -> Figures:
    """Return the figures of at least one episode.

    Args:
        episodes: In any order; those of one task share its id, or its seed where it has none.
        ks: Which k of pass@k; those that no task has enough episodes for are left out.
        seed: Decides the draws of the intervals.
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
    agents = _columns([_agent_returns(played) for played in by_task.values()])
    tokens = _agent_tokens(episodes)
    total = sum(tokens.values(), Usage())
    return Figures(
        mean_return=mean(means),
        interval=bootstrap_interval(means, seed=seed),
        agent_returns={agent: mean(agents[agent]) for agent in episodes[0].returns},
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


def team_return(episode: Episode) -> float:
    """Return the mean over agents of an episode's undiscounted returns."""
    return mean(list(episode.returns.values()))


def _columns(rows: Sequence[Mapping[str, float]]) -> dict[str, list[float]]:
    """Turn a mapping a task into a column a name; a name that a task lacks counts as 0 there."""
    names = sorted({name for row in rows for name in row})
    return {name: [row.get(name, 0.0) for row in rows] for name in names}


def _agent_returns(played: Sequence[Episode]) -> dict[AgentID, float]:
    return {a: mean([e.returns[a] for e in played]) for a in played[0].returns}


def _agent_tokens(episodes: Sequence[Episode]) -> dict[AgentID, Usage]:
    spent = dict.fromkeys(episodes[0].returns, Usage())
    for episode in episodes:
        for turn in episode.turns:
            for agent, completion in turn.completions.items():
                spent[agent] = spent.get(agent, Usage()) + completion.cost
    return spent
