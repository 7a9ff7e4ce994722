"""Metrics of rollouts and evaluations that every run logs, without torch."""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from mlrl_learners.config.opponents import SNAPSHOTS
from mlrl_learners.figures.means import mean, team_return
from mlrl_learners.functional.reach import weighted_nodes
from mlrl_learners.functional.returns import joint_returns
from mlrl_learners.types import AgentID, JointStep, Node, Rollout

if TYPE_CHECKING:
    from mlrl_learners.evaluation.evaluate import EvaluationResult

__all__ = [
    "count_tokens",
    "env_metrics",
    "evaluation_metrics",
    "opponent_metrics",
    "rollout_metrics",
    "token_metrics",
]


def rollout_metrics(rollouts: Sequence[Rollout]) -> dict[str, float]:
    """Return metrics of the undiscounted returns, reward components and lengths of rollouts.

    - `train/return`: mean over tasks, agents and joint actions of the first turn; with opponents
      each task has the same weight, because there is one joint action where an opponent begins
    - `train/return_std`: standard deviation over the same joint actions, with the same weights
    - `train/solved_rate`: fraction of episodes that ended solved, in [0, 1]
    - `train/reward/NAME`: mean of a component over all joint actions, agents and turns
    - `train/turns`: mean number of turns per episode

    Episodes count as often as sampling ends with them: an early end of a tree as much as all ends
    below a joint action beside it. Joint actions that a chain did not continue from are no ends.
    """
    if not rollouts:
        return {}
    returns = [
        [v for agent in rollout.agents for v in joint_returns(rollout.root, agent, gamma=1.0)]
        for rollout in rollouts
    ]
    if not any(rollout.opponents for rollout in rollouts):
        returns = [[value for values in returns for value in values]]
    ends = [end for rollout in rollouts for end in _ends(rollout.root)]
    mean_return = mean([mean(values) for values in returns])
    variance = mean([mean([(value - mean_return) ** 2 for value in values]) for values in returns])
    metrics = {
        "train/return": mean_return,
        "train/return_std": math.sqrt(variance),
        "train/solved_rate": _weighted_mean((share, _solved(step)) for _, step, share in ends),
        "train/turns": _weighted_mean((share, turn + 1) for turn, _, share in ends),
    }
    return metrics | _component_means(rollouts)


def opponent_metrics(rollouts: Sequence[Rollout]) -> dict[str, float]:
    """Return `train/return/NAME`, the learner's mean return against each opponent.

    Past weights have one name together, `snapshots`; rollouts without opponents have none.
    """
    found: dict[str, list[float]] = defaultdict(list)
    for rollout in rollouts:
        own = [agent for agent in rollout.agents if agent not in rollout.opponents]
        names = {_kind(name) for name in rollout.opponents.values()}
        values = [v for agent in own for v in joint_returns(rollout.root, agent, gamma=1.0)]
        for name in names:
            found[name].append(mean(values))
    return {f"train/return/{name}": mean(found[name]) for name in sorted(found)}


def env_metrics(rollouts: Sequence[Rollout]) -> dict[str, float]:
    """Return `train/ENV/...` of `rollout_metrics` for each environment of a run with several."""
    names = sorted({each.env_name for each in rollouts} - {""})
    return {
        f"train/{name}/{metric.removeprefix('train/')}": value
        for name in names
        for metric, value in rollout_metrics(
            [each for each in rollouts if each.env_name == name]
        ).items()
    }


def evaluation_metrics(result: "EvaluationResult") -> dict[str, float]:
    """Return the metrics of an evaluation.

    - `eval/return`: mean over tasks of the mean team return of a task
    - `eval/solved_rate`: mean over tasks of the fraction of solved episodes of a task
    - `eval/reward/NAME`: mean contribution of a component to the team return
    - `eval/return/NAME`: mean return against an opponent, over episodes
    - `eval/ENV/return`, `eval/ENV/solved_rate`: of each environment of a run with several
    """
    parts = {f"eval/reward/{name}": value for name, value in result.components.items()}
    found: dict[str, list[float]] = defaultdict(list)
    for episode in result.episodes:
        for name in {_kind(name) for name in episode.opponents.values()}:
            found[name].append(team_return(episode))
    parts |= {f"eval/return/{name}": mean(found[name]) for name in sorted(found)}
    for name, each in result.environments.items():
        parts[f"eval/{name}/return"] = each.mean_return
        parts[f"eval/{name}/solved_rate"] = each.solved_rate
    return {"eval/return": result.mean_return, "eval/solved_rate": result.solved_rate, **parts}


def _kind(name: str) -> str:
    """Return the name of an opponent, without the iteration of a snapshot."""
    return SNAPSHOTS if name.startswith(f"{SNAPSHOTS}:") else name


def count_tokens(rollouts: Sequence[Rollout]) -> dict[AgentID, int]:
    """Return the number of tokens that each agent sampled."""
    counts = dict.fromkeys((agent for rollout in rollouts for agent in rollout.agents), 0)
    for rollout in rollouts:
        for node in rollout.root.walk():
            for agent, completions in node.completions.items():
                tokens = sum(len(completion.token_ids) for completion in completions)
                counts[agent] = counts.get(agent, 0) + tokens
    return counts


def token_metrics(rollouts: Sequence[Rollout], seconds: float) -> dict[str, float]:
    """Return the number of sampled tokens, and those per second of the team and of each agent."""
    counts = count_tokens(rollouts)
    tokens = sum(counts.values())
    rates = {f"{agent}/tokens_per_second": n / seconds for agent, n in counts.items()}
    return {"time/tokens_per_second": tokens / seconds, **rates, "train/tokens": float(tokens)}


def _component_means(rollouts: Sequence[Rollout]) -> dict[str, float]:
    values: dict[str, list[float]] = defaultdict(list)
    for rollout in rollouts:
        for node in rollout.root.walk():
            for step in node.steps:
                for components in step.components.values():
                    for name, value in components.items():
                        values[name].append(value)
    return {f"train/reward/{name}": mean(values[name]) for name in sorted(values)}


def _ends(root: Node) -> Iterator[tuple[int, JointStep, float]]:
    """Yield the turn, the last joint step and the share of each end of an episode."""
    for node, weight in weighted_nodes(root, "reach"):
        goes_on = any(step.child is not None for step in node.steps)
        for step in node.steps:
            if step.terminated or step.truncated or not goes_on:
                yield node.turn, step, weight / len(node.steps)


def _weighted_mean(values: Iterable[tuple[float, float]]) -> float:
    """Return the mean of the second numbers of pairs, weighted by the first."""
    weights, numbers = zip(*values, strict=True)
    total = math.fsum(weight * number for weight, number in zip(weights, numbers, strict=True))
    return total / math.fsum(weights)


def _solved(step: JointStep) -> bool:
    return any(bool(info.get("solved")) for info in step.infos.values())
