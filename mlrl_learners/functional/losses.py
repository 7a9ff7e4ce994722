"""Policy-gradient losses over flat token vectors: there is no padding to mask.

Every tensor named `[T]` holds the completion tokens of all rows of a batch, one after the other;
`rows` says which row a token belongs to. A loss is a weighted sum over tokens, and the weights are
what tells one "mean" from another, so a batch may be split anywhere without changing the total.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

__all__ = [
    "KlEstimator",
    "LossKind",
    "PolicyLoss",
    "kl_estimate",
    "policy_loss",
    "token_weights",
    "value_loss",
]

LossKind = Literal["grpo", "token_mean", "dr_grpo", "sequence", "gspo"]
KlEstimator = Literal["k1", "k2", "k3"]


@dataclass(frozen=True, slots=True)
class PolicyLoss:
    """A loss to minimise and what is worth logging of it, summed over tokens.

    Attributes:
        loss: Scalar with a gradient.
        clipped: Number of tokens (rows for `gspo`) whose ratio was clipped away.
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

    With w the weight of a row and W the total weight of the **whole** update, rows in other
    micro-batches or filtered out included:

    - `grpo`, `gspo`: w / (W * length), the mean over rows of the mean over tokens
    - `token_mean`: w / sum of (w * length), every token alike (DAPO, arXiv 2503.14476); the sum
      depends on what was sampled, which biases small updates
    - `dr_grpo`: w / (W * max_tokens), free of a length bias (arXiv 2503.20783)
    - `sequence`: w / W, the sum over tokens

    Args:
        lengths: Completion tokens of each row of the update, at least 1.
        kind: Which mean.
        row_weights: w of each row, at least 0; all 1 for rows that count alike.
        max_tokens: Longest completion that sampling allows.
        total_weight: W; by default the sum of the rows' weights.
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
) -> PolicyLoss:
    """Return the clipped surrogate -sum(w * min(rho * A, clip(rho, 1 - low, 1 + high) * A)).

    The ratio rho = exp(log pi - log pi_old) is a token's own, or for `gspo` (arXiv 2507.18071) its
    row's: the exponential of the mean over the row's tokens.
    """
    delta = logprobs - old_logprobs
    ratio = torch.exp(_row_mean(delta, rows) if kind == "gspo" else delta)
    clipped_ratio = ratio.clamp(1.0 - clip_low, 1.0 + clip_high)
    surrogate = torch.minimum(ratio * advantages, clipped_ratio * advantages)
    with torch.no_grad():
        clipped = (clipped_ratio * advantages < ratio * advantages).sum()
    return PolicyLoss(-(weights * surrogate).sum(), clipped)


def kl_estimate(logprobs: Tensor, reference_logprobs: Tensor, kind: KlEstimator) -> Tensor:
    """Return a per-token estimate of KL(pi || pi_ref) from tokens drawn from pi.

    With d = log pi_ref - log pi: k1 = -d, k2 = d^2 / 2, k3 = exp(d) - d - 1
    (Schulman, "Approximating KL divergence", 2020). k3 is unbiased and never negative.

    Args:
        logprobs: Log-probabilities under pi, `[T]`.
        reference_logprobs: The same tokens under the reference, `[T]`.
        kind: Which estimator.
    """
    delta = reference_logprobs - logprobs
    if kind == "k1":
        return -delta
    if kind == "k2":
        return 0.5 * delta.square()
    return torch.exp(delta) - delta - 1.0


def value_loss(values: Tensor, old_values: Tensor, targets: Tensor, clip: float) -> Tensor:
    """Return max((V - R)^2, (V_old + clip(V - V_old, -c, c) - R)^2) / 2 of each row, `[B]`.

    Values are clipped around what the critic said when the rollouts were played (arXiv 2005.12729,
    section 3), so that several epochs on them cannot carry it away.

    Args:
        values: What the critic says now, `[B]`.
        old_values: What it said then, `[B]`.
        targets: Returns R in the scale of the rewards, `[B]`.
        clip: c, above 0; infinity for no clipping.
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
