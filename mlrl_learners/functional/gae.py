"""Generalised advantage estimation over the turns of rollout trees. Free of torch.

One turn is one action: an agent reads its prompt and writes a whole completion. A value is of what
is read, before anything is written. In a tree the future of a joint action is the mean over the
joint actions that follow it; a chain of one sample a node is the textbook's case.

A turn limit ends an episode for good unless the environment says that it is artificial. If it is
part of the task, nothing can be earned behind it, and adding a critic's value there would pay
agents for running into it.

Sources: GAE (arXiv 1506.02438); bootstrapping at artificial time limits (arXiv 1712.00378).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from mlrl_learners.figures.means import mean
from mlrl_learners.functional.reach import count_going_on, other_rollouts_means, share_futures
from mlrl_learners.types import AgentID, JointStep, Node, Rollout

__all__ = ["TurnGae", "Value", "chain_baselines"]

Value = Callable[[AgentID, Mapping[AgentID, str]], float]
"""What an agent can expect from where the agents read these observations."""


@dataclass(frozen=True, slots=True)
class TurnGae:
    """Advantages A = d + gamma * lambda * A' with d = r + gamma * V(next) - V(node).

    A' is the mean advantage of the joint actions that follow. What V(next) and A' are:

    - after a joint action with a child: the child's
    - after one that ended the task, or was cut by the turn limit: both 0, nothing follows
    - after one that was cut by an artificial limit, with `bootstrap`: V of what would have been
      read next, and A' = 0
    - after one that a chain did not walk further: V of what would have been read next. A' is
      shared out as `mlrl_learners.functional.reach.share_futures` says.

    Nothing follows for an agent that has left. With V = 0 and lambda = 1 they are MAGRPO's returns.
    A value target is A + V(node): it keeps the scale of the rewards.

    Attributes:
        value: The critic, as it was when the rollouts were played.
        gamma: Discount a turn, in [0, 1].
        gae_lambda: 0 for one-step temporal differences, 1 for returns less values.
        bootstrap: Whether the turn limit is artificial, and what follows it is estimated by the
            critic.
    """

    value: Value
    gamma: float
    gae_lambda: float
    bootstrap: bool = False

    def joint_advantages(
        self, node: Node, agent: AgentID, baseline: float | None = None
    ) -> list[float]:
        """Return the advantage of each joint action played at `node`.

        Args:
            node: Where the joint actions were played.
            agent: Whose rewards count.
            baseline: The expected A' after a joint action, independent of those at this node;
                None credits the A' of a chain to all joint actions that go on.
        """
        here = self.value(agent, node.observations)
        return [expected - here for expected in self._expected(node, agent, baseline)]

    def futures(self, node: Node, agent: AgentID) -> dict[int, float]:
        """Return the A' of each joint action that was walked further, by its number."""
        return {number: each.advantage for number, each in self._walked(node, agent, 0.0).items()}

    def _expected(self, node: Node, agent: AgentID, baseline: float | None) -> list[float]:
        """Return A + V(node) of each joint action."""
        walked = self._walked(node, agent, baseline)
        advantages, other = share_futures(
            {number: future.advantage for number, future in walked.items()},
            count_going_on(node),
            baseline,
        )
        value = mean([future.value for future in walked.values()], default=0.0)
        expected = []
        for number, step in enumerate(node.steps):
            future = _Future(value, other)
            if step.child is None:
                future = self._cut(step, agent, future)
            elif agent in step.child.observations:
                future = _Future(walked[number].value, advantages[number])
            else:
                future = walked[number]
            reward = step.rewards.get(agent, 0.0)
            expected.append(
                reward + self.gamma * (future.value + self.gae_lambda * future.advantage)
            )
        return expected

    def _walked(self, node: Node, agent: AgentID, baseline: float | None) -> "dict[int, _Future]":
        """Return what comes after each joint action that was walked further, by its number."""
        inner = None if baseline is None else 0.0  # any baseline leaves a mean without bias
        return {
            number: self._entered(step.child, agent, inner)
            for number, step in enumerate(node.steps)
            if step.child is not None
        }

    def _entered(self, child: Node, agent: AgentID, baseline: float | None) -> "_Future":
        expected = mean(self._expected(child, agent, baseline), default=0.0)
        if agent not in child.observations:
            return _Future(expected, 0.0)
        value = self.value(agent, child.observations)
        return _Future(value, expected - value)

    def _cut(self, step: JointStep, agent: AgentID, sibling: "_Future") -> "_Future":
        """Return what would have followed a joint action that nobody walked on from."""
        if step.terminated or (step.truncated and not self.bootstrap):
            return _Future(0.0, 0.0)
        if not step.next_observations:  # nobody asked
            return _Future(0.0, 0.0) if step.truncated else sibling
        if agent not in step.next_observations:
            return _Future(0.0, 0.0)
        value = self.value(agent, step.next_observations)
        return _Future(value, 0.0 if step.truncated else sibling.advantage)


def chain_baselines(
    rollouts: Sequence[Rollout], estimators: Sequence[TurnGae], agent: AgentID
) -> list[dict[int, float]]:
    """Return for each rollout, by turn, the mean A' after joint actions of the other chains.

    Args:
        rollouts: What was played.
        estimators: For each rollout, how its advantages are estimated.
        agent: Whose advantages.
    """
    return other_rollouts_means(
        rollouts, lambda number, node: estimators[number].futures(node, agent)
    )


@dataclass(frozen=True, slots=True)
class _Future:
    """What comes after a joint action: V(next) and the mean advantage there."""

    value: float
    advantage: float
