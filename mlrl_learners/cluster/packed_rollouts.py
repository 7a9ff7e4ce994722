"""Rollouts as flat lists of nodes, which are sent between processes.

A node holds its children, so that `pickle` goes one level deeper for each turn, and fails at about
150 turns.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from mlrl_learners.types import FailedEpisode, Node, Rollout

__all__ = ["Packed", "PackedRollout", "packed_groups", "unpacked_groups"]


@dataclass(frozen=True, slots=True)
class PackedRollout:
    """A rollout whose nodes have no children.

    Attributes:
        rollout: The rollout, whose root has no children.
        nodes: All nodes, parents first, each with the place of the child of each step in this
            list; 0, the place of the root, for none.
    """

    rollout: Rollout
    nodes: Sequence[tuple[Node, Sequence[int]]]


Packed = Sequence[Sequence[PackedRollout | FailedEpisode]]


def packed_groups(groups: Sequence[Sequence[Rollout | FailedEpisode]]) -> Packed:
    """Return the rollouts of groups of trees, packed; failures stay as they are."""
    return [
        [_packed(each) if isinstance(each, Rollout) else each for each in group] for group in groups
    ]


def unpacked_groups(groups: Packed) -> list[Sequence[Rollout | FailedEpisode]]:
    """Return what `packed_groups` was given."""
    return [
        [_unpacked(each) if isinstance(each, PackedRollout) else each for each in group]
        for group in groups
    ]


def _packed(rollout: Rollout) -> PackedRollout:
    waiting, found = [rollout.root], []
    for node in waiting:  # which grows
        places = []
        for step in node.steps:
            places.append(0 if step.child is None else len(waiting))
            if step.child is not None:
                waiting.append(step.child)
        steps = tuple(replace(step, child=None) for step in node.steps)
        found.append((replace(node, steps=steps), places))
    return PackedRollout(replace(rollout, root=found[0][0]), found)


def _unpacked(packed: PackedRollout) -> Rollout:
    nodes = [node for node, _ in packed.nodes]
    for number in range(len(nodes) - 1, -1, -1):  # children first
        node, places = packed.nodes[number]
        steps = tuple(
            replace(step, child=nodes[place] if place else None)
            for step, place in zip(node.steps, places, strict=True)
        )
        nodes[number] = replace(node, steps=steps)
    return replace(packed.rollout, root=nodes[0])
