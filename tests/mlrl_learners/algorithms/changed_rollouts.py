"""Rollouts that differ from given ones in a way that must not matter."""

from mlrl_learners.types import Node, Rollout

OTHER = {"left": "right", "right": "left"}


def relabelled(rollouts):
    """Return rollouts of one turn in which `left` and `right` have exchanged their answers."""
    return [
        Rollout("t", r.task_id, tuple(OTHER), Node(
            0, r.root.observations,
            {OTHER[agent]: group for agent, group in r.root.completions.items()},
            r.root.steps,
        ))
        for r in rollouts
    ]  # fmt: skip
