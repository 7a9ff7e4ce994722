"""Policy-gradient losses over packed token vectors, without padding.

A tensor of shape `[T]` holds the completion tokens of all rows of a batch, one row after the other;
`rows` maps tokens to rows. A loss is a weighted sum over tokens, and the kind of mean is in the
weights alone, so splitting a batch does not change the total.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from mlrl_learners.errors import NumericsError

__all__ = [
    "KlEstimator",
    "LossKind",
    "PolicyLoss",
    "check_finite",
    "cispo_loss",
    "kl_estimate",
    "kl_of_old_samples",
    "policy_loss",
    "token_weights",
    "value_loss",
]

LossKind = Literal["grpo", "token_mean", "dr_grpo", "sequence", "gspo"]
KlEstimator = Literal["k1", "k2", "k3"]


@dataclass(frozen=True, slots=True)
class PolicyLoss:
    """A loss to minimise and its statistics, summed over tokens.

    Attributes:
        loss: Scalar with a gradient.
        clipped: Number of tokens whose gradient is 0 because of clipping; for `cispo_loss`, those
            whose ratio is capped.
    """

    loss: Tensor
    clipped: Tensor


def token_weights(
    lengths: Sequence[int],
    kind: LossKind,
    *,
    row_weights: Sequence[float],
    max_tokens: int,
    total_weight: float | None = None,
) -> list[float]:
    """Return the weight of each row's tokens in the loss.

    With w the weight of a row and W the total weight of the **whole** update, including rows in
    other micro-batches and rows that are left out:

    - `grpo`, `gspo`: w / (W * length), the mean over rows of the mean over tokens
    - `token_mean`: w / sum of (w * length), equal for all tokens (DAPO, arXiv 2503.14476); the sum
      depends on the sampled lengths, which biases small updates
    - `dr_grpo`: w / (W * max_tokens), without length bias (arXiv 2503.20783)
    - `sequence`: w / W, the sum over tokens

    Args:
        lengths: Completion tokens of each row of the update, at least 1.
        kind: Kind of mean.
        row_weights: w of each row, at least 0.
        max_tokens: Longest completion that sampling allows, in tokens.
        total_weight: W; by default the sum of the row weights.
    """
    if kind == "token_mean":
        scales = [1.0] * len(lengths)
        total = math.fsum(w * length for w, length in zip(row_weights, lengths, strict=True))
    else:
        scales = {
            "dr_grpo": [float(max_tokens)] * len(lengths),
            "sequence": [1.0] * len(lengths),
        }.get(kind, [float(length) for length in lengths])
        total = math.fsum(row_weights) if total_weight is None else total_weight
    return [w / (total * scale) for w, scale in zip(row_weights, scales, strict=True)]


def policy_loss(
    logprobs: Tensor,  # [T]
    old_logprobs: Tensor,  # [T]
    advantages: Tensor,  # [T], a row's advantage repeated for its tokens
    weights: Tensor,  # [T], from token_weights
    rows: Tensor,  # [T], row numbers from 0
    *,
    kind: LossKind = "grpo",
    clip_low: float = 0.2,
    clip_high: float = 0.2,
    ratio_cap: float | None = None,
) -> PolicyLoss:
    """Return the clipped surrogate -sum(w * min(rho * A, clip(rho, 1 - low, 1 + high) * A)).

    The importance ratio rho = exp(log pi - log pi_old) is per token (PPO, arXiv 1707.06347, eq. 7);
    for `gspo` it is per row, the exponential of the mean over the row's tokens (arXiv 2507.18071).
    Different bounds below and above are the clip-higher of DAPO (arXiv 2503.14476, eq. 10), with
    0.2 and 0.28 there.

    The surrogate has no bound for A < 0 and a large rho, where one token can dominate an update.
    With `ratio_cap` c > 1 + high, its first term is min(rho, c) * A, as in the two-sided clip of
    INTELLECT-2 (arXiv 2505.07291). That is the dual clip max(min(rho * A, clip(rho) * A), c * A)
    for A < 0 (arXiv 1912.09729): for A > 0, clip(rho) is the smaller bound.
    """
    delta = logprobs - old_logprobs
    ratio = torch.exp(_row_mean(delta, rows) if kind == "gspo" else delta)
    clipped_ratio = ratio.clamp(1.0 - clip_low, 1.0 + clip_high)
    capped_ratio = ratio if ratio_cap is None else ratio.clamp(max=ratio_cap)
    surrogate = torch.minimum(capped_ratio * advantages, clipped_ratio * advantages)
    with torch.no_grad():
        clipped = clipped_ratio * advantages < ratio * advantages
        if ratio_cap is not None:
            clipped |= (advantages < 0) & (ratio > ratio_cap)
    return PolicyLoss(-(weights * surrogate).sum(), clipped.sum())


def cispo_loss(
    logprobs: Tensor,  # [T]
    old_logprobs: Tensor,  # [T]
    advantages: Tensor,  # [T], a row's advantage repeated for its tokens
    weights: Tensor,  # [T], from token_weights
    *,
    ratio_cap: float = 5.0,
) -> PolicyLoss:
    """Return -sum(w * sg[min(rho, c)] * A * log pi), where sg has no gradient.

    Clipping the surrogate removes the gradient of tokens that changed much, often rare ones that
    start a new line of thought. Here every token keeps a gradient, and its size is bounded
    (CISPO, arXiv 2506.13585, eqs. 4 and 5; without a lower bound, as there). The published mean is
    that of `token_mean`.

    Args:
        logprobs: Log-probabilities of the tokens under pi.
        old_logprobs: Log-probabilities of the tokens at sampling time.
        advantages: A of each token.
        weights: w of each token.
        ratio_cap: c, the largest importance ratio rho = exp(log pi - log pi_old), at least 1.
    """
    ratio = torch.exp(logprobs.detach() - old_logprobs)
    coefficients = weights * ratio.clamp(max=ratio_cap) * advantages
    return PolicyLoss(-(coefficients * logprobs).sum(), (ratio > ratio_cap).sum())


def check_finite(loss: Tensor, name: str) -> float:
    """Return a scalar loss as a number.

    Raises:
        NumericsError: If it is not finite; the message contains `name`.
    """
    value = float(loss.detach())
    if not math.isfinite(value):
        raise NumericsError(f"the loss of {name!r} is {value}")
    return value


def kl_estimate(logprobs: Tensor, reference_logprobs: Tensor, kind: KlEstimator) -> Tensor:
    """Return a per-token estimate of KL(pi || pi_ref) from tokens drawn from pi.

    With d = log pi_ref - log pi: k1 = -d, k2 = d^2 / 2, k3 = exp(d) - d - 1
    (Schulman, "Approximating KL divergence", 2020). k3 is unbiased and never negative.

    Args:
        logprobs: Log-probabilities of the tokens under pi, `[T]`.
        reference_logprobs: Log-probabilities of the same tokens under the reference, `[T]`.
        kind: Kind of estimator.
    """
    delta = reference_logprobs - logprobs
    if kind == "k1":
        return -delta
    if kind == "k2":
        return 0.5 * delta.square()
    return torch.exp(delta) - delta - 1.0


def kl_of_old_samples(
    logprobs: Tensor, old_logprobs: Tensor, reference_logprobs: Tensor, kind: KlEstimator = "k3"
) -> Tensor:
    """Return a per-token estimate of KL(pi || pi_ref) from tokens drawn from pi_old.

    The estimate is rho * k with rho = exp(log pi - log pi_old) and k from `kl_estimate`. Without
    rho, the expectation is over the wrong policy after the first step, and even at the first step
    the gradient of k3 is that of another divergence: the score of the tokens is missing. With k1
    and k3 the gradient is that of KL(pi || pi_ref) in every step.

    Source: DeepSeek-V3.2 (arXiv 2512.02556, section 3.1, unbiased KL estimate).

    Args:
        logprobs: Log-probabilities of the tokens under pi, `[T]`.
        old_logprobs: Log-probabilities of the tokens under pi_old, `[T]`.
        reference_logprobs: Log-probabilities of the tokens under the reference, `[T]`.
        kind: Kind of estimator.
    """
    ratio = torch.exp(logprobs - old_logprobs)
    return ratio * kl_estimate(logprobs, reference_logprobs, kind)


def value_loss(values: Tensor, old_values: Tensor, targets: Tensor, clip: float) -> Tensor:
    """Return max((V - R)^2, (V_old + clip(V - V_old, -c, c) - R)^2) / 2 of each row, `[B]`.

    Clipping around the values at sampling time (arXiv 2005.12729, section 3) limits the change of
    the critic over several epochs on the same rollouts.

    Args:
        values: Current values V, `[B]`.
        old_values: Values at sampling time V_old, `[B]`.
        targets: Value targets R in the scale of the rewards, `[B]`.
        clip: c, above 0; infinity disables clipping.
    """
    clipped = old_values + (values - old_values).clamp(-clip, clip)
    return 0.5 * torch.maximum((values - targets).square(), (clipped - targets).square())


def _row_mean(values: Tensor, rows: Tensor) -> Tensor:
    """Replace each token's value by the mean of its row, `[T] -> [T]`."""
    if not len(values):
        return values
    num_rows = int(rows.max()) + 1
    totals = values.new_zeros(num_rows).index_add(0, rows, values)
    counts = values.new_zeros(num_rows).index_add(0, rows, torch.ones_like(values))
    return (totals / counts)[rows]
