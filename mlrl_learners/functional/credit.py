"""Credit: which part of what a team earned is put down to one agent's answer. Free of torch.

A credit is either another view of the rewards (`outcome_rewards`), or of the values of the joint
actions of a node (`credited_values`). Neither knows where the values come from: they are returns
for methods without a critic, and advantages for those with one.

Sources: difference rewards (Wolpert and Tumer, 2002), counterfactual baselines (COMA,
arXiv 1705.08926), leave-one-out baselines (RLOO, arXiv 2402.14740).
"""

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal

from mlrl_learners.errors import ConfigError
from mlrl_learners.types import AgentID, JointStep, Node, Rollout

__all__ = ["Credit", "credited_values", "goes_on", "outcome_rewards", "with_rewards"]

Credit = Literal["shared", "outcome", "difference", "leave_one_out"]

RewardOf = Callable[[Node, JointStep, AgentID], float]
"""The reward of an agent for a joint action of a node."""


def credited_values(
    node: Node, agent: AgentID, values: Sequence[float], credit: Credit
) -> list[float]:
    """Return what the agent is credited with for each joint action of a node.

    With Q(j) the value of the joint action j = (a, b), a the agent's answer and b all others':

    - `shared`, `outcome`: Q(j), the values as they are
    - `difference`: Q(a, b) - mean of Q(a', b) over the agent's other answers a' beside the same b
    - `leave_one_out`: Q(j) - mean of Q(k) over all other joint actions k; 0 where there is none

    Where every combination of G answers of N agents was played and all is averaged over b,
    `difference` is G / (G - 1) and `leave_one_out` is n / (n - 1), n = G^N, times the value less
    the mean of the group: they are baselines of their own, and change nothing but the scale of
    values that a mean is taken off anyway.

    Args:
        node: Where the joint actions were played.
        agent: Whose answer is judged.
        values: Q of each joint action, in order.
        credit: Which view.

    Raises:
        ConfigError: If `difference` is asked for where no other answer of the agent was played
            beside the same answers of the others.
    """
    if credit == "difference":
        return _differences(node, agent, values)
    if credit == "leave_one_out":
        return [_less_mean(value, _without(values, i)) for i, value in enumerate(values)]
    return list(values)


def goes_on(step: JointStep, agent: AgentID) -> bool:
    """Return whether anything follows a joint action for an agent, walked or not.

    Who is not asked in the next turn has left the episode.
    """
    if step.child is not None:
        return agent in step.child.observations
    if step.terminated or step.truncated:
        return False
    return not step.next_observations or agent in step.next_observations


def outcome_rewards(rollout: Rollout) -> Rollout:
    """Return a rollout in which only the last reward of every line of play counts.

    What came before is judged by how the line ended, whatever was paid on the way.
    """
    return with_rewards(
        rollout, lambda _, step, agent: 0.0 if goes_on(step, agent) else step.rewards[agent]
    )


def with_rewards(rollout: Rollout, reward_of: RewardOf) -> Rollout:
    """Return a rollout with other rewards for those who were rewarded; all else is as it was.

    Args:
        rollout: What was played; it is left as it is.
        reward_of: The new reward, from a node, one of its joint actions, and an agent.
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
            f"others, and turn {node.turn} has a joint action without such a twin: set joint_mode "
            "to cross and group_size to 2 or more"
        )
    return [
        _less_mean(values[number], [values[k] for k in beside[key] if k != number])
        for number, key in enumerate(keys)
    ]


def _without(values: Sequence[float], index: int) -> list[float]:
    return [*values[:index], *values[index + 1 :]]


def _less_mean(value: float, others: Sequence[float]) -> float:
    if all(other == value for other in others):
        return 0.0  # exactly: rounding must not turn equal rewards into a gradient
    return value - math.fsum(others) / len(others)
