"""Returns over rollout trees, and the groups that advantages are taken within. Free of torch."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mlrl_learners.errors import NumericsError
from mlrl_learners.functional.credit import Credit, credited_values, goes_on
from mlrl_learners.types import AgentID, Completion, JointStep, Node, Rollout

__all__ = [
    "Group",
    "check_rewards",
    "joint_returns",
    "mean_by_sample",
    "rollout_groups",
    "sample_returns",
]


@dataclass(frozen=True, slots=True)
class Group:
    """G answers of one agent to one prompt at one turn, and the return of each.

    A group never mixes prompts, agents or turns: it is read off a single node.
    """

    agent: AgentID
    turn: int
    completions: tuple[Completion, ...]
    returns: tuple[float, ...]


def check_rewards(rollouts: Sequence[Rollout]) -> None:
    """Check that every reward is a finite number: others would be lost in a comparison.

    Raises:
        NumericsError: Naming the first task, turn and agent with another one.
    """
    for rollout in rollouts:
        for node in rollout.root.walk():
            for step in node.steps:
                for agent, reward in step.rewards.items():
                    if not math.isfinite(reward):
                        raise NumericsError(
                            f"the reward of {agent!r} in turn {node.turn} of task "
                            f"{rollout.task_id!r} is {reward}"
                        )


def joint_returns(node: Node, agent: AgentID, gamma: float) -> list[float]:
    """Return R_j = r_j + gamma * mean(child R) for each joint action j played at `node`.

    Where the episode went on but only a sibling was walked further (a chain), the walked child
    stands in for what would have followed: it is the only estimate there is, and giving it to one
    joint action alone would favour that one for having been picked.

    Args:
        node: Where the joint actions were played.
        agent: Whose rewards are summed; one that has left earns nothing more.
        gamma: Discount a turn, in [0, 1].
    """
    walked = [_value(step.child, agent, gamma) for step in node.steps if step.child is not None]
    expected = _mean(walked) if walked else 0.0
    return [_joint_return(step, agent, gamma, expected) for step in node.steps]


def sample_returns(
    node: Node, agent: AgentID, gamma: float, credit: Credit = "shared"
) -> list[float]:
    """Return, for each of the agent's samples, the mean credit for the joint actions it is part of.

    In `aligned` mode that is the credit for the one joint action; in `cross` mode the mean over
    all the answers of its teammates.
    """
    returns = joint_returns(node, agent, gamma)
    return mean_by_sample(node, agent, credited_values(node, agent, returns, credit))


def mean_by_sample(node: Node, agent: AgentID, joint_values: Sequence[float]) -> list[float]:
    """Return, for each of the agent's samples, the mean over the joint actions it is part of."""
    by_sample: list[list[float]] = [[] for _ in node.completions[agent]]
    for step, value in zip(node.steps, joint_values, strict=True):
        by_sample[step.samples[agent]].append(value)
    return [_mean(values) for values in by_sample]


def rollout_groups(
    rollouts: Sequence[Rollout], gamma: float, credit: Credit = "shared"
) -> Iterator[Group]:
    """Yield every group of every rollout: one a node and agent that answered there."""
    for rollout in rollouts:
        for node in rollout.root.walk():
            for agent, completions in node.completions.items():
                returns = tuple(sample_returns(node, agent, gamma, credit))
                yield Group(agent, node.turn, tuple(completions), returns)


def _joint_return(step: JointStep, agent: AgentID, gamma: float, expected: float) -> float:
    reward = step.rewards.get(agent, 0.0)
    if step.child is not None:
        return reward + gamma * _value(step.child, agent, gamma)
    return reward + gamma * expected if goes_on(step, agent) else reward


def _value(node: Node, agent: AgentID, gamma: float) -> float:
    return _mean(joint_returns(node, agent, gamma))


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)
