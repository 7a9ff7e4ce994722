"""Quality of English prose, as opposed to nonsense, keywords, padding or copies.

The measures are shares in [0, 1] of function words, complete sentences, word-like tokens, distinct
trigrams, permitted word order and text that is not copied. Their product is the quality, so that
one failure suffices. Meaning is not measured: fluent prose about another topic passes.
"""

import re
from collections.abc import Sequence

from mlrl_envs.rewards.prose.document import (
    MAX_CHARS,
    SIGMA,
    distinct_runs,
    parse_document,
    tokens_of,
    words_of,
)
from mlrl_envs.rewards.prose.english import (
    CONTENT,
    FUNCTION_WORDS,
    SENTENCE_END,
    order_breaches,
    outline_of,
)
from mlrl_envs.rewards.prose.sequences import ngrams
from mlrl_envs.rewards.prose.word_cache import WordCache

__all__ = [
    "clean_length",
    "content_stems",
    "copied_share",
    "prose_quality",
    "ramp",
    "stem",
]

LONGEST_WORD = 24
LONGEST_SENTENCE = 80  # number of words from which a sentence scores 0

_WORD_LIKE = re.compile(r"[^\W\d_]+(?:['\u2019-][^\W\d_]+)*\Z")
_STUTTER = re.compile(r"(.)\1\1|[bcdfghjklmnpqrstvwxz]{6}")
_EDGES = "\"'\u201c\u201d\u2018\u2019.,;:!?()[]*_-\u2013\u2014"
_EDGES_BUT_ENDS = _EDGES.replace(".", "").replace("!", "").replace("?", "")
_ENDS = frozenset(".!?")
_NOT_FUNCTION = CONTENT + outline_of([SENTENCE_END])
_VOWELS = frozenset("aeiouyáéíóúàèìòùäöüâêîôû")


def ramp(value: float, low: float, high: float) -> float:
    """Return 0 up to `low`, 1 from `high` on, linear between; reversed if `high < low`."""
    share = (value - low) / (high - low)
    if share <= 0.0:
        return 0.0
    return min(share, 1.0)


def clean_length(text: str) -> int:
    """Return the length in characters with runs of white space counted as one."""
    # Very long texts are not cached.
    tokens = tokens_of(text) if len(text) <= MAX_CHARS else text.split()
    return len(" ".join(tokens))


def prose_quality(text: str, *, least_words: int, forgiven: float = 0.0) -> float:
    """Return the quality of a text as prose, in [0, 1].

    Args:
        text: The text of an agent.
        least_words: Number of words from which length has no influence.
        forgiven: Number of forbidden word pairs without a penalty; in a short text a single one,
            such as "my SO" or "for me, is", would weigh much.
    """
    text = text[:MAX_CHARS]
    reading = parse_document(text)
    size = len(reading.words)
    if not size:
        return 0.0
    runs = distinct_runs(text, 3) if SIGMA not in text else frozenset(ngrams(reading.words, 3))
    return (
        ramp(size, least_words / 4, least_words)
        * _function_word_score(reading.outline, size)
        * _sentence_score(reading.sentences)
        * _word_shape_score(tokens_of(text))
        * _repetition_score(len(runs), len(set(reading.words)), size)
        * _order_score(reading.outline, forgiven)
    )


def copied_share(text: str, source: str, *, size: int = 4) -> float:
    """Return the share of a text's word n-grams that also occur in `source`."""
    text, source = text[:MAX_CHARS], source[:MAX_CHARS]
    if distinct_runs(text, size - 1).isdisjoint(distinct_runs(source, size - 1)):
        return 0.0
    runs = ngrams(words_of(text), size)
    return sum(map(distinct_runs(source, size).__contains__, runs)) / len(runs) if runs else 0.0


def content_stems(text: str) -> set[str]:
    """Return the stems of the content words of a text."""
    stems = set(map(_CONTENT_STEMS.__getitem__, words_of(text[:MAX_CHARS])))
    stems.discard("")
    return stems


def _content_stem(word: str) -> str:
    if len(word) <= 2 or word in FUNCTION_WORDS or word.isdigit():
        return ""
    return stem(word)


_CONTENT_STEMS = WordCache(_content_stem)


def stem(word: str) -> str:
    """Strip common English endings: cities, city; repairs, repaired, repairing, repair."""
    for ending, replacement in (
        ("ies", "y"),
        ("ied", "y"),
        ("ing", ""),
        ("ed", ""),
        ("es", ""),
        ("s", ""),
        ("e", ""),
    ):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word[: -len(ending)] + replacement
            break
    return word[:-1] if len(word) > 3 and word[-1] == word[-2] else word


def _function_word_score(outline: bytes, size: int) -> float:
    # English prose has 35 to 60 %; keyword lists have almost none, stop-word lists almost only.
    share = len(outline.translate(None, _NOT_FUNCTION)) / size
    return ramp(share, 0.10, 0.28) * ramp(share, 0.90, 0.70)


def _sentence_score(sentences: Sequence[tuple[str, int]]) -> float:
    # Share of words in sentences with a capital, an end mark and a normal length.
    good = total = 0.0
    for sentence, size in sentences:
        total += size
        if _is_whole(sentence.strip()):
            good += size * _SIZE_SCORES[min(size, LONGEST_SENTENCE)]
    return _soft(ramp(good / total, 0.15, 0.6), good / total) if total else 0.0


def _is_whole(sentence: str) -> bool:
    first = sentence[:1]
    if not first.isalnum():
        first = next(filter(str.isalnum, sentence), "")
    if not (first.isupper() or first.isdigit()):
        return False
    return sentence.rstrip(_EDGES_BUT_ENDS)[-1:] in _ENDS


_SIZE_SCORES = [ramp(size, 1, 4) * ramp(size, 80, 45) for size in range(LONGEST_SENTENCE + 1)]


def _word_shape_score(tokens: Sequence[str]) -> float:
    like = sum(map(_WORD_SHAPES.__getitem__, tokens)) / max(len(tokens), 1)
    return _soft(ramp(like, 0.5, 0.85), like)


def _is_word_like(token: str) -> bool:
    token = token.strip(_EDGES)
    if len(token) > LONGEST_WORD:
        return False
    if token.isdigit() and len(token) <= 4:
        return True
    lower = token.lower()
    if not _WORD_LIKE.match(token) or not _VOWELS & set(lower):
        return False
    if token[1:] != lower[1:] and not token.isupper() and "-" not in token:
        return False  # a capital inside a word
    return not _STUTTER.search(lower)


_WORD_SHAPES = WordCache(_is_word_like)


def _repetition_score(runs: int, distinct: int, size: int) -> float:
    """Score the share of distinct words and of distinct trigrams."""
    if size < 3:
        return 1.0
    share = runs / (size - 2)
    variety = distinct / size**0.75  # falls slowly with length in real prose
    return _soft(ramp(share, 0.5, 0.9), share) * ramp(variety, 0.4, 1.2)


def _order_score(outline: bytes, forgiven: float) -> float:
    breaches, checked = order_breaches(outline)
    if not checked:
        return 0.5
    share = max(breaches - forgiven, 0.0) / checked
    return _soft(ramp(share, 0.16, 0.05), 1 - share)


def _soft(score: float, raw: float) -> float:
    # A small slope where a ramp is flat, so that a corrupted text scores below the original.
    return score * (0.95 + 0.05 * raw)
