"""Reward constants of `mlrl/arxiv-v1`: background, and methods with implications.

The formulas are in `mlrl_envs.rewards.writing.paper` and `mlrl_envs.rewards.writing.grounded`. A
background contains much that its abstract does not, so that less relevance and no coherence is
asked of it, and more names and numbers may be its own. Which text speaks of the field and which of
the work is not measured.
"""

from mlrl_envs.rewards.writing.grounded import WritingPart, WritingRules
from mlrl_envs.rewards.writing.paper import Levels, Trapezoid

__all__ = ["LEVELS", "RULES"]

LEVELS = Levels(
    least_tokens=128,
    most_tokens=256,
    length=Trapezoid(0.8, 1.3, 1.6, 2.0),
    vocabulary=Trapezoid(0.5, 0.7, 1.3, 1.7),
    shared_full=0.23,
    reads_both=True,
)
RULES = WritingRules(
    parts=(
        WritingPart(
            weight=0.35,
            least_words=110,
            most_words=256,
            relevance=(0.15, 0.4),
            copied=(0.3, 0.18),
            coherence=None,
            coverage=0.1,
            outside=2.5,
        ),
        WritingPart(
            weight=0.35,
            least_words=130,
            most_words=300,
            relevance=(0.35, 0.65),
            copied=(0.45, 0.28),
            coherence=(0.05, 0.23),
            coverage=0.35,
            outside=0.5,
        ),
    ),
    length=Trapezoid(0.6, 0.9, 2.2, 3.2),
)
