"""Generalised advantage estimation over the turns of rollout trees. Free of torch.

One turn is one action: an agent reads its prompt and writes a whole completion. A value is of what
is read, before anything is written. In a tree the future of a joint action is the mean over the
joint actions that follow it; a chain of one sample a node is the textbook's case.

Sources: GAE (arXiv 1506.02438); bootstrapping where an episode is cut but has not ended
(arXiv 1712.00378).
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from mlrl_learners.types import AgentID, JointStep, Node

__all__ = ["TurnGae", "Value"]

Value = Callable[[AgentID, Mapping[AgentID, str]], float]
"""What an agent can expect from where the agents read these observations."""


@dataclass(frozen=True, slots=True)
class TurnGae:
    """Advantages A = d + gamma * lambda * A' with d = r + gamma * V(next) - V(node).

    A' is the mean advantage of the joint actions that follow. What V(next) and A' are:

    - after a joint action with a child: the child's
    - after one that ended the task: both 0, nothing follows
    - after one cut by the turn limit: V of what would have been read next, and A' = 0
    - after one that a chain did not walk further: V of what would have been read next, and the A'
      of its walked sibling, for the reason given in `functional.returns.joint_returns`

    Nothing follows for an agent that has left. With V = 0 and lambda = 1 they are MAGRPO's returns.
    A value target is A + V(node): it keeps the scale of the rewards.

    Attributes:
        value: The critic, as it was when the rollouts were played.
        gamma: Discount a turn, in [0, 1].
        gae_lambda: 0 for one-step temporal differences, 1 for returns less values.
        bootstrap_truncated: Whether the turn limit is a cut; if not, it ends the task.
    """

    value: Value
    gamma: float
    gae_lambda: float
    bootstrap_truncated: bool = True

    def joint_advantages(self, node: Node, agent: AgentID) -> list[float]:
        """Return the advantage of each joint action played at `node`."""
        here = self.value(agent, node.observations)
        return [expected - here for expected in self._expected(node, agent)]

    def _expected(self, node: Node, agent: AgentID) -> list[float]:
        """Return A + V(node) of each joint action."""
        walked = {
            number: self._entered(step.child, agent)
            for number, step in enumerate(node.steps)
            if step.child is not None
        }
        sibling = _mean_future(list(walked.values()))
        futures = [
            walked[number] if number in walked else self._cut(step, agent, sibling)
            for number, step in enumerate(node.steps)
        ]
        return [
            step.rewards.get(agent, 0.0)
            + self.gamma * (future.value + self.gae_lambda * future.advantage)
            for step, future in zip(node.steps, futures, strict=True)
        ]

    def _entered(self, child: Node, agent: AgentID) -> "_Future":
        expected = _mean(self._expected(child, agent))
        if agent not in child.observations:
            return _Future(expected, 0.0)
        value = self.value(agent, child.observations)
        return _Future(value, expected - value)

    def _cut(self, step: JointStep, agent: AgentID, sibling: "_Future") -> "_Future":
        """Return what would have followed a joint action that nobody walked on from."""
        if step.terminated or (step.truncated and not self.bootstrap_truncated):
            return _Future(0.0, 0.0)
        if not step.next_observations:  # nobody asked
            return _Future(0.0, 0.0) if step.truncated else sibling
        if agent not in step.next_observations:
            return _Future(0.0, 0.0)
        value = self.value(agent, step.next_observations)
        return _Future(value, 0.0 if step.truncated else sibling.advantage)


@dataclass(frozen=True, slots=True)
class _Future:
    """What comes after a joint action: V(next) and the mean advantage there."""

    value: float
    advantage: float


def _mean_future(futures: Sequence[_Future]) -> _Future:
    return _Future(_mean([f.value for f in futures]), _mean([f.advantage for f in futures]))


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if values else 0.0
