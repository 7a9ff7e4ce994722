"""Advantage alignment: reciprocity between agents with rewards of their own, without torch.

In a repeated game with mixed motives, independent learners end where nobody cooperates. Advantage
alignment adds the advantage of the others where the agent's own past went well: good turns are
answered with actions that benefit the others, bad turns with actions that harm them.

Sources: advantage alignment (arXiv 2406.14662), with language models and advantages relative to a
group (arXiv 2511.19405). The published weight has one more factor gamma, which is part of beta
here.
"""

import math
from collections.abc import Callable, Iterator, Sequence

from mlrl_learners.types import AgentID, Node

__all__ = ["JointValues", "aligned_advantages", "alignment_terms", "past_advantages"]

JointValues = Callable[[Node, AgentID], Sequence[float]]
"""Value of each joint action of a node for an agent."""


def past_advantages(
    root: Node, advantages: Callable[[Node], Sequence[float]], gamma: float
) -> Iterator[tuple[Node, float]]:
    """Yield each node of a tree with w = sum over k < t of gamma^(t - k) A_k, parents first.

    A_k are the agent's own advantages on the path to the node, so that w is 0 at the root.

    Args:
        root: Root of the tree.
        advantages: Own advantage of each joint action of a node, in order; zeros where the agent
            does not act.
        gamma: Discount factor per turn of the episode, in [0, 1].
    """
    yield from _below(root, 0.0, advantages, gamma)


def aligned_advantages(
    own: Sequence[float],
    others: Sequence[Sequence[float]],
    past: float,
    *,
    beta: float,
) -> list[float]:
    """Return A + beta * w * (sum of the others' advantages) for each joint action of a node.

    Args:
        own: Advantage A of the agent for each joint action.
        others: Advantages of each other agent for the same joint actions.
        past: w of the node, from `past_advantages`.
        beta: Weight of the alignment, at least 0; 0 is independent learning.
    """
    return [
        advantage + beta * past * math.fsum(theirs[number] for theirs in others)
        for number, advantage in enumerate(own)
    ]


def alignment_terms(
    root: Node, agents: Sequence[AgentID], values: JointValues, *, gamma: float, beta: float
) -> dict[tuple[int, AgentID], list[float]]:
    """Return beta * w * (sum of the others' advantages) of each joint action, by node id and agent.

    The advantage of a joint action for an agent is its value minus the mean over the node; others
    may act at the node or wait there.

    Args:
        root: Root of the tree.
        agents: Every agent.
        values: Return of each joint action for an agent.
        gamma: Discount factor per turn of the episode, in [0, 1].
        beta: Weight of the alignment, at least 0.
    """
    centred = {
        (id(node), agent): _less_mean(values(node, agent))
        for node in root.walk()
        for agent in agents
    }
    terms = {}
    for agent in agents:

        def own(node: Node, agent: AgentID = agent) -> Sequence[float]:
            return (
                centred[id(node), agent] if agent in node.completions else [0.0] * len(node.steps)
            )

        for node, past in past_advantages(root, own, gamma):
            others = [centred[id(node), other] for other in agents if other != agent]
            zeros = [0.0] * len(node.steps)
            terms[id(node), agent] = aligned_advantages(zeros, others, past, beta=beta)
    return terms


def _less_mean(values: Sequence[float]) -> list[float]:
    if min(values) == max(values):
        return [0.0] * len(values)  # exactly 0: rounding errors must not become a gradient
    mean = math.fsum(values) / len(values)
    return [value - mean for value in values]


def _below(
    node: Node, past: float, advantages: Callable[[Node], Sequence[float]], gamma: float
) -> Iterator[tuple[Node, float]]:
    yield node, past
    if all(step.child is None for step in node.steps):
        return
    for step, advantage in zip(node.steps, advantages(node), strict=True):
        if step.child is not None:
            yield from _below(step.child, gamma * (past + advantage), advantages, gamma)
