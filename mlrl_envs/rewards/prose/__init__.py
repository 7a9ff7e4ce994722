"""Measures of English prose; other rewards import them from this package.

All measures are pure functions of texts. They do not read for meaning.
"""

from mlrl_envs.rewards.prose.document import MAX_CHARS, words_of
from mlrl_envs.rewards.prose.english import FUNCTION_WORDS
from mlrl_envs.rewards.prose.habits import habit_score
from mlrl_envs.rewards.prose.negation import plain_speech
from mlrl_envs.rewards.prose.quality import (
    clean_length,
    content_stems,
    copied_share,
    prose_quality,
    ramp,
    stem,
)
from mlrl_envs.rewards.prose.rouge import (
    Copying,
    check_rouge,
    copying,
    near_share,
    overlap,
    pairs_share,
)
from mlrl_envs.rewards.prose.transitions import STOP_WORDS, find_transitions, match_transitions
from mlrl_envs.rewards.prose.word_cache import WordCache

__all__ = [
    "FUNCTION_WORDS",
    "MAX_CHARS",
    "STOP_WORDS",
    "Copying",
    "WordCache",
    "check_rouge",
    "clean_length",
    "content_stems",
    "copied_share",
    "copying",
    "find_transitions",
    "habit_score",
    "match_transitions",
    "near_share",
    "overlap",
    "pairs_share",
    "plain_speech",
    "prose_quality",
    "ramp",
    "stem",
    "words_of",
]
