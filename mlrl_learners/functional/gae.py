"""Generalised advantage estimation (GAE) over the turns of rollout trees, without torch.

One turn is one action: an agent reads its prompt and writes a whole completion. An agent that waits
has no action: its decision lasts until the next turn in which it acts, and earns what arrives in
between. gamma counts turns of the episode, lambda counts decisions of the agent. A value is the
expected return from an observation on, at which the agent acts. In a tree, the future of a joint
action is the mean over the joint actions that follow it; a chain with one sample per node gives
standard GAE.

A turn limit ends an episode unless the environment declares it artificial. If the limit is part of
the task, no reward can follow it, and a critic's value there would reward agents for reaching it.

Sources: GAE (arXiv 1506.02438, eq. 16); bootstrapping at artificial time limits
(arXiv 1712.00378).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from mlrl_learners.figures.means import mean
from mlrl_learners.functional.presence import next_seen, seen, waits_after
from mlrl_learners.functional.reach import count_continuing, other_rollouts_means, share_futures
from mlrl_learners.types import AgentID, JointStep, Node, Rollout

__all__ = ["Entering", "TurnGae", "Value", "chain_baselines"]

Value = Callable[[AgentID, Mapping[AgentID, str]], float]
"""Expected return V of an agent from the observations of all agents on."""
Entering = Callable[[Node, AgentID, Sequence[float]], Sequence[float]]
"""Advantage A' of each joint action of a node, from its expected return A + V."""


@dataclass(frozen=True, slots=True)
class TurnGae:
    """Advantages A = delta + gamma * lambda * A' with delta = r + gamma * V(next) - V(node).

    r is the discounted sum of the rewards until the agent's next decision, V(next) its value there,
    discounted by the turns in between, and A' the mean advantage of the joint actions that follow
    there. V(next) and A' are:

    - after a joint action with a child: those of the child
    - after a joint action that ended the task or reached the turn limit: both 0
    - after a joint action that reached an artificial limit, with `bootstrap`: V of the next
      observation, and A' = 0
    - after a joint action that a chain did not continue from: V of the next observation, and A'
      from `mlrl_learners.functional.reach.share_futures`
    - after such a joint action if the agent waits next, so that neither is known: the whole future
      from `share_futures`

    Both are 0 for an agent that has left. With V = 0 and lambda = 1, A is the return of MAGRPO.
    The value target A + V(node) keeps the scale of the rewards.

    Attributes:
        value: Critic at sampling time.
        gamma: Discount factor per turn, in [0, 1].
        gae_lambda: lambda, from 0 (one-step temporal differences) to 1 (returns minus values).
        bootstrap: Whether the turn limit is artificial and the critic's value follows it.
        entering: A' of the joint actions that follow, where an answer is many actions; None for
            their A.
    """

    value: Value
    gamma: float
    gae_lambda: float
    bootstrap: bool = False
    entering: Entering | None = None

    def joint_advantages(
        self,
        node: Node,
        agent: AgentID,
        baseline: float | None = None,
        *,
        waiting_baseline: float = 0.0,
    ) -> list[float]:
        """Return the advantage A of each joint action of `node`.

        Args:
            node: Node of the joint actions, at which the agent acts.
            agent: Agent whose rewards count.
            baseline: Expected A' after a joint action, independent of the actions at this node;
                None credits the A' of a chain to all joint actions after which the episode
                continues.
            waiting_baseline: Expected future after a joint action after which the agent waits,
                independent of the actions at this node; not used without `baseline`.
        """
        here = self.value(agent, seen(node))
        baselines = None if baseline is None else (baseline, waiting_baseline)
        return [expected - here for expected in self._expected(node, agent, baselines)]

    def futures(self, node: Node, agent: AgentID, *, waiting: bool = False) -> dict[int, float]:
        """Return what follows each joint action that has a child, by its index.

        Args:
            node: Node of the joint actions.
            agent: Agent whose rewards count.
            waiting: If true, the whole future of joint actions after which the agent waits;
                otherwise A' of the others.
        """
        return {
            number: each.value if waiting else each.advantage
            for number, each in self._futures_of(node, agent, (0.0, 0.0)).items()
            if waits_after(node.steps[number], agent) == waiting
        }

    def _expected(self, node: Node, agent: AgentID, baselines: "_Baselines") -> list[float]:
        """Return A + V(node) of each joint action."""
        observed = self._futures_of(node, agent, baselines)
        num_continuing = count_continuing(node)
        for_acting, for_waiting = (None, None) if baselines is None else baselines
        advantages, other = share_futures(
            {number: future.advantage for number, future in observed.items()},
            num_continuing,
            for_acting,
        )
        # A child at which the agent waits has its whole future as value, and no advantage.
        values, other_waiting = share_futures(
            {number: future.value for number, future in observed.items()},
            num_continuing,
            for_waiting,
        )
        value = mean([future.value for future in observed.values()], default=0.0)
        expected = []
        for number, step in enumerate(node.steps):
            waits = waits_after(step, agent)
            if step.child is None and waits and baselines is not None:
                future = _Future(other_waiting, 0.0)
            elif step.child is None:
                future = self._cut(step, agent, _Future(value, other))
            elif waits:
                future = _Future(values[number], 0.0)
            elif agent in step.child.observations:
                future = _Future(observed[number].value, advantages[number])
            else:
                future = observed[number]
            reward = step.rewards.get(agent, 0.0)
            expected.append(
                reward + self.gamma * (future.value + self.gae_lambda * future.advantage)
            )
        return expected

    def _futures_of(
        self, node: Node, agent: AgentID, baselines: "_Baselines"
    ) -> "dict[int, _Future]":
        """Return the future of each joint action that has a child, by its index."""
        # The mean over joint actions is unbiased with any baseline.
        inner = None if baselines is None else (0.0, 0.0)
        return {
            number: self._entered(step.child, agent, inner)
            for number, step in enumerate(node.steps)
            if step.child is not None
        }

    def _entered(self, child: Node, agent: AgentID, baselines: "_Baselines") -> "_Future":
        returns = self._expected(child, agent, baselines)
        expected = mean(returns, default=0.0)
        if agent not in child.observations:
            return _Future(expected, 0.0)
        value = self.value(agent, seen(child))
        if self.entering is None:
            return _Future(value, expected - value)
        return _Future(value, mean(list(self.entering(child, agent, returns)), default=0.0))

    def _cut(self, step: JointStep, agent: AgentID, sibling: "_Future") -> "_Future":
        """Return the future of a joint action without a child.

        Args:
            step: The joint action.
            agent: Agent whose future it is.
            sibling: Mean future of the joint actions with a child.
        """
        if step.terminated or (step.truncated and not self.bootstrap):
            return _Future(0.0, 0.0)
        if not (step.next_observations or step.next_waiting):  # the environment returned none
            return _Future(0.0, 0.0) if step.truncated else sibling
        if agent in step.next_waiting:
            return sibling
        if agent not in step.next_observations:
            return _Future(0.0, 0.0)
        value = self.value(agent, next_seen(step))
        return _Future(value, 0.0 if step.truncated else sibling.advantage)


def chain_baselines(
    rollouts: Sequence[Rollout],
    estimators: Sequence[TurnGae],
    agent: AgentID,
    *,
    waiting: bool = False,
) -> list[dict[int, float]]:
    """Return the mean A' after joint actions of the other chains, by turn, for each rollout.

    Args:
        rollouts: The rollouts.
        estimators: Estimator of each rollout.
        agent: Agent whose advantages are estimated.
        waiting: Return the mean future after joint actions after which the agent waits instead.
    """
    return other_rollouts_means(
        rollouts, lambda number, node: estimators[number].futures(node, agent, waiting=waiting)
    )


_Baselines: TypeAlias = tuple[float, float] | None
"""Expected A' where the agent acts next, and expected future where it waits next."""


@dataclass(frozen=True, slots=True)
class _Future:
    """V(next) and A' after a joint action."""

    value: float
    advantage: float
