"""English function words, and which of them cannot follow one another.

A text's outline has a byte for each word: function words have one of their own, content words share
three, by the articles that they may have. What is asked of grammar alone is asked of outlines.

The pairs are what grammar forbids in plain prose ("the of", "would was", "an river"), with room for
idiom. In real texts (stories of a small model, abstracts of papers, summaries of posts) fewer than
one in a hundred checked words begins such a pair; in the same words shuffled it is one in four.
"""

from collections.abc import Iterable
from itertools import pairwise

from mlrl_envs.rewards.kept import Kept

__all__ = ["CONTENT", "FUNCTION_WORDS", "SENTENCE_END", "order_breaches", "outline_of"]


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


_ARTICLES = _set("a an the")
_POSSESSIVES = _set("my your his its our their")
_POINTERS = _set("this these those")
_PREPOSITIONS = _set(
    "of in on at by for with from to into over under through across between among above below "
    "behind beyond without within against toward towards upon"
)
_CONJUNCTIONS = _set("and but or nor so yet because although though while if when")
_SUBJECTS = _set("i he she we they")
_OBJECTS = _set("me him them us")
_FINITE = _set("is are was were am")
_HAVE = _set("has have had")
_MODALS = _set("will would can could shall should may might must")
_VERBS = _FINITE | _HAVE | _MODALS | _set("be been do does did")
_OTHERS = _set(
    "that her you it who whom whose which what where how why there here being having not no never "
    "always as than then every each all some any both many much more most such own other another "
    "up down out off again only just even still too very also after before until since during "
    "about around once one two"
)
FUNCTION_WORDS = (
    _ARTICLES
    | _POSSESSIVES
    | _POINTERS
    | _PREPOSITIONS
    | _CONJUNCTIONS
    | _SUBJECTS
    | _OBJECTS
    | _VERBS
    | _OTHERS
)

# Words, and what cannot come right after them.
_RULES = (
    (
        _ARTICLES | _POSSESSIVES,
        _ARTICLES | _POSSESSIVES | _POINTERS | _PREPOSITIONS | _CONJUNCTIONS | _VERBS,
    ),
    (_ARTICLES | _POSSESSIVES, _SUBJECTS | _OBJECTS | _set("that her")),
    (_POINTERS, _ARTICLES | _POSSESSIVES | _POINTERS | _SUBJECTS | _OBJECTS),
    (_PREPOSITIONS - {"to"}, _VERBS | _SUBJECTS | _set("and but or nor because although")),
    (_set("to"), _FINITE | _MODALS | _SUBJECTS | _set("has had been did does of and but or")),
    (_MODALS, _ARTICLES | _POSSESSIVES | _POINTERS | _PREPOSITIONS | _CONJUNCTIONS),
    (_MODALS, _FINITE | _MODALS | _OBJECTS | _set("has had been that")),
    (_SUBJECTS, _ARTICLES | _POSSESSIVES | _POINTERS | _SUBJECTS | _OBJECTS),
    (_SUBJECTS, _set("of to into from")),
    (_OBJECTS, _FINITE | _HAVE | _SUBJECTS | _OBJECTS | _set("of")),
    (_set("and but or nor"), _set("and but or nor of")),
    (_FINITE, _FINITE | _HAVE | _MODALS | _OBJECTS | _set("do does did")),
    (_HAVE, _FINITE | _MODALS | _OBJECTS | _set("and be")),
)
_NEVER_LAST = (
    _ARTICLES
    | _POSSESSIVES
    | (_SUBJECTS - {"i"})
    | _set("and but or nor of from into if because although")
)
_INDEFINITE = _set("a an")

SENTENCE_END = ""  # stands behind the words of a sentence
_END = 0
CONTENT = b"\1\2\3"  # words with either article, with "a" only, with "an" only
_EITHER, _WITH_A, _WITH_AN = CONTENT
_FUNCTION = {word: byte for byte, word in enumerate(sorted(FUNCTION_WORDS), start=_WITH_AN + 1)}


def outline_of(words: Iterable[str]) -> bytes:
    """Return the outline of a row of lower-case words and ends of sentences."""
    return bytes(map(_BYTES.__getitem__, words))


def order_breaches(outline: bytes) -> tuple[int, int]:
    """Return how many words are followed by what cannot follow them, and how many were checked.

    Args:
        outline: That of whole sentences, their ends included.
    """
    verdicts = [
        following in _NEVER_AFTER[word]
        for word, following in pairwise(outline)
        if word in _NEVER_AFTER
    ]
    return sum(verdicts), len(verdicts)


def _byte(word: str) -> int:
    if word == SENTENCE_END:
        return _END
    if word in _FUNCTION:
        return _FUNCTION[word]
    if _sounds_wrong("a", word):
        return _WITH_AN
    return _WITH_A if _sounds_wrong("an", word) else _EITHER


def _sounds_wrong(article: str, following: str) -> bool:
    if article == "a":
        return following[:1] in tuple("aeio") and not following.startswith(("one", "once", "eu"))
    return following[:1] not in tuple("aeiouh") and not following[:1].isdigit()


def _never_after(word: str) -> frozenset[int]:
    never = {_FUNCTION[other] for before, after in _RULES if word in before for other in after}
    if word in _NEVER_LAST:
        never.add(_END)
    if word in _INDEFINITE:
        never.update(byte for other, byte in _FUNCTION.items() if _sounds_wrong(word, other))
        never.add(_WITH_AN if word == "a" else _WITH_A)
    return frozenset(never)


_BYTES = Kept(_byte)
_NEVER_AFTER = {_FUNCTION[word]: _never_after(word) for before, _ in _RULES for word in before}
