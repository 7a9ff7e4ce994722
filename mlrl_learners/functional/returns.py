"""Returns over rollout trees, and the groups that advantages are taken within. Free of torch."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mlrl_learners.errors import NumericsError
from mlrl_learners.figures.means import mean
from mlrl_learners.functional.credit import Credit, credited_values, goes_on
from mlrl_learners.functional.reach import (
    TurnWeights,
    count_going_on,
    other_rollouts_means,
    share_futures,
    weighted_nodes,
)
from mlrl_learners.types import AgentID, Completion, Node, Rollout

__all__ = [
    "Group",
    "chain_baselines",
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

    Attributes:
        weight: Weight of the node, see `mlrl_learners.functional.reach`.
        rollout: Number of the rollout that the node is of.
        is_flat: Whether all answers earned the same, what a chain walked credited to all.
    """

    agent: AgentID
    turn: int
    completions: tuple[Completion, ...]
    returns: tuple[float, ...]
    weight: float = 1.0
    rollout: int = 0
    is_flat: bool = False


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


def joint_returns(
    node: Node, agent: AgentID, gamma: float, baseline: float | None = None
) -> list[float]:
    """Return R_j = r_j + gamma * mean(child R) for each joint action j played at `node`.

    Where the episode goes on after several joint actions but only one was walked further (a
    chain), what followed is shared out as `mlrl_learners.functional.reach.share_futures` says.

    Args:
        node: Where the joint actions were played.
        agent: Whose rewards are summed; one that has left earns nothing more.
        gamma: Discount a turn, in [0, 1].
        baseline: What is expected to follow a joint action, independent of those at this node;
            None credits what followed in a chain to all joint actions that go on.
    """
    walked = _walked_values(node, agent, gamma, baseline)
    futures, other = share_futures(walked, count_going_on(node), baseline)
    left = {n: value for n, value in walked.items() if not goes_on(node.steps[n], agent)}
    futures |= left  # nothing is left to be shared out
    returns = []
    for number, step in enumerate(node.steps):
        future = futures.get(number, other if goes_on(step, agent) else 0.0)
        returns.append(step.rewards.get(agent, 0.0) + gamma * future)
    return returns


def sample_returns(
    node: Node,
    agent: AgentID,
    gamma: float,
    credit: Credit = "shared",
    baseline: float | None = None,
) -> list[float]:
    """Return, for each of the agent's samples, the mean credit for the joint actions it is part of.

    In `aligned` mode that is the credit for the one joint action; in `cross` mode the mean over
    all the answers of its teammates.
    """
    returns = joint_returns(node, agent, gamma, baseline)
    return mean_by_sample(node, agent, credited_values(node, agent, returns, credit))


def mean_by_sample(node: Node, agent: AgentID, joint_values: Sequence[float]) -> list[float]:
    """Return, for each of the agent's samples, the mean over the joint actions it is part of."""
    by_sample: list[list[float]] = [[] for _ in node.completions[agent]]
    for step, value in zip(node.steps, joint_values, strict=True):
        by_sample[step.samples[agent]].append(value)
    return [mean(values) for values in by_sample]


def rollout_groups(
    rollouts: Sequence[Rollout],
    gamma: float,
    credit: Credit = "shared",
    turn_weights: TurnWeights = "reach",
) -> Iterator[Group]:
    """Yield every group of every rollout: one a node and agent that answered there.

    Args:
        rollouts: What was played.
        gamma: Discount a turn, in [0, 1].
        credit: Which part of a joint action's return an agent is credited with.
        turn_weights: `reach` weighs nodes by the probability of reaching them, and what a chain
            walked for the joint actions that it stands for; `nodes` weighs all alike.
    """
    baselines: dict[AgentID, list[dict[int, float]]] = {}
    if turn_weights == "reach":
        agents = dict.fromkeys(agent for rollout in rollouts for agent in rollout.agents)
        baselines = {agent: chain_baselines(rollouts, agent, gamma) for agent in agents}
    for number, rollout in enumerate(rollouts):
        for node, weight in weighted_nodes(rollout.root, turn_weights):
            for agent, completions in node.completions.items():
                baseline = None
                if turn_weights == "reach":
                    baseline = baselines[agent][number].get(node.turn, 0.0)
                returns = sample_returns(node, agent, gamma, credit, baseline)
                plain = returns
                if baseline is not None and any(step.child is not None for step in node.steps):
                    plain = sample_returns(node, agent, gamma, credit)
                yield Group(
                    agent,
                    node.turn,
                    tuple(completions),
                    tuple(returns),
                    weight,
                    rollout=number,
                    is_flat=min(plain) == max(plain),
                )


def chain_baselines(
    rollouts: Sequence[Rollout], agent: AgentID, gamma: float
) -> list[dict[int, float]]:
    """Return for each rollout, by turn, what followed joint actions of the other chains."""
    return other_rollouts_means(rollouts, lambda _, node: _walked_values(node, agent, gamma, 0.0))


def _walked_values(
    node: Node, agent: AgentID, gamma: float, baseline: float | None
) -> dict[int, float]:
    """Return the value of each child, by the number of its joint action.

    The mean over joint actions is unbiased with any baseline, so 0 is taken.
    """
    inner = None if baseline is None else 0.0
    return {
        number: mean(joint_returns(step.child, agent, gamma, inner))
        for number, step in enumerate(node.steps)
        if step.child is not None
    }
