"""Measures of English prose; other rewards import them from this package.

All measures are pure functions of texts. They count words and do not read for meaning: truth,
fluency and sense are measured by a text scorer (`reward="judged"`).
"""

from mlrl_envs.rewards.prose.contrast import Contrast, coherence, contrast_of, coverage
from mlrl_envs.rewards.prose.judged import judge_texts
from mlrl_envs.rewards.prose.order import order_of
from mlrl_envs.rewards.prose.quality import clean_length, copied_share, prose_quality
from mlrl_envs.rewards.prose.words import content_of, ramp, stem, words_of

__all__ = [
    "Contrast",
    "clean_length",
    "coherence",
    "content_of",
    "contrast_of",
    "copied_share",
    "coverage",
    "judge_texts",
    "order_of",
    "prose_quality",
    "ramp",
    "stem",
    "words_of",
]
