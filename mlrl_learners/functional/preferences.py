"""Losses on preference pairs, and the selection of pairs.

Sources: DPO (arXiv 2305.18290) for `sigmoid`, SLiC-HF (arXiv 2305.10425) for `hinge`, IPO
(arXiv 2310.12036) for `ipo`; label smoothing as in conservative DPO (Mitchell, 2023); target margin
and mean over tokens of SimPO (arXiv 2405.14734, eq. 6); likelihood term of RPO (arXiv 2404.19733,
section 2).
"""

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

from mlrl_learners.functional.returns import is_same_return

__all__ = [
    "PreferenceLoss",
    "largest_gap_pairs",
    "mean_logprobs",
    "preference_loss",
]

PreferenceLoss = Literal["sigmoid", "hinge", "ipo"]


def mean_logprobs(logprobs: Tensor, lengths: Tensor) -> Tensor:
    """Return log pi(y) / |y| of each answer, `[P] -> [P]`.

    - As the terms of a margin (SimPO): log-probabilities of whole answers fall with every token, so
      that a part of their difference is due to length.
    - Its negative for the preferred answers, added to the loss with a weight of 1 (RPO): a
      preference loss also falls if both answers become less likely and the worse one more so.

    Args:
        logprobs: log pi(y) of each answer, `[P]`.
        lengths: Number of tokens |y| of each answer, at least 1, `[P]`.
    """
    return logprobs / lengths


def preference_loss(
    margins: Tensor,
    *,
    beta: float,
    kind: PreferenceLoss = "sigmoid",
    label_smoothing: float = 0.0,
    target_margin: float = 0.0,
) -> Tensor:
    """Return the loss of each pair, `[P] -> [P]`.

    A margin is h = [log pi(y+) - log pi_ref(y+)] - [log pi(y-) - log pi_ref(y-)]; without a
    reference its terms are left out. With e the probability that a label is wrong, the loss is
    (1 - e) l(h) + e l(-h), where l(h) is

    - `sigmoid`: -log sigmoid(beta h)
    - `hinge`: max(0, 1 - beta h)
    - `ipo`: (h - 1 / (2 beta))^2

    With a target margin m, beta h is replaced by beta h - m, so that a pair counts as ordered only
    from a margin of m / beta on. SimPO is `sigmoid` with m, without a reference, and with the
    terms of `mean_logprobs`; its beta is 2 to 2.5, because these are per token.

    Args:
        margins: h of each pair, `[P]`.
        beta: Scale of the margin, per nat, above 0.
        kind: Kind of loss l.
        label_smoothing: e, in [0, 0.5).
        target_margin: m, at least 0.
    """
    if target_margin:
        margins = margins - target_margin / beta
    right = _one_sided(margins, beta, kind)
    if label_smoothing == 0.0:
        return right
    return (1.0 - label_smoothing) * right + label_smoothing * _one_sided(-margins, beta, kind)


def largest_gap_pairs(scores: Sequence[float], num_pairs: int) -> list[tuple[int, int]]:
    """Return at most `num_pairs` pairs (better, worse) of indices with the largest gaps.

    The best candidate is paired with the worst, the second best with the second worst, and so on.
    Pairs of scores that are equal up to rounding are left out; among equal candidates the first
    ranks higher.

    Args:
        scores: Score of each candidate, such as its return.
        num_pairs: Largest number of pairs, at least 1.
    """
    order = sorted(range(len(scores)), key=lambda number: (-scores[number], number))
    pairs = zip(order[: len(order) // 2], reversed(order), strict=False)
    taken = list(pairs)[:num_pairs]
    return [pair for pair in taken if not is_same_return(*(scores[number] for number in pair))]


def _one_sided(margins: Tensor, beta: float, kind: PreferenceLoss) -> Tensor:
    if kind == "ipo":
        return (margins - 0.5 / beta).square()
    if kind == "hinge":
        return torch.relu(1.0 - beta * margins)
    return -torch.nn.functional.logsigmoid(beta * margins)
