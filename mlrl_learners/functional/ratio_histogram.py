"""Percentiles of importance ratios, from counts that can be summed over batches and processes.

A mean hides what matters about ratios: a few large ones carry the variance of the estimate. Counts
in bins of equal width in log ratio are sums, as all statistics of an update are.
"""

import math
from collections.abc import Mapping, MutableMapping

import torch
from torch import Tensor

__all__ = ["PERCENTILES", "add_ratios", "ratio_percentiles"]

PERCENTILES = (5, 50, 95)
BIN_WIDTH = math.log(2.0) / 16  # a percentile is within 2.2 % of the exact one
LAST_BIN = 16 * 6  # ratios above 64 and below 1/64 are counted as these
_PREFIX = "ratio_bin/"


@torch.no_grad()
def add_ratios(stats: MutableMapping[str, float], log_ratios: Tensor) -> None:
    """Count ratios, one for each token.

    Args:
        stats: Receives the counts.
        log_ratios: log pi_old - log q, finite, `[T]`.
    """
    bins = (log_ratios / BIN_WIDTH).round().clamp(-LAST_BIN, LAST_BIN).to(torch.int64)
    numbers, counts = bins.unique(return_counts=True)
    for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
        name = f"{_PREFIX}{number}"
        stats[name] = stats.get(name, 0.0) + count


def ratio_percentiles(stats: Mapping[str, float]) -> dict[str, float]:
    """Return `ratio_p5`, `ratio_p50` and `ratio_p95`, in [1/64, 64]; nothing if none was counted.

    The percentile p is the smallest ratio that at least p % of all tokens do not exceed.
    """
    counts = sorted(
        (int(name.removeprefix(_PREFIX)), count)
        for name, count in stats.items()
        if name.startswith(_PREFIX)
    )
    total = sum(count for _, count in counts)
    found: dict[str, float] = {}
    for percentile in PERCENTILES if total else ():
        below = 0.0
        for number, count in counts:
            below += count
            if below * 100 >= percentile * total:
                found[f"ratio_p{percentile}"] = math.exp(number * BIN_WIDTH)
                break
    return found
