"""Loss of pairs of joint answers, the one place that combines its terms.

The terms are the loss of the margin, with or without a reference, per answer or per token, and the
likelihood of the better answers. Rows of agents are summed to joint answers before.

Shape letters: `P` pairs; the last dimension is the better answer, then the worse one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from mlrl_learners.algorithms.preference_options import PreferenceLossOptions
from mlrl_learners.engine import TokenRow
from mlrl_learners.functional.losses import check_finite
from mlrl_learners.functional.preferences import mean_logprobs, preference_loss

__all__ = ["SideRow", "joint_lengths", "pair_loss"]


@dataclass(frozen=True, slots=True)
class SideRow:
    """A token row of a pair.

    Attributes:
        pair: Index of the pair.
        side: 0 for the better answer, 1 for the worse one.
        row: Prompt and completion tokens of one agent.
    """

    pair: int
    side: int
    row: TokenRow


def joint_lengths(rows: Mapping[str, Sequence[SideRow]], num_pairs: int) -> Tensor:
    """Return the completion tokens of each joint answer, at least 1, `[P, 2]`.

    Args:
        rows: Rows of all agents, by policy.
        num_pairs: P.
    """
    lengths = torch.zeros(num_pairs, 2, dtype=torch.float64)
    for mine in rows.values():
        for each in mine:
            lengths[each.pair, each.side] += len(each.row.token_ids)
    return lengths.clamp(min=1.0)


def pair_loss(
    logprobs: Tensor, reference: Tensor, lengths: Tensor, options: PreferenceLossOptions
) -> tuple[Tensor, dict[str, float]]:
    """Return the mean loss over pairs, a scalar, and its metrics.

    Args:
        logprobs: log pi of the joint answers, `[P, 2]`, with a gradient.
        reference: log pi_ref of the joint answers, `[P, 2]`; zeros for none.
        lengths: Tokens of the joint answers, at least 1, `[P, 2]`.
        options: Loss of a margin, and the other terms.

    Raises:
        NumericsError: If the loss is not finite.
    """
    ratios = logprobs - reference
    if options.per_token:
        ratios = mean_logprobs(ratios, lengths)
    margins = ratios[:, 0] - ratios[:, 1]
    loss = preference_loss(
        margins,
        beta=options.beta,
        kind=options.kind,
        label_smoothing=options.label_smoothing,
        target_margin=options.target_margin,
    ).mean()
    metrics = {
        "preferences/margin": float(margins.detach().mean()),
        "preferences/accuracy": float((margins.detach() > 0).double().mean()),
    }
    if options.sft_coef:
        likelihood = -mean_logprobs(logprobs[:, 0], lengths[:, 0]).mean()
        metrics["preferences/sft_loss"] = float(likelihood.detach())
        loss = loss + options.sft_coef * likelihood
    return loss, {"preferences/loss": check_finite(loss, "preferences"), **metrics}
