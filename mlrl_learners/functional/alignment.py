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

from mlrl_learners.types import Node

__all__ = ["aligned_advantages", "past_advantages"]


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


def _below(
    node: Node, past: float, advantages: Callable[[Node], Sequence[float]], gamma: float
) -> Iterator[tuple[Node, float]]:
    yield node, past
    if all(step.child is None for step in node.steps):
        return
    for step, advantage in zip(node.steps, advantages(node), strict=True):
        if step.child is not None:
            yield from _below(step.child, gamma * (past + advantage), advantages, gamma)
