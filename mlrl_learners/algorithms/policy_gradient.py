"""What policy-gradient methods share: how rollouts are walked, and the clipped surrogate.

It does not say what an answer is worth: that is what tells the methods apart.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor

from mlrl_learners.algorithms.team import TeamConfig
from mlrl_learners.errors import ConfigError, NumericsError
from mlrl_learners.functional.losses import LossKind, policy_loss, token_weights
from mlrl_learners.types import Branching, Completion, JointMode

__all__ = [
    "PolicyGradientConfig",
    "answer_weights",
    "check_finite",
    "minibatches",
    "per_token",
    "surrogate",
]

Row = TypeVar("Row")


@dataclass(frozen=True)
class PolicyGradientConfig(TeamConfig):
    """How rollouts are walked, and what is done with what their answers are worth.

    Attributes:
        group_size: Answers an agent gives to one prompt, G, at least 1.
        joint_mode: `"aligned"` plays the j-th answers together, `"cross"` every combination.
        branching: `"tree"` goes on from every joint action, `"chain"` from one of them.
        gamma: Discount a turn, in [0, 1].
        loss: `grpo`, `token_mean`, `dr_grpo`, `sequence` or `gspo`.
        clip_low: The ratio counts down to 1 - clip_low, in [0, 1]; 1 for no limit.
        clip_high: The ratio counts up to 1 + clip_high, at least 0; infinity for no limit.
        epochs: Passes over the same rollouts, at least 1.
        num_minibatches: Optimizer steps a pass, at least 1.
    """

    group_size: int = 4
    joint_mode: JointMode = "aligned"
    branching: Branching = "tree"
    gamma: float = 1.0
    loss: LossKind = "grpo"
    clip_low: float = 0.2
    clip_high: float = 0.2
    epochs: int = 1
    num_minibatches: int = 1

    def __post_init__(self) -> None:
        """Check ranges.

        Raises:
            ConfigError: If a value is outside its range.
        """
        super().__post_init__()
        for name in ("group_size", "epochs", "num_minibatches"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} must be at least 1, got {getattr(self, name)}")
        for name in ("gamma", "clip_low"):
            if not 0 <= getattr(self, name) <= 1:
                raise ConfigError(f"{name} must be in [0, 1], got {getattr(self, name)}")
        if not self.clip_high >= 0:
            raise ConfigError(f"clip_high must be at least 0, got {self.clip_high}")


def answer_weights(completions: Sequence[Completion], config: PolicyGradientConfig) -> list[float]:
    """Return the weight of each answer's tokens in the loss of an update on these answers."""
    lengths = [len(completion.token_ids) for completion in completions]
    return token_weights(
        lengths,
        config.loss,
        num_rows=len(completions),
        max_tokens=config.max_new_tokens,
        num_tokens=sum(lengths),
    )


def minibatches(
    rows: Sequence[Row], config: PolicyGradientConfig, generator: torch.Generator
) -> Iterator[list[Row]]:
    """Yield the optimizer steps' rows: all, or shuffled parts of like size, every epoch."""
    parts = min(config.num_minibatches, len(rows))
    for _ in range(config.epochs):
        if parts == 1:
            yield list(rows)
            continue
        order = torch.randperm(len(rows), generator=generator).tolist()
        yield from ([rows[i] for i in order[part::parts]] for part in range(parts))


def per_token(values: Sequence[float], completions: Sequence[Completion]) -> Tensor:
    """Repeat each answer's value for its tokens, `[B] -> [T]`."""
    lengths = torch.tensor([len(completion.token_ids) for completion in completions])
    return torch.tensor(values).repeat_interleave(lengths)


def surrogate(
    logprobs: Tensor,
    completions: Sequence[Completion],
    advantages: Sequence[float],
    weights: Sequence[float],
    config: PolicyGradientConfig,
    stats: dict[str, float],
) -> Tensor:
    """Return the clipped surrogate of some answers, and add to the statistics of the update.

    Args:
        logprobs: Log-probabilities of the answers' tokens now, `[T]`.
        completions: The answers, B of them.
        advantages: What each is worth.
        weights: From `answer_weights`.
        config: Which mean, and how far ratios count.
        stats: Its sums `kl`, `clipped` and `tokens` grow.
    """
    old = torch.tensor([lp for completion in completions for lp in completion.logprobs])
    rows = per_token(range(len(completions)), completions)
    result = policy_loss(
        logprobs,
        old.to(logprobs.device),
        per_token(advantages, completions).to(logprobs.device),
        per_token(weights, completions).to(logprobs.device),
        rows.to(logprobs.device),
        kind=config.loss,
        clip_low=config.clip_low,
        clip_high=config.clip_high,
    )
    stats["kl"] += float(result.kl_sum)
    stats["clipped"] += float(result.clipped)
    stats["tokens"] += float(len(old))
    return result.loss


def check_finite(loss: Tensor, whose: str) -> float:
    """Return a loss as a number.

    Raises:
        NumericsError: If it is not finite.
    """
    value = float(loss.detach())
    if not math.isfinite(value):
        raise NumericsError(f"the loss of {whose!r} is {value}")
    return value
