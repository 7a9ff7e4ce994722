"""Reward constants of `mlrl/tldr-v0`: a brief summary and a detailed one.

The formulas are in `mlrl_envs.rewards.writing.paper` and `mlrl_envs.rewards.writing.grounded`.
Division is the published score of vocabulary: the elaboration should have twice as many distinct
words.
"""

from mlrl_envs.rewards.writing.grounded import JudgedText, WritingPart, WritingRules
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


def _vocabulary(summary: JudgedText, elaboration: JudgedText) -> float:
    distinct = len(set(summary.words))
    ratio = len(set(elaboration.words)) / distinct if distinct else 0.0
    return LEVELS.vocabulary(ratio) or 0.0


# Human summaries share 37 to 92 % of their content words with their post (5th and 95th percentile),
# and at most 44 % (95th percentile) with another post.
RULES = WritingRules(
    parts=(
        WritingPart(
            weight=0.25, least_words=12, most_words=70, faith=(0.25, 0.85), phrases=0.1, coverage=18
        ),
        WritingPart(
            weight=0.35,
            least_words=36,
            most_words=220,
            faith=(0.25, 0.8),
            phrases=0.2,
            coverage=48,
        ),
    ),
    length=LEVELS.length,
    division=_vocabulary,
    kinds=2,
    reads_both=False,
)
