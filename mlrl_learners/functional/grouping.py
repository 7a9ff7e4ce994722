"""Groups of answers that share a mean and a standard deviation, without torch.

The answers of a node share a prompt. Published methods also compare answers to different prompts:
all steps of a task, of an agent over a task, or with equal observations. Returns of such groups
differ for reasons that an answer does not cause, such as its turn, so that their mean is a baseline
with more variance; with the mean over whole tasks, groups with one answer per prompt still learn.

Sources: all agents (GRPO, arXiv 2402.03300, as Dr. MAS describes it, eq. 2), each agent (Dr. MAS,
arXiv 2602.08847, eq. 5), equal observations (GiGPO, arXiv 2505.10978, eqs. 3, 7 and 8).
"""

import functools
import math
from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Literal

from mlrl_learners.errors import NumericsError
from mlrl_learners.functional.reach import TurnWeights, weighted_nodes
from mlrl_learners.functional.returns import AnswerGroup
from mlrl_learners.types import AgentID, Node, Rollout

__all__ = [
    "GroupBy",
    "NodeContext",
    "WeightBy",
    "anchored_advantages",
    "group_keys",
    "grouped_advantages",
    "node_contexts",
    "statistic_weights",
]

GroupBy = Literal["node", "agent", "agent_turn", "task", "anchor"]
WeightBy = Literal["step", "trajectory"]


@dataclass(frozen=True, slots=True)
class NodeContext:
    """What an agent has seen and earned before its answers at a node.

    Attributes:
        agent: The agent.
        observation: Observation that it answers, the anchor of `anchored_advantages`.
        earned: Sum of its rewards on the path to the node, waiting included. With the undiscounted
            return of an answer, it is the return of the whole episode.
    """

    agent: AgentID
    observation: str
    earned: float


def group_keys(
    groups: Sequence[AnswerGroup], group_by: GroupBy, tasks: Sequence[Hashable] | None = None
) -> list[Hashable]:
    """Return the key of the statistics that each node's answers belong to.

    - `node`: the answers of one agent at one node, as in `group_advantages`
    - `agent`: all answers of one agent over one task (Dr. MAS)
    - `agent_turn`: all answers of one agent in one turn of a task
    - `task`: all answers of all agents over one task (GRPO)
    - `anchor`: as `agent`, for the episodes of `anchored_advantages`

    Args:
        groups: Answers of each agent at each node.
        group_by: Kind of group.
        tasks: Task of each rollout, by its index; rollouts of one task share groups. By default,
            every rollout is a task of its own.
    """
    keys: list[Hashable] = []
    for number, group in enumerate(groups):
        task = group.rollout if tasks is None else tasks[group.rollout]
        keys.append(
            {
                "node": number,
                "agent": (task, group.agent),
                "agent_turn": (task, group.agent, group.turn),
                "task": task,
                "anchor": (task, group.agent),
            }[group_by]
        )
    return keys


def grouped_advantages(
    returns: Sequence[Sequence[float]],
    keys: Sequence[Hashable],
    weights: Sequence[Sequence[float]] | None = None,
    *,
    normalize_std: bool = True,
    epsilon: float = 1e-6,
) -> list[list[float]]:
    """Return A = (R - mean) / (std + epsilon) with the statistics of all answers of equal keys.

    The variance is the unbiased one, with denominator n - 1 if all weights are equal. Groups with
    one answer or with equal returns have advantages of exactly 0.

    Args:
        returns: Returns of the answers at each node.
        keys: Group of each node, from `group_keys`.
        weights: Weight of each answer in the statistics, above 0, from `statistic_weights`; 1
            by default.
        normalize_std: Divide by the standard deviation.
        epsilon: Constant added to the standard deviation, above 0.

    Raises:
        NumericsError: If a return is not finite.
    """
    values: defaultdict[Hashable, list[float]] = defaultdict(list)
    counts: defaultdict[Hashable, list[float]] = defaultdict(list)
    for number, (key, some) in enumerate(zip(keys, returns, strict=True)):
        values[key] += some
        counts[key] += [1.0] * len(some) if weights is None else weights[number]
    statistics = {key: _statistics(values[key], counts[key]) for key in values}
    found = []
    for key, some in zip(keys, returns, strict=True):
        mean, std = statistics[key]
        scale = (std + epsilon) if normalize_std else 1.0
        found.append([0.0 if std == 0.0 else (value - mean) / scale for value in some])
    return found


def anchored_advantages(
    episode_returns: Sequence[Sequence[float]],
    step_returns: Sequence[Sequence[float]],
    tasks: Sequence[Hashable],
    anchors: Sequence[Hashable],
    *,
    episode_weights: Sequence[Sequence[float]] | None = None,
    step_weight: float = 1.0,
    normalize_std: bool = False,
    epsilon: float = 1e-6,
) -> list[list[float]]:
    """Return A = A_episode + w * A_step, whose groups are a task and equal observations in it.

    A_episode compares whole episodes of a task; A_step compares the returns from a step on with
    those of all steps that start from the same observation, its anchor. Observations that occur
    once have A_step = 0.

    Args:
        episode_returns: Return of the whole episode of each answer at each node.
        step_returns: Discounted return from each answer on.
        tasks: Key of the answers whose episodes are compared, such as a task and an agent.
        anchors: Observation of each node; it counts within its task only.
        episode_weights: Weight of each answer in the statistics of episodes, from
            `statistic_weights` with `trajectory` as in the paper; 1 by default.
        step_weight: w, at least 0; 1 in the paper.
        normalize_std: Divide by the standard deviations (paper: both ways).
        epsilon: Constant added to the standard deviations, above 0.
    """
    compare = functools.partial(grouped_advantages, normalize_std=normalize_std, epsilon=epsilon)
    whole = compare(episode_returns, tasks, episode_weights)
    steps = compare(step_returns, list(zip(tasks, anchors, strict=True)))
    return [
        [episode + step_weight * step for episode, step in zip(*both, strict=True)]
        for both in zip(whole, steps, strict=True)
    ]


def node_contexts(rollouts: Sequence[Rollout]) -> list[NodeContext]:
    """Return the context of each agent's answers at each node, in the order of `rollout_groups`."""
    contexts: list[NodeContext] = []
    for rollout in rollouts:
        earned: dict[int, dict[AgentID, float]] = {id(rollout.root): {}}
        for node in rollout.root.walk():
            before = earned[id(node)]
            for step in node.steps:
                if step.child is not None:
                    paid = {a: before.get(a, 0.0) + reward for a, reward in step.rewards.items()}
                    earned[id(step.child)] = {**before, **paid}
            contexts += (
                NodeContext(agent, node.observations[agent], before.get(agent, 0.0))
                for agent in node.completions
            )
    return contexts


def statistic_weights(
    rollouts: Sequence[Rollout],
    weight_by: WeightBy,
    *,
    group_by: GroupBy = "agent",
    turn_weights: TurnWeights = "reach",
) -> list[list[float]]:
    """Return the weight of each answer in the statistics, in the order of `rollout_groups`.

    - `step`: every answer counts as much as its node, so that long episodes count more
    - `trajectory`: every episode counts once, divided among its answers in the group; of a tree,
      each path from the root to an end is an episode. Paths that a chain did not continue are
      as long as the mean of those beside them that it did.

    With a single reward at the end, `trajectory` gives the mean and deviation over episodes.

    Args:
        rollouts: The rollouts.
        weight_by: Kind of weight.
        group_by: Kind of group: with `task`, an episode is divided among the answers of all agents,
            with `agent`, among those of one; the others have one answer of an episode.
        turn_weights: Weights of nodes.
    """
    weights: list[list[float]] = []
    for rollout in rollouts:
        before: dict[int, dict[AgentID, int]] = {id(rollout.root): {}}
        for node, weight in weighted_nodes(rollout.root, turn_weights):
            counts = before[id(node)]
            after = {agent: counts.get(agent, 0) + 1 for agent in node.completions}
            for step in node.steps:
                if step.child is not None:
                    before[id(step.child)] = {**counts, **after}
            for agent, completions in node.completions.items():
                shares = [1.0] * len(completions)
                if weight_by == "trajectory" and group_by in ("agent", "task"):
                    counted = None if group_by == "task" else agent
                    earlier = sum(counts.values()) if counted is None else counts.get(agent, 0)
                    shares = _answer_shares(node, agent, earlier, counted)
                weights.append([weight * share for share in shares])
    return weights


def _answer_shares(
    node: Node, agent: AgentID, earlier: int, counted: AgentID | None
) -> list[float]:
    """Return the mean of 1 / (answers of an episode) over the episodes with each answer."""
    shares = _path_shares(node, earlier, counted)
    by_answer: list[list[float]] = [[] for _ in node.completions[agent]]
    for step, share in zip(node.steps, shares, strict=True):
        by_answer[step.samples[agent]].append(share)
    return [math.fsum(some) / len(some) for some in by_answer]


def _path_shares(node: Node, earlier: int, counted: AgentID | None) -> list[float]:
    """Return the mean of 1 / (answers of an episode) over the episodes with each joint action.

    Args:
        node: Node of the joint actions.
        earlier: Number of answers on the path to the node.
        counted: Agent whose answers count; None for all agents.
    """
    here = len(node.completions) if counted is None else int(counted in node.completions)
    total = earlier + here
    shares = {
        number: _mean(_path_shares(step.child, total, counted))
        for number, step in enumerate(node.steps)
        if step.child is not None
    }
    ended = 1.0 / total
    cut = _mean(list(shares.values())) if shares else ended
    return [
        shares.get(number, ended if step.terminated or step.truncated else cut)
        for number, step in enumerate(node.steps)
    ]


def _statistics(values: Sequence[float], weights: Sequence[float]) -> tuple[float, float]:
    """Return the weighted mean and unbiased standard deviation; the latter is 0 if all are equal.

    The variance is sum(w (x - mean)^2) / (V - sum(w^2) / V) with V = sum(w).
    """
    for value in values:
        if not math.isfinite(value):
            raise NumericsError(f"a return is {value}")
    if min(values) == max(values):
        return values[0], 0.0
    total = math.fsum(weights)
    mean = math.fsum(w * x for w, x in zip(weights, values, strict=True)) / total
    squares = math.fsum(w * (x - mean) ** 2 for w, x in zip(weights, values, strict=True))
    degrees = total - math.fsum(w * w for w in weights) / total
    return mean, math.sqrt(squares / degrees)


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)
