"""Weights of answers in the loss of an update, and what means over them divide by."""

import math
from collections.abc import Collection, Sequence

from mlrl_learners.algorithms.policy_gradient import PolicyGradientConfig
from mlrl_learners.functional.losses import token_weights
from mlrl_learners.functional.reach import root_weight
from mlrl_learners.types import AgentID, Completion, Rollout

__all__ = ["answer_weights", "mean_divisor"]


def answer_weights(
    completions: Sequence[Completion],
    config: PolicyGradientConfig,
    node_weights: Sequence[float] | None = None,
    total: float | None = None,
) -> list[float]:
    """Return the weight of each answer's tokens in the loss of an update on these answers.

    That of a masked answer is 0, and all others weigh what they would beside it.

    Args:
        completions: Every answer of the update.
        config: Which mean, and which answers are masked.
        node_weights: For each answer, the weight of its node; all alike by default.
        total: What means over answers divide by, from `mean_divisor`; by default the sum of the
            weights.
    """
    weights = token_weights(
        [len(completion.token_ids) for completion in completions],
        config.loss,
        row_weights=node_weights or [1.0] * len(completions),
        max_tokens=config.max_new_tokens,
        total_weight=total,
    )
    return [
        0.0 if config.is_masked(completion) else weight
        for completion, weight in zip(completions, weights, strict=True)
    ]


def mean_divisor(
    rollouts: Sequence[Rollout],
    agents: Collection[AgentID],
    node_weights: Sequence[float],
    config: PolicyGradientConfig,
) -> float:
    """Return what means over the answers of some agents divide by.

    Args:
        rollouts: What was played.
        agents: Those that answered and learn with one set of weights.
        node_weights: For each of their answers, the weight of its node.
        config: Whether nodes weigh their reach.
    """
    if config.turn_weights == "nodes":
        return math.fsum(node_weights)
    return root_weight(rollouts, agents)
