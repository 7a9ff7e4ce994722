"""Generalised advantage estimation over the tokens of an answer, without torch.

Each token is an action: a critic has a value before every token, and the answer's reward arrives
with its last token. The estimator over whole answers is in `mlrl_learners.functional.gae`.

Sources: GAE (arXiv 1506.02438, eq. 16); rewards of tokens in RLHF (arXiv 1909.08593, section 2;
arXiv 2203.02155, eq. 2).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["TokenFuture", "token_advantages", "token_rewards", "turn_future"]


@dataclass(frozen=True, slots=True)
class TokenFuture:
    """What follows the last token of an answer; 0 if the episode ended for its agent.

    Attributes:
        value: Value before the first token of the agent's next answer.
        advantage: Mean advantage of the first token of the next answers.
    """

    value: float = 0.0
    advantage: float = 0.0


def token_rewards(reward: float, kl: Sequence[float], kl_coef: float) -> list[float]:
    """Return the reward of each token: -kl_coef * KL, and the answer's reward on the last one.

    Unlike a charge for the whole answer, a token is charged for its own divergence and for that of
    the tokens after it, not for those before.

    Args:
        reward: Reward of the answer.
        kl: Estimate of KL(pi || pi_ref) at each token, at least one.
        kl_coef: Weight of the estimates, at least 0.
    """
    rewards = [-kl_coef * each for each in kl]
    rewards[-1] += reward
    return rewards


def token_advantages(
    rewards: Sequence[float],
    values: Sequence[float],
    future: TokenFuture = TokenFuture(),
    *,
    gae_lambda: float,
    gamma: float = 1.0,
    turn_gamma: float = 1.0,
) -> list[float]:
    """Return A_t = delta_t + gamma * lambda * A_(t+1), delta_t = r_t + gamma * V_(t+1) - V_t.

    After the last token, V and A are those of `future`, discounted by `turn_gamma`. The target of
    each value is A_t + V_t.

    Args:
        rewards: Reward of each token, see `token_rewards`.
        values: Value before each token.
        future: What follows the last token.
        gae_lambda: lambda, in [0, 1].
        gamma: Discount factor per token, in [0, 1]; below 1 favours short answers.
        turn_gamma: Discount factor from the last token to the next turn, in [0, 1].
    """
    advantages: list[float] = []
    value, advantage, discount = future.value, future.advantage, turn_gamma
    for reward, here in zip(reversed(rewards), reversed(values), strict=True):
        advantage = reward + discount * (value + gae_lambda * advantage) - here
        value, discount = here, gamma
        advantages.append(advantage)
    return advantages[::-1]


def turn_future(values: Sequence[float], advantages: Sequence[float]) -> TokenFuture:
    """Return what follows a joint action, from the agent's next answers.

    Args:
        values: Value before the first token of each next answer; all are V of one prompt.
        advantages: Advantage of the first token of each next answer, in the same order.
    """
    if not values:
        return TokenFuture()
    return TokenFuture(math.fsum(values) / len(values), math.fsum(advantages) / len(advantages))
