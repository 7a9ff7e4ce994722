"""Losses on preference pairs, and the selection of pairs.

Sources: DPO (arXiv 2305.18290) for `sigmoid`, SLiC-HF (arXiv 2305.10425) for `hinge`, IPO
(arXiv 2310.12036) for `ipo`; label smoothing as in conservative DPO (Mitchell, 2023).
"""

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

__all__ = ["PreferenceLoss", "largest_gap_pairs", "preference_loss"]

PreferenceLoss = Literal["sigmoid", "hinge", "ipo"]


def preference_loss(
    margins: Tensor, *, beta: float, kind: PreferenceLoss = "sigmoid", label_smoothing: float = 0.0
) -> Tensor:
    """Return the loss of each pair, `[P] -> [P]`.

    A margin is h = [log pi(y+) - log pi_ref(y+)] - [log pi(y-) - log pi_ref(y-)]; without a
    reference its terms are left out. With e the probability that a label is wrong, the loss is
    (1 - e) l(h) + e l(-h), where l(h) is

    - `sigmoid`: -log sigmoid(beta h)
    - `hinge`: max(0, 1 - beta h)
    - `ipo`: (h - 1 / (2 beta))^2

    Args:
        margins: h of each pair, `[P]`.
        beta: Scale of the margin, per nat, above 0.
        kind: Kind of loss l.
        label_smoothing: e, in [0, 0.5).
    """
    right = _one_sided(margins, beta, kind)
    if label_smoothing == 0.0:
        return right
    return (1.0 - label_smoothing) * right + label_smoothing * _one_sided(-margins, beta, kind)


def largest_gap_pairs(scores: Sequence[float], num_pairs: int) -> list[tuple[int, int]]:
    """Return at most `num_pairs` pairs (better, worse) of indices with the largest gaps.

    The best candidate is paired with the worst, the second best with the second worst, and so on.
    Pairs of equal scores are left out; among equal candidates the first ranks higher.

    Args:
        scores: Score of each candidate.
        num_pairs: Largest number of pairs, at least 1.
    """
    order = sorted(range(len(scores)), key=lambda number: (-scores[number], number))
    pairs = zip(order[: len(order) // 2], reversed(order), strict=False)
    taken = list(pairs)[:num_pairs]
    return [(better, worse) for better, worse in taken if scores[better] > scores[worse]]


def _one_sided(margins: Tensor, beta: float, kind: PreferenceLoss) -> Tensor:
    if kind == "ipo":
        return (margins - 0.5 / beta).square()
    if kind == "hinge":
        return torch.relu(1.0 - beta * margins)
    return -torch.nn.functional.logsigmoid(beta * margins)
