"""Advantages and value targets of the tokens of an answer, for critics with a value before each.

Within an answer nothing is discounted; between turns `credit.gamma` is. The estimator over turns
(`TurnGae`) gives the expected return of a joint action, which arrives with the last token.

Sources: see `mlrl_learners.functional.token_gae`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mlrl_learners.algorithms.critic_inputs import ValueEstimates
from mlrl_learners.functional.presence import seen
from mlrl_learners.functional.token_gae import token_advantages, token_rewards
from mlrl_learners.types import AgentID, Completion, Node

__all__ = ["TokenActions"]


@dataclass(frozen=True, slots=True)
class TokenActions:
    """Tokens as actions.

    Attributes:
        estimates: Values at sampling time.
        charges: KL charge of each token of answers, which rewards contain as sums.
        gae_lambda: lambda per token, in [0, 1].
    """

    estimates: ValueEstimates
    charges: Mapping[tuple[AgentID, Completion], Sequence[float]]
    gae_lambda: float

    def values(self, node: Node, agent: AgentID, number: int) -> list[float]:
        """Return the value before each token of an answer."""
        answer = node.completions[agent][number]
        return self.estimates.of_tokens(agent, seen(node), answer)

    def advantages(self, node: Node, agent: AgentID, number: int, expected: float) -> list[float]:
        """Return the advantage of each token of an answer.

        Args:
            node: Node of the answer.
            agent: Agent that gave it.
            number: Index of the answer.
            expected: Expected return of the answer, from its reward on.
        """
        answer = node.completions[agent][number]
        charges = self.charges.get((agent, answer), (0.0,) * len(answer.token_ids))
        rewards = token_rewards(expected + sum(charges), charges, 1.0)
        values = self.values(node, agent, number)
        return token_advantages(rewards, values, gae_lambda=self.gae_lambda)

    def entering(self, node: Node, agent: AgentID, expected: Sequence[float]) -> list[float]:
        """Return the advantage of the first token of each joint action's answer."""
        return [
            self.advantages(node, agent, step.samples[agent], each)[0]
            for step, each in zip(node.steps, expected, strict=True)
        ]
