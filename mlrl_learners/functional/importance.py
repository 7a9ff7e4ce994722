"""Importance weights for tokens that another distribution than the trained policy sampled.

A server, a quantised copy or older weights sample tokens from q, while the gradient is that of the
policy pi_old at the start of the update. The weight pi_old / q, times the token's loss, corrects
for it; a cap limits its variance and adds a bias. The ratio pi / pi_old of the surrogate loss,
which changes from one optimizer step to the next, is in `mlrl_learners.functional.losses`.

Sources: truncated importance sampling (Ionides, 2008), for language models by Yao et al.
("Your efficient RL framework secretly brings you off-policy RL training", 2025); modes and cap as
in the GRPO trainer of TRL, veto as in verl.
"""

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from mlrl_learners.errors import ConfigError

__all__ = ["ImportanceMode", "ImportanceWeights", "importance_weights", "sum_of_rows"]

ImportanceMode = Literal["token_truncate", "token_mask", "sequence_truncate", "sequence_mask"]

LARGEST_LOG_RATIO = 20.0  # exp(20) is 5e8; a product over a long answer would overflow float32


@dataclass(frozen=True, slots=True)
class ImportanceWeights:
    """Weights of tokens, without a gradient, and what was cut.

    Attributes:
        weights: Factor of each token's loss, at least 0, `[T]`.
        cut: Whether the weight of each token is not its ratio, bool `[T]`: it is truncated, masked,
            or part of a vetoed answer.
        vetoed: Whether each token is part of a vetoed answer, bool `[T]`.
    """

    weights: Tensor
    cut: Tensor
    vetoed: Tensor


@torch.no_grad()
def importance_weights(
    old_logprobs: Tensor,  # [T]
    sampler_logprobs: Tensor,  # [T]
    rows: Tensor,  # [T], row numbers from 0
    *,
    mode: ImportanceMode = "token_truncate",
    cap: float = 3.0,
    veto: float = 0.0,
) -> ImportanceWeights:
    """Return the weight of each token, from its ratio w = exp(log pi_old - log q).

    - `token_truncate`: min(w, C), which has the least variance, and the bias of ignoring that
      earlier tokens of the answer were sampled from q as well
    - `token_mask`: w if it is in [1 / C, C], else 0
    - `sequence_truncate`, `sequence_mask`: the same, where w is the product over the answer; no
      bias for C = infinity, and with much variance for long answers

    Args:
        old_logprobs: Log-probabilities of the tokens under the trained policy before the update.
        sampler_logprobs: Log-probabilities of the tokens under the distribution that they were
            sampled from.
        rows: Row that each token belongs to.
        mode: Kind of weight.
        cap: C, at least 1; infinity cuts nothing.
        veto: Answers with a token whose own ratio is below this have weight 0, in [0, 1); 0 vetoes
            none, verl uses 1e-4.

    Raises:
        ConfigError: If `cap` or `veto` is outside its range.
    """
    if not cap >= 1:
        raise ConfigError(f"cap must be at least 1, got {cap}")
    if not 0 <= veto < 1:
        raise ConfigError(f"veto must be in [0, 1), got {veto}")
    delta = old_logprobs - sampler_logprobs
    level, _, rule = mode.partition("_")
    whole = sum_of_rows(delta, rows) if level == "sequence" else delta
    ratio = whole.clamp(max=LARGEST_LOG_RATIO).exp()
    if rule == "truncate":
        weights = ratio.clamp(max=cap)
    else:
        inside = (ratio >= 1 / cap) & (ratio <= cap)
        weights = torch.where(inside, ratio, torch.zeros_like(ratio))
    vetoed = torch.zeros_like(rows, dtype=torch.bool)
    if veto:
        vetoed = sum_of_rows((delta < math.log(veto)).to(delta.dtype), rows) > 0
        weights = torch.where(vetoed, torch.zeros_like(weights), weights)
    return ImportanceWeights(weights, (weights != ratio) | vetoed, vetoed)


def sum_of_rows(values: Tensor, rows: Tensor) -> Tensor:
    """Replace each token's value by the sum of its row, `[T] -> [T]`."""
    if not len(values):
        return values
    return values.new_zeros(int(rows.max()) + 1).index_add(0, rows, values)[rows]
