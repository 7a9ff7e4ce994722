"""Names of a text: words with a capital inside a sentence, and months and weekdays.

The first word of a sentence, line or quotation is no name, unless it has a capital inside. Function
words, single letters, words with digits, relatives ("Mom") and conventions such as "TL;DR" are
none either. Where most words have a capital, as in a title, capitals say nothing, and where several
words in a row are all in capitals they are emphasis. A text without capitals has no names but
months and weekdays.

A source supports a name with the same stem or five letters of the same start (Canada, Canadian), a
name that it writes as two words, an acronym whose letters begin consecutive words, and the month of
a date such as 4/16. The words of the source need no capitals, since many posts have none.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from mlrl_envs.rewards.prose.numbers import is_number_word
from mlrl_envs.rewards.prose.words import FUNCTION_WORDS, stem

__all__ = ["KnownNames", "Name", "known_names", "names_of"]

TITLE = 0.7  # share of capitals from which a sentence of content words is a title
TITLE_WORDS = 4
START = 5  # letters that two forms of a name have in common at least
ENDING = 3  # letters in which they may differ
LONGEST = 30  # letters of a start
_WORD = re.compile(r"[^\W_]+")
_BREAK = re.compile(r"""[.!?:\u2026\n"\u201c\u201d\u00ab\u00bb*#]|(?:^|\s)['\u2018]""")
_MONTHS = (
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
)
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_CALENDAR = frozenset({*_MONTHS, *_WEEKDAYS})
_VERBS = frozenset({"may", "march"})
_SHORT = {name[:size]: name for name in (*_MONTHS, *_WEEKDAYS) for size in (3, 4)}
_SHORT |= {"thurs": "thursday"}
_TITLES = frozenset({"mr", "mrs", "ms", "dr", "st", "prof"})
_COMMON_WORDS = (
    "tl dr tldr reddit redditor redditors subreddit post op so bf gf ex edit update ldr nsfw "
    "ok okay idk imo imho tbh fyi btw lol omg wtf tv pc id am pm im ive ill internet god earth sun "
    "moon mr mrs ms dr sir miss mom mum mommy mother dad daddy father grandma grandpa grandmother "
    "grandfather aunt uncle"
)
_COMMON = frozenset(_COMMON_WORDS.split())
_DATE = re.compile(r"(?<!\d)(\d{1,2})/(\d{1,2})(?!\d)")


@dataclass(frozen=True)
class Name:
    """A name of a text.

    Attributes:
        start: Position in the text.
        shown: The name as it is written.
    """

    start: int
    shown: str


@dataclass(frozen=True)
class KnownNames:
    """The words of a source, as names are looked up in them.

    Attributes:
        words: Words in lower case, their stems, neighbours written as one word.
        starts: Starts of words.
        initials: First letters of all words, and of all but function words.
    """

    words: frozenset[str]
    starts: frozenset[str]
    initials: str

    def support(self, name: str) -> bool:
        """Return whether the source has a name."""
        word = name.lower()
        if word in self.words or stem(word) in self.words:
            return True
        if _SHORT.get(word, word) in self.words:
            return True
        if word in _CALENDAR:
            return False
        if name.isupper() and word in self.initials:
            return True
        return word[: max(START, len(word) - ENDING)] in self.starts


@lru_cache(maxsize=64)
def names_of(text: str) -> tuple[Name, ...]:
    """Return the names of a text in order of appearance."""
    return tuple(name for words in _sentences(text) for name in _read(words))


@lru_cache(maxsize=64)
def known_names(source: str) -> KnownNames:
    """Return what a source supports."""
    words = [word.lower() for word in _WORD.findall(source)]
    known = {*words, *map(stem, words)}
    known |= {_SHORT[word] for word in words if word in _SHORT}
    known |= {first + second for first, second in pairwise(words)}
    for match in _DATE.finditer(source):
        known |= {_MONTHS[int(part) - 1] for part in match.groups() if 1 <= int(part) <= 12}
    starts = {word[:size] for word in words for size in range(START, min(len(word), LONGEST) + 1)}
    content = (word for word in words if word not in FUNCTION_WORDS)
    initials = "".join(word[0] for word in words) + " " + "".join(word[0] for word in content)
    return KnownNames(frozenset(known), frozenset(starts), initials)


def _sentences(text: str) -> Iterator[list[re.Match[str]]]:
    """Yield the words of each sentence, line or quotation."""
    words: list[re.Match[str]] = []
    end = 0
    for match in _WORD.finditer(text):
        gap = text[end : match.start()]
        is_title = bool(words) and gap == ". " and words[-1][0].lower() in _TITLES
        if words and _BREAK.search(gap) and not is_title:
            yield words
            words = []
        words.append(match)
        end = match.end()
    if words:
        yield words


def _read(words: Sequence[re.Match[str]]) -> Iterator[Name]:
    content = [match[0] for match in words if match[0].lower() not in FUNCTION_WORDS]
    capitals = sum(word[0].isupper() for word in content)
    is_title = len(content) >= TITLE_WORDS and capitals >= TITLE * len(content)
    for place, match in enumerate(words):
        word = match[0]
        if word.lower() in _CALENDAR - _VERBS:
            yield Name(match.start(), word)
        elif not is_title and _is_name(word, is_first=place == 0):
            shouts = word.isupper() and any(
                len(near[0]) > 1 and near[0].isupper()
                for near in (*words[max(place - 1, 0) : place], *words[place + 1 : place + 2])
            )
            if not shouts:
                yield Name(match.start(), word)


def _is_name(word: str, *, is_first: bool) -> bool:
    lower = word.lower()
    if len(word) < 2 or lower in FUNCTION_WORDS or lower in _COMMON or is_number_word(lower):
        return False
    if not word.isalpha():
        return False
    inner = any(map(str.isupper, word[1:])) and not word.isupper()
    return inner or (word[0].isupper() and not is_first)
