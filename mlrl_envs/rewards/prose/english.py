"""English function words, and pairs of words that grammar forbids.

The outline of a text has one byte for each word: function words have individual bytes, content
words share three, depending on the articles that may precede them. Measures of grammar work on
outlines.

The forbidden pairs ("the of", "would was", "an river") leave room for idioms. In real texts
(stories of a small model, abstracts of papers, summaries of posts) fewer than 1 % of the checked
words begin such a pair; after shuffling their words it is one in four.
"""

from collections.abc import Iterable, Sequence

from mlrl_envs.rewards.prose.word_cache import WordCache

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

# Sets of words, and the words that must not follow them.
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

SENTENCE_END = ""  # follows the words of a sentence
_END = 0
CONTENT = b"\1\2\3"  # words after either article, after "a" only, after "an" only
_EITHER, _WITH_A, _WITH_AN = CONTENT
_FUNCTION = {word: byte for byte, word in enumerate(sorted(FUNCTION_WORDS), start=_WITH_AN + 1)}


def outline_of(words: Iterable[str]) -> bytes:
    """Return the outline of a sequence of lower-case words and sentence ends."""
    return bytes(map(_BYTES.__getitem__, words))


def order_breaches(outline: bytes) -> tuple[int, int]:
    """Return the number of words followed by a forbidden word, and the number of checked words.

    Args:
        outline: The outline of whole sentences, including their ends.
    """
    following, broken = outline[1:] + _END_BYTE, 0
    for before, after in _TABLES:  # all words at once, as bits of one integer
        broken |= _number(outline.translate(before)) & _number(following.translate(after))
    kept = broken.to_bytes(len(outline), "big").count(0)
    return len(outline) - kept, len(outline) - len(outline.translate(None, _CHECKED))


def _number(bits: bytes) -> int:
    return int.from_bytes(bits, "big")


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


def _bytes_of(words: Iterable[str]) -> bytes:
    return bytes(_FUNCTION[word] for word in words)


def _wrong_after(article: str) -> bytes:
    function_words = [word for word in _FUNCTION if _sounds_wrong(article, word)]
    return bytes([_WITH_AN if article == "a" else _WITH_A]) + _bytes_of(function_words)


def _tables(rules: Sequence[tuple[bytes, bytes]]) -> tuple[bytes, bytes]:
    """Return, for eight rules, the bits of each byte as the first and as the second word."""
    tables = bytearray(256), bytearray(256)
    for number, rule in enumerate(rules):
        for table, words in zip(tables, rule, strict=True):
            for byte in words:
                table[byte] |= 1 << number
    return bytes(tables[0]), bytes(tables[1])


_BYTES = WordCache(_byte)
_END_BYTE = bytes([_END])
_WITH_RULES = frozenset[str]().union(*(before for before, _ in _RULES))
_CHECKED = _bytes_of(_WITH_RULES)
_ALL_RULES = [
    *((_bytes_of(before), _bytes_of(after)) for before, after in _RULES),
    (_bytes_of(_NEVER_LAST & _WITH_RULES), _END_BYTE),
    *((_bytes_of([article]), _wrong_after(article)) for article in ("a", "an")),
]
_TABLES = [_tables(_ALL_RULES[start : start + 8]) for start in range(0, len(_ALL_RULES), 8)]
