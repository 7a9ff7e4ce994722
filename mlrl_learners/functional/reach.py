"""Weights of the nodes of a rollout tree, and shares of what follows a joint action. Torch-free.

A tree goes on from every joint action, so turn t has (number of joint actions)^t nodes. If all rows
weighed 1, a later turn would count once for each of its nodes, and their sum would not be the
gradient of the return. The policy gradient theorem weighs a state by the probability of reaching
it. Of the n joint actions played at a node, k go on and w of these are walked (`w = k` in a tree,
`w = 1` in a chain); a walked child stands for k / w of the n equally likely joint actions:

    weight(child) = weight(node) * k / (n * w)

which is 1 / n in a tree. By the same argument what follows a walked joint action counts k / w times
among its siblings, and what follows the others 0 times; a baseline b that does not depend on them
takes the variance off (control variate), whatever b is:

    future(j) = b + (k / w) * (future(j) - b)  if j was walked, else b

Source: policy gradient theorem (Sutton et al., 1999); importance weights as in
Horvitz and Thompson (1952).
"""

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Literal

from mlrl_learners.types import AgentID, JointStep, Node, Rollout

__all__ = [
    "TurnWeights",
    "count_going_on",
    "other_rollouts_means",
    "root_weight",
    "share_futures",
    "weighted_nodes",
]

TurnWeights = Literal["reach", "nodes"]

Futures = Callable[[int, Node], Mapping[int, float]]
"""What follows each joint action that was walked further, from a rollout's number and a node."""


def count_going_on(node: Node) -> int:
    """Return after how many joint actions of a node the episode goes on, walked or not."""
    return sum(map(_goes_on, node.steps))


def weighted_nodes(root: Node, kind: TurnWeights) -> Iterator[tuple[Node, float]]:
    """Yield each node of a tree with its weight, parents first.

    Args:
        root: Where the episode begins; its weight is 1.
        kind: `reach` weighs a node by the probability of reaching it; `nodes` weighs all alike.
    """
    yield from _weighted(root, 1.0, kind)


def root_weight(rollouts: Sequence[Rollout], agents: Collection[AgentID]) -> float:
    """Return how many answers the agents give at the roots, asked there or later.

    A mean over answers divides by it. The sum of all weights would not do: it depends on how many
    episodes go on, and so on the very actions whose gradient is estimated.
    """
    total = 0
    for rollout in rollouts:
        group_size = max(len(answers) for answers in rollout.root.completions.values())
        total += group_size * sum(agent in agents for agent in rollout.agents)
    return float(total)


def share_futures(
    walked: Mapping[int, float], num_going_on: int, baseline: float | None
) -> tuple[dict[int, float], float]:
    """Return what follows each walked joint action, and what follows each other one that goes on.

    Args:
        walked: For each joint action that was walked further, by number, what followed it.
        num_going_on: Joint actions after which the episode goes on, walked or not, k.
        baseline: b; None credits what followed to all joint actions that go on alike. That has
            less variance, but does not tell which of them made it possible.
    """
    if not walked or len(walked) == num_going_on:
        return dict(walked), 0.0
    if baseline is None:
        return dict(walked), math.fsum(walked.values()) / len(walked)
    scale = num_going_on / len(walked)
    futures = {number: baseline + scale * (value - baseline) for number, value in walked.items()}
    return futures, baseline


def other_rollouts_means(rollouts: Sequence[Rollout], futures: Futures) -> list[dict[int, float]]:
    """Return for each rollout, by turn, the mean of `futures` over the other rollouts.

    Only nodes at which some joint action that goes on was not walked count: the others need no
    baseline. The mean does not depend on the rollout it is a baseline for, so it adds no bias. A
    turn that no other rollout has is left out; 0 is a baseline there.
    """
    sums: list[dict[int, float]] = []
    for number, rollout in enumerate(rollouts):
        means: dict[int, list[float]] = defaultdict(list)
        for node in rollout.root.walk():
            if _is_thinned(node) and (walked := futures(number, node)):
                means[node.turn].append(math.fsum(walked.values()) / len(walked))
        sums.append({turn: math.fsum(values) / len(values) for turn, values in means.items()})
    totals: dict[int, float] = defaultdict(float)
    counts: dict[int, int] = defaultdict(int)
    for mine in sums:
        for turn, value in mine.items():
            totals[turn] += value
            counts[turn] += 1
    return [
        {
            turn: (totals[turn] - value) / (counts[turn] - 1)
            for turn, value in mine.items()
            if counts[turn] > 1
        }
        for mine in sums
    ]


def _weighted(node: Node, weight: float, kind: TurnWeights) -> Iterator[tuple[Node, float]]:
    yield node, weight
    children = [step.child for step in node.steps if step.child is not None]
    if not children:
        return
    if kind == "reach":
        going_on = count_going_on(node)
        weight *= going_on / (len(node.steps) * len(children))
    for child in children:
        yield from _weighted(child, weight, kind)


def _goes_on(step: JointStep) -> bool:
    return step.child is not None or not (step.terminated or step.truncated)


def _is_thinned(node: Node) -> bool:
    """Return whether some joint action that goes on was not walked further, and some was."""
    walked = sum(step.child is not None for step in node.steps)
    return 0 < walked < count_going_on(node)
