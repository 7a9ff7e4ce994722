"""Reward constants of `mlrl/tldr-v1`: a brief summary and a detailed one.

The formulas are in `mlrl_envs.rewards.writing.paper` and `mlrl_envs.rewards.writing.grounded`.
Thresholds of the summary are calibrated on half of 212 TL;DRs of people: 9 of 10 have a relevance
of 0.37, 19 of 20 copy less than 35 % of their runs of three words, 14 of 15 have no number or name
that the post lacks.
"""

from mlrl_envs.rewards.writing.grounded import WritingPart, WritingRules
from mlrl_envs.rewards.writing.paper import Levels, Trapezoid

__all__ = ["LEVELS", "RULES"]

LEVELS = Levels(
    least_tokens=8,
    most_tokens=256,
    length=Trapezoid(1.1, 1.6, 3.2, 5.0),
    vocabulary=Trapezoid(1.3, 2.0),
    shared_full=0.03,
    reads_both=False,
)
RULES = WritingRules(
    parts=(
        WritingPart(
            weight=0.3,
            least_words=12,
            most_words=80,
            relevance=(0.2, 0.5),
            copied=(0.75, 0.4),
            coherence=None,
            coverage=0.03,
            outside=0.5,
        ),
        WritingPart(
            weight=0.4,
            least_words=36,
            most_words=220,
            relevance=(0.25, 0.5),
            copied=(0.35, 0.2),
            coherence=(0.02, 0.2),
            coverage=0.12,
            outside=0.5,
        ),
    ),
    length=Trapezoid(0.8, 1.3, 4.5, 7.0),
    labels=("SUBREDDIT", "TITLE", "POST"),  # and TL;DR, with which people begin summaries
)
