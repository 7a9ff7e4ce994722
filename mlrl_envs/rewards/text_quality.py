"""How much a text is English prose rather than nonsense, keywords, padding or a copy.

Each measure is in [0, 1], smooth, and cheap: shares of function words, of real sentences, of
word-like tokens, of distinct trigrams, of word order that grammar allows, of text not copied. A
gate multiplies them, so that one failure is enough. What it does not cover: meaning. Fluent prose
about nothing passes; that is what relevance is for.
"""

import re
from collections.abc import Sequence
from functools import lru_cache

from mlrl_envs.parsing import words
from mlrl_envs.rewards.english import FUNCTION_WORDS, order_breaches
from mlrl_envs.rewards.sequences import Grams, count_grams, count_known, ngrams

__all__ = [
    "MAX_CHARS",
    "clean_length",
    "content_stems",
    "copied_share",
    "ngrams_of",
    "prose_quality",
    "ramp",
    "stem",
    "words_of",
]

LONGEST_WORD = 24
LONGEST_KEPT, MAX_KEPT = 64, 16_384  # tokens whose shape is remembered
SIGMA = "\u03a3"  # the one letter whose lower case hangs on its neighbours, here of other sentences
MAX_CHARS = 20_000  # longer texts are judged by their beginning; keeps scoring linear and quick

_SENTENCE = re.compile(r"[^.!?]*[.!?]+[\"'\u201d\u2019)]*|[^.!?]+$")
_WORD_LIKE = re.compile(r"[^\W\d_]+(?:['\u2019-][^\W\d_]+)*\Z")
_STUTTER = re.compile(r"(.)\1\1|[bcdfghjklmnpqrstvwxz]{6}")
_EDGES = "\"'\u201c\u201d\u2018\u2019.,;:!?()[]*_-\u2013\u2014"
_EDGES_BUT_ENDS = _EDGES.replace(".", "").replace("!", "").replace("?", "")
_ENDS = frozenset(".!?")
_VOWELS = frozenset("aeiouyáéíóúàèìòùäöüâêîôû")


def ramp(value: float, low: float, high: float) -> float:
    """Return 0 up to `low`, 1 from `high` on, a line between; `high < low` runs downwards."""
    share = (value - low) / (high - low)
    if share <= 0.0:
        return 0.0
    return min(share, 1.0)


def clean_length(text: str) -> int:
    """Return the length in characters with runs of white space counted as one."""
    tokens = text.split()
    return sum(map(len, tokens)) + max(len(tokens) - 1, 0)


def prose_quality(text: str, *, least_words: int, forgiven: float = 0.0) -> float:
    """Return how much a text is prose, in [0, 1].

    Args:
        text: What an agent wrote.
        least_words: From this many words on, length does not matter.
        forgiven: Breaches of word order that cost nothing: in a short text a single one, such as
            "my SO" or "for me, is", weighs much.
    """
    text = text[:MAX_CHARS]
    sentences, tokens = _read(text)
    if not tokens:
        return 0.0
    grams = ngrams_of(text, 3) if SIGMA not in text else count_grams(ngrams(tokens, 3))
    return (
        ramp(len(tokens), least_words / 4, least_words)
        * _function_word_score(tokens)
        * _sentence_score(sentences)
        * _word_shape_score(text)
        * _repetition_score(grams, tokens)
        * _order_score([found for _, found in sentences], forgiven)
    )


def copied_share(text: str, source: str, *, size: int = 4) -> float:
    """Return the share of a text's n-grams of words that also occur in `source`."""
    text, source = text[:MAX_CHARS], source[:MAX_CHARS]
    if ngrams_of(text, size - 1).distinct.isdisjoint(ngrams_of(source, size - 1).distinct):
        return 0.0
    grams = ngrams_of(text, size)
    return count_known(grams, ngrams_of(source, size)) / grams.size if grams.size else 0.0


def content_stems(text: str) -> set[str]:
    """Return the stems of the words that carry meaning."""
    stems = set(map(_content_stem, set(words_of(text[:MAX_CHARS]))))
    stems.discard("")
    return stems


def words_of(text: str) -> list[str]:
    """Return what `words` does; not to be changed."""
    return _read(text)[1] if SIGMA not in text else words(text)


# A text is met a few times while it is judged, what it was told by every attempt at its task.
@lru_cache(maxsize=64)
def _read(text: str) -> tuple[list[tuple[str, list[str]]], list[str]]:
    """Return the sentences with their words, and all words."""
    sentences = [(part, words(part)) for part in _SENTENCE.findall(text)]
    return sentences, [word for _, found in sentences for word in found]


@lru_cache(maxsize=64)
def ngrams_of(text: str, size: int) -> Grams:
    """Return the runs of `size` words of a text."""
    return count_grams(ngrams(words_of(text), size))


@lru_cache(maxsize=8192)
def _content_stem(word: str) -> str:
    if len(word) <= 2 or word in FUNCTION_WORDS or word.isdigit():
        return ""
    return stem(word)


@lru_cache(maxsize=8192)
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


def _function_word_score(tokens: Sequence[str]) -> float:
    # English prose has 35 to 60 % of them; keyword lists next to none, stop-word salad nearly all.
    share = sum(map(FUNCTION_WORDS.__contains__, tokens)) / len(tokens)
    return ramp(share, 0.10, 0.28) * ramp(share, 0.90, 0.70)


def _sentence_score(sentences: Sequence[tuple[str, Sequence[str]]]) -> float:
    # Share of words in sentences: capital first, an end mark, neither a stub nor endless.
    good = total = 0.0
    for sentence, found in sentences:
        size = len(found)
        total += size
        good += size * _sentence_shape(sentence.strip(), size)
    return _soft(ramp(good / total, 0.15, 0.6), good / total) if total else 0.0


def _sentence_shape(sentence: str, size: int) -> float:
    first = sentence[:1]
    if not first.isalnum():
        first = next(filter(str.isalnum, sentence), "")
    if not (first.isupper() or first.isdigit()):
        return 0.0
    ended = sentence.rstrip(_EDGES_BUT_ENDS)
    return (ended[-1:] in _ENDS) * ramp(size, 1, 4) * ramp(size, 80, 45)


def _word_shape_score(text: str) -> float:
    tokens = text.split()
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
        return False  # capitals inside a word
    return not _STUTTER.search(lower)


class _WordShapes(dict[str, bool]):
    """Whether tokens are word-like, kept for as many as fit: a third of what `lru_cache` costs."""

    def __missing__(self, token: str) -> bool:
        verdict = _is_word_like(token)
        if len(token) <= LONGEST_KEPT:
            if len(self) >= MAX_KEPT:
                self.clear()
            self[token] = verdict
        return verdict


_WORD_SHAPES = _WordShapes()


def _repetition_score(grams: Grams, tokens: Sequence[str]) -> float:
    if not grams.size:
        return 1.0
    distinct = len(grams.distinct) / grams.size
    variety = len(set(tokens)) / len(tokens) ** 0.75  # falls slowly with length in real prose
    return _soft(ramp(distinct, 0.5, 0.9), distinct) * ramp(variety, 0.4, 1.2)


def _order_score(sentences: Sequence[Sequence[str]], forgiven: float) -> float:
    breaches, checked = order_breaches(sentences)
    if not checked:
        return 0.5
    share = max(breaches - forgiven, 0.0) / checked
    return _soft(ramp(share, 0.16, 0.05), 1 - share)


def _soft(score: float, raw: float) -> float:
    # A little slope where a ramp is flat, so that a damaged text never ties with a sound one.
    return score * (0.95 + 0.05 * raw)
