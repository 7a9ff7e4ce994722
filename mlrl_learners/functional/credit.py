"""Credit assignment: the share of a joint action's value that one agent receives, without torch.

Credit changes the rewards (`outcome_rewards`, `team_rewards`, and those of
`mlrl_learners.functional.shaping`), or the values of the joint actions of a node
(`credited_values`, and those of `replay` and `alignment` beside this module). Values are returns in
methods without a critic and advantages in methods with one.

Sources: difference rewards (Wolpert and Tumer, 2002), counterfactual baselines (COMA,
arXiv 1705.08926), leave-one-out baselines (RLOO, arXiv 2402.14740), rewards of
a team in games with mixed motives (prosocial learners, arXiv 1709.02865).
"""

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal

from mlrl_learners.errors import ConfigError
from mlrl_learners.functional.presence import continues_for
from mlrl_learners.types import AgentID, JointStep, Node, Rollout

__all__ = ["Credit", "credited_values", "outcome_rewards", "team_rewards", "with_rewards"]

Credit = Literal[
    "shared",
    "outcome",
    "team",
    "mixed",
    "quality",
    "margin",
    "difference",
    "leave_one_out",
    "replay",
    "alignment",
]
"""Kinds of credit: the first six change rewards, the others values of joint actions."""

RewardOf = Callable[[Node, JointStep, AgentID], float]
"""The reward of an agent for a joint action of a node."""


def credited_values(
    node: Node, agent: AgentID, values: Sequence[float], credit: Credit
) -> list[float]:
    """Return the agent's credit for each joint action of a node.

    With Q(j) the value of the joint action j = (a, b), where a is the agent's answer and b are the
    answers of the others:

    - all that change rewards, and `alignment`, whose term is part of Q: Q(j)
    - `difference`: Q(a, b) - mean of Q(a', b) over the agent's other answers a'
    - `leave_one_out`: Q(j) - mean of Q(k) over all other joint actions k; 0 if there is none

    If every combination of G answers of N agents was played, the mean over b of `difference` is
    G / (G - 1), and that of `leave_one_out` is n / (n - 1) with n = G^N, times the value minus the
    mean of the group. Both are baselines; a group-mean baseline on top changes only the scale.

    Args:
        node: Node of the joint actions.
        agent: Agent that receives the credit.
        values: Q of each joint action, in order.
        credit: Kind of credit.

    Raises:
        ConfigError: If `credit` is `difference` and a joint action has no counterpart with another
            answer of the agent and the same answers of the others.
    """
    if credit == "difference":
        return _differences(node, agent, values)
    if credit == "leave_one_out":
        return [_less_mean(value, _without(values, i)) for i, value in enumerate(values)]
    return list(values)


def outcome_rewards(rollout: Rollout) -> Rollout:
    """Return a rollout with all rewards set to 0 except the last one of every episode."""
    return with_rewards(
        rollout, lambda _, step, agent: 0.0 if continues_for(step, agent) else step.rewards[agent]
    )


def team_rewards(rollout: Rollout) -> Rollout:
    """Return a rollout in which every agent gets the mean of the rewards of all agents.

    The mean is over all agents of the rollout; those that have left earn nothing.
    """
    size = len(rollout.agents)
    return with_rewards(rollout, lambda _, step, agent: math.fsum(step.rewards.values()) / size)  # noqa: ARG005


def with_rewards(rollout: Rollout, reward_of: RewardOf) -> Rollout:
    """Return a copy of a rollout with new rewards for the agents that have rewards.

    Args:
        rollout: The rollout; it is not modified.
        reward_of: Function of a node, one of its joint actions and an agent that returns the new
            reward.
    """
    return replace(rollout, root=_rewarded(rollout.root, reward_of))


def _rewarded(node: Node, reward_of: RewardOf) -> Node:
    steps = tuple(
        replace(
            step,
            rewards={agent: reward_of(node, step, agent) for agent in step.rewards},
            child=None if step.child is None else _rewarded(step.child, reward_of),
        )
        for step in node.steps
    )
    return replace(node, steps=steps)


def _differences(node: Node, agent: AgentID, values: Sequence[float]) -> list[float]:
    beside: dict[tuple[tuple[AgentID, int], ...], list[int]] = defaultdict(list)
    keys = []
    for number, step in enumerate(node.steps):
        others = tuple(sorted((who, k) for who, k in step.samples.items() if who != agent))
        keys.append(others)
        beside[others].append(number)
    if any(len(numbers) < 2 for numbers in beside.values()):
        raise ConfigError(
            f"credit 'difference' compares answers of {agent!r} beside the same answers of the "
            f"others, and turn {node.turn} has a joint action without such a counterpart: set "
            "group.joint_mode to cross and group.size to 2 or more"
        )
    return [
        _less_mean(values[number], [values[k] for k in beside[key] if k != number])
        for number, key in enumerate(keys)
    ]


def _without(values: Sequence[float], index: int) -> list[float]:
    return [*values[:index], *values[index + 1 :]]


def _less_mean(value: float, others: Sequence[float]) -> float:
    if all(other == value for other in others):
        return 0.0  # exactly 0: rounding errors must not become a gradient
    return value - math.fsum(others) / len(others)
