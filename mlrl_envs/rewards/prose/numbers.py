"""Numbers of a text, as digits or as words, with the units of time, money and share after them.

Thousands separators, currencies, percent signs, units, times and ages are read by their digits:
"3:30" is 3 and 30, "[24M]" is 24. "twenty-three" is 23, "10k" is 10,000, "twice" is two times,
"third" is 3, "20s" is any number of that decade. 0 and 1 are never a claim ("one" is mostly a
pronoun), nor are words that are often an idiom, such as "second", "half", "a couple" and "a
hundred", nor are the words "two" and "three" without a unit, since writers count. As words of a
source all of them support their numbers.

A number with a unit is supported by the same number with this unit or with none: "three months"
does not support "three times". A source also supports what its numbers are rounded to, up to 5 %,
the whole numbers next to a fraction, and the percentage of a share. Sums, differences and other
units are not worked out. A number that begins a line and ends with a mark, as in a list, is no
claim.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

__all__ = ["KnownNumbers", "Number", "is_number_word", "known_numbers", "numbers_of"]

ROUNDED = 0.05  # relative error of a rounded number
# At most 15 digits at once: a float holds them, and conversions never fail.
_TOKEN = re.compile(
    r"[^\W\d_]+|\d{1,3}(?:,\d{3}){1,4}(?!,?\d)(?:\.\d{1,9})?|\d{1,15}(?:\.\d{1,9})?"
)
_UNITS = (
    "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen"
)
_ORDINAL_UNITS = (
    "third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth "
    "fifteenth sixteenth seventeenth eighteenth nineteenth twentieth"
)
_ORDINALS = tuple(_ORDINAL_UNITS.split())
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_DECADES = tuple(ten.removesuffix("y") + "ies" for ten in _TENS)
_SMALL: dict[str, float] = {
    **{word: 1.0 + place for place, word in enumerate(_UNITS.split())},
    **{word: 3.0 + place for place, word in enumerate(_ORDINALS)},
    **{word: 20.0 + 10 * place for place, word in enumerate(_TENS)},
    "fourty": 40.0,
    "twice": 2.0,
    "thrice": 3.0,
}
_SCALES = {"dozen": 12.0, "hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9}
_COUNTED = ("two", "three")  # often no fact of the source, but what its writer counts
_SUFFIXES = {"k": 1e3, "m": 1e6, "b": 1e9, "bn": 1e9, **_SCALES}
_HINTS: dict[str, tuple[float, ...]] = {
    "once": (1,),
    "second": (2,),
    "couple": (2,),
    "both": (2,),
    "pair": (2,),
    "double": (2,),
    "doubled": (2,),
    "triple": (3,),
    "tripled": (3,),
    "decade": (10,),
    "century": (100,),
    "half": (0.5, 1.5, 30, 50),
    "quarter": (0.25, 4, 15, 25),
    "quarters": (0.75, 4, 45, 75),
}
_UNITS_OF: dict[str, str] = {
    word: unit
    for unit, words in {
        "time": "time times x",
        "minute": "minute minutes min mins",
        "hour": "hour hours hr hrs h",
        "day": "day days",
        "week": "week weeks wk wks",
        "month": "month months mo mos",
        "year": "year years yr yrs",
        "money": "dollar dollars bucks usd euro euros quid",
        "percent": "percent",
    }.items()
    for word in words.split()
}
_TIMES = frozenset({"once", "twice", "thrice"})
_ADJECTIVES = "or to and more full whole straight long of few other different"
_BETWEEN = frozenset(_ADJECTIVES.split())
_STOP = re.compile(r"[^\s\-\u2010-\u2015'\u2019%]")


@dataclass(frozen=True)
class Number:
    """A number of a text.

    Attributes:
        start: Position in the text.
        shown: The number as it is written.
        values: Readings; a source that supports one of them supports the number.
        unit: The unit that follows, such as "week", if any.
        is_claim: Whether the text states a quantity, rather than an idiom.
    """

    start: int
    shown: str
    values: tuple[float, ...]
    unit: str | None
    is_claim: bool


@dataclass(frozen=True)
class KnownNumbers:
    """The numbers of a source.

    Attributes:
        values: Every value that is supported.
        with_units: The values with the units of their numbers, None for no unit.
    """

    values: frozenset[float]
    with_units: frozenset[tuple[float, str | None]]

    def support(self, number: Number) -> bool:
        """Return whether the source has a number."""
        if number.unit is None:
            return not self.values.isdisjoint(number.values)
        return any(
            (value, unit) in self.with_units
            for value in number.values
            for unit in (number.unit, None)
        )


def is_number_word(word: str) -> bool:
    """Return whether a word in lower case is a number, or a part of one."""
    return word in _SMALL or word in _SCALES or word in _DECADES


@lru_cache(maxsize=64)
def numbers_of(text: str) -> tuple[Number, ...]:
    """Return the numbers of a text in order of appearance."""
    return tuple(_read(_Tokens(text)))


@lru_cache(maxsize=64)
def known_numbers(source: str) -> KnownNumbers:
    """Return what a source supports."""
    known = frozenset(
        (rounded, number.unit)
        for number in numbers_of(source)
        for value in number.values
        for rounded in _roundings(value)
    )
    return KnownNumbers(frozenset(value for value, _ in known), known)


def _roundings(value: float) -> set[float]:
    found = {value}
    if value != int(value):
        found |= {float(math.floor(value)), float(math.ceil(value))}
    if value < 1.0:
        found.add(round(100.0 * value, 9))
    for place in range(-10, 4):
        rounded = round(value, place)
        if abs(rounded - value) <= ROUNDED * value:
            found.add(rounded)
    return found


@dataclass(frozen=True)
class _Reading:
    used: int  # tokens
    values: tuple[float, ...]
    is_claim: bool = True


class _Tokens:
    def __init__(self, text: str) -> None:
        self.text = text
        self.found = list(_TOKEN.finditer(text))
        self.words = [token[0].lower() for token in self.found]

    def gap(self, place: int) -> str | None:
        """Return what is between a token and the next, None at the end."""
        if place + 1 >= len(self.found):
            return None
        return self.text[self.found[place].end() : self.found[place + 1].start()]

    def shown(self, place: int, used: int) -> str:
        """Return some tokens as they are written."""
        return self.text[self.found[place].start() : self.found[place + used - 1].end()]

    def is_item(self, place: int) -> bool:
        """Return whether a number marks an item of a list: it begins a line, and a mark ends it."""
        token = self.found[place]
        line = self.text.rfind("\n", 0, token.start()) + 1
        return not self.text[line : token.start()].strip() and self.text.startswith(
            (". ", ") ", ": "), token.end()
        )

    def unit(self, place: int, used: int) -> str | None:
        """Return the unit of a number of some tokens, if any."""
        start, last = self.found[place].start(), place + used - 1
        if self.words[place] in _TIMES:
            return "time"
        if start and self.text[start - 1] in "$\u00a3\u20ac":
            return "money"
        if self.text.startswith(("%", " %"), self.found[last].end()):
            return "percent"
        return self._next_unit(last)

    def _next_unit(self, last: int) -> str | None:
        # Also of the first number in "two or three more weeks".
        for after in range(last + 1, min(last + 5, len(self.words))):
            word = self.words[after]
            if _STOP.search(self.gap(after - 1) or ""):
                break
            if word in _UNITS_OF:
                return _UNITS_OF[word]
            if not (word in _BETWEEN or word in _SMALL or word[0].isdecimal()):
                break
        return None


def _read(tokens: _Tokens) -> Iterator[Number]:
    place = 0
    while place < len(tokens.words):
        reading = _reading(tokens, place)
        if reading is None:
            place += 1
            continue
        shown, unit = tokens.shown(place, reading.used), tokens.unit(place, reading.used)
        is_claim = reading.is_claim and not (unit is None and shown.lower() in _COUNTED)
        yield Number(tokens.found[place].start(), shown, reading.values, unit, is_claim)
        place += reading.used


def _reading(tokens: _Tokens, place: int) -> _Reading | None:
    word = tokens.words[place]
    if word[0].isdecimal():
        return _digits(tokens, place)
    if word in _SMALL or word in _SCALES:
        return _words(tokens, place)
    if word in _DECADES:
        return _Reading(1, _decade(20.0 + 10 * _DECADES.index(word)))
    return _Reading(1, _HINTS[word], is_claim=False) if word in _HINTS else None


def _digits(tokens: _Tokens, place: int) -> _Reading:
    value = float(tokens.words[place].replace(",", ""))
    gap = tokens.gap(place)
    suffix = "" if gap is None else tokens.words[place + 1]
    if suffix == "s" and gap in ("", "'", "\u2019") and value and value % 10 == 0:
        return _Reading(2, _decade(value))
    if suffix in _SCALES and gap in ("", " ", "-"):
        return _Reading(2, (value * _SCALES[suffix],))
    if suffix in _SUFFIXES and gap == "":
        # "24M" may be an age, "10m" a length.
        scaled = value * _SUFFIXES[suffix]
        return _Reading(2, (scaled,) if suffix == "k" else (scaled, value))
    return _Reading(1, (value,), is_claim=value not in (0.0, 1.0) and not tokens.is_item(place))


def _decade(first: float) -> tuple[float, ...]:
    return tuple(first + year for year in range(10))


def _words(tokens: _Tokens, place: int) -> _Reading:
    """Read one number that starts at a token, such as "two hundred and fifty"."""
    total, value, last, end = 0.0, 0.0, math.inf, place
    while end < len(tokens.words):
        word = tokens.words[end]
        if word in _SCALES and (0.0 < value < _SCALES[word] or end == place):
            value, last = max(value, 1.0) * _SCALES[word], _SCALES[word]
            if last >= 1e3:
                total, value, last = total + value, 0.0, math.inf
        elif word in _SMALL and _fits(_SMALL[word], last):
            value, last = value + _SMALL[word], _SMALL[word]
        elif word != "and" or _SCALES.get(tokens.words[end - 1], 0.0) < 1e2:
            break
        end += 1
        gap = tokens.gap(end - 1)
        if gap is None or not (gap == "-" or gap.isspace()):
            break
    end -= tokens.words[end - 1] == "and"
    word, amount = tokens.words[place], total + value
    is_claim = amount > 1.0 and not (end == place + 1 and word in _SCALES)
    if word in _ORDINALS and (tokens.gap(end - 1) or "").startswith(","):
        is_claim = False  # "Third, ..."
    return _Reading(end - place, (amount,), is_claim)


def _fits(value: float, last: float) -> bool:
    # "twenty three" and "hundred five" go on, "two three" are two numbers.
    return last in (math.inf, 1e2) or (20 <= last < 1e2 and value < 10)
