r"""Numeric answers in model output: `1,000`, `1/2`, `\boxed{-3}`, `25%`, `#### 7`.

The last marked answer counts (`Answer: 7`, `the answer is 7`, `#### 7`, `\boxed{7}`,
`<answer>7</answer>`); without a mark, the last line with a number, before a check of the result
("Check: 3 * 7 = 21"). A text has at most one answer: several numbers side by side ("5 or 6",
"1, 2, 3", "x = 1, x = 2"), or more than three different marked ones, count as no answer. Values are
exact fractions. Functions accept any text and raise no errors. Number words, roots and variables
are not recognised.
"""

import re
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

__all__ = [
    "MAX_MARKED",
    "NumericAnswer",
    "find_answer",
    "format_number",
    "read_number",
    "same_answer",
]

MAX_MARKED = 3  # more different marked answers are a list of guesses
MAX_CHARS = 20_000  # the answer is near the end; bounds the time
MAX_DIGITS = 40
MAX_EXPONENT = 40
TOLERANCE = Fraction(1, 10**6)


@dataclass(frozen=True, slots=True)
class NumericAnswer:
    """The number that a text gives as its answer.

    Attributes:
        value: The number as written; 25 for `25%`.
        percent: Whether a percent sign follows, so that 0.25 is also meant.
        marked: Whether the text marks the number as the answer.
    """

    value: Fraction
    percent: bool = False
    marked: bool = False


_DIGITS = r"(?:[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])|[0-9]+)(?:\.[0-9]+)?|\.[0-9]+"
_NUMBER = re.compile(
    rf"(?<![\w.])(?P<sign>[-+]?)[$€£]?(?P<sign2>[-+]?)"
    rf"(?:(?P<whole>[0-9]+)\s+(?P<part>[0-9]+)/(?P<of>[0-9]+)"
    rf"|(?P<number>{_DIGITS})"
    r"(?:[eE](?P<exponent>[-+]?[0-9]+)|\s?(?:x|\*|\\times|\u00d7)\s?10\^\{?(?P<power>[-+]?[0-9]+)\}?)?"
    rf"(?:\s?/\s?(?P<below>{_DIGITS}))?)"
    r"(?P<percent>\s?(?:%|percent\b))?"
)
_LATEX_FRACTION = re.compile(
    r"(?:(-)\s*)?\\[dt]?frac\s*\{\s*([^{}]{1,40})\}\s*\{\s*([^{}]{1,40})\}"
)
_PLAIN = (
    ("\r\n", "\n"),
    ("\u2212", "-"),
    ("\u2013", "-"),
    ("\u2010", "-"),
    ("\u2011", "-"),
    ("\u00a0", " "),
    ("\u202f", " "),
    ("{,}", ","),
    ("\\,", ""),
    ("\\!", ""),
    ("\\;", " "),
    ("\\ ", " "),
    ("\\$", "$"),
    ("\\%", "%"),
    ("\\left", ""),
    ("\\right", ""),
)
_BOXED = "\\boxed{"
_MARK = re.compile(
    rf"(?i)(?P<hashes>####(?=[ \t*_$€£(+\-.]*(?:[0-9]|{re.escape(_BOXED)}))(?!\s*[0-9]+[.):]\s))"
    r"|(?P<tag><answer>)"
    r"|\banswer\b(?:[ \t]+to[ \t][\w \t]{1,40}?)?[\"'*_ \t]{0,6}"
    r"(?:(?P<states>\bis\b)|:|=)[ \t:*_\"'=]{0,6}"
)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
_CHOICE = re.compile(r"(?i)\b(?:or|either|maybe|perhaps|alternatively)\b|\|")
_CHECK = re.compile(r"(?i)\b(?:check|verif|proof|to confirm|test:)")
_ASSIGNED = re.compile(rf"\b([a-zA-Z])\s*=\s*(-?(?:{_DIGITS}))(?!\s*[-+*/\u00d7\u00f7\d])")
_SPACES = re.compile(r"[^\S\n]+")
_APART = re.compile(r"(\bis|[=:{])([ *_$]*)(?:- |(?i:minus|negative) )(?=[$.0-9])")  # "x = - 5"
_GROUPS = re.compile(r"(?<![\w.,])[0-9]{1,3}(?:[ '\u2019][0-9]{3})+(?![\w/]|,[0-9])")  # "1 000"
_ITEM = re.compile(r"[ *_]*([0-9]{1,2})[.)][ *_]+(?=.*[0-9])")
_NO_WORDS = re.compile(r"(?:(?:[\W_]*|```\w*)\n)+(?:[-+*\u2022] )?")  # `$$`, a fence, a bullet
_ASIDE = re.compile(r"\([^()]{0,60}[0-9] ?[-+*/x\u00d7\u00f7] ?[$0-9][^()]{0,60}\)")  # "(6 * 7)"
_LIST_MARKS = " \n,;&*_(){}[]$\"'."
_OPERATIONS = ("", *"-+*/x\u00d7\u00f7^", "\\times", "\\cdot", "\\div")


def find_answer(text: str) -> NumericAnswer | None:
    """Return the number that a text gives as its answer, or None if it gives none or several."""
    plain = _plain(text[-MAX_CHARS:])
    segments = _marked_segments(plain)
    if segments:
        return _last_of_few(segments)
    stated = _CHECK.split(plain)[0]
    for line in reversed((stated if _NUMBER.search(stated) else plain).split("\n")):
        if _NUMBER.search(line):
            return _read_segment(_without_item(line, plain))
    return None


def read_number(text: str) -> Fraction | None:
    """Return the first number in a text, or None."""
    match = _NUMBER.search(_plain(text[:MAX_CHARS]))
    return _value(match) if match else None


def same_answer(answer: NumericAnswer | None, wanted: Fraction) -> bool:
    """Return whether an answer equals a number within 1e-6; `25%` equals 25 and 0.25."""
    if answer is None:
        return False
    readings = (answer.value, answer.value / 100) if answer.percent else (answer.value,)
    return any(abs(value - wanted) <= TOLERANCE for value in readings)


def format_number(value: Fraction) -> str:
    """Format a number as an integer, a finite decimal or a fraction."""
    if value.denominator == 1:
        return str(value.numerator)
    for places in range(1, 7):
        scaled = value * 10**places
        if scaled.denominator == 1:
            digits = f"{abs(scaled.numerator):0{places + 1}d}"
            return f"{'-' if value < 0 else ''}{digits[:-places]}.{digits[-places:]}"
    return f"{value.numerator}/{value.denominator}"


def _last_of_few(segments: list[str]) -> NumericAnswer | None:
    last: NumericAnswer | None = None
    different = set()
    for segment in reversed(segments):
        answer = _read_segment(segment)
        if answer is None:
            continue
        last = last or NumericAnswer(answer.value, answer.percent, marked=True)
        different.add(answer.value)
        if len(different) > MAX_MARKED:
            return None
    return last


def _plain(text: str) -> str:
    for old, new in _PLAIN:
        text = text.replace(old, new)
    text = _APART.sub(r"\1\2-", _SPACES.sub(" ", text))
    text = _LATEX_FRACTION.sub(r" \1\2/\3 ", text)
    return _GROUPS.sub(lambda found: re.sub("[^0-9]", "", found[0]), text)


def _without_item(line: str, text: str) -> str:
    """Return a line without its number in a list, if the item before it is in the text."""
    item = _ITEM.match(line)
    before = item and re.search(rf"(?m)^[ *_]*{int(item[1]) - 1}[.)][ *_]", text)
    return line[item.end() :] if item and before else line


def _marked_segments(text: str) -> list[str]:
    # The text after each mark, in order; "this answer is right" states no number and marks nothing.
    found = [(match, _after_mark(text, match.end())) for match in _MARK.finditer(text)]
    segments = [
        (match.end(), segment)
        for match, segment in found
        if not match["states"] or _NUMBER.search(segment)
    ]
    return [segment for _, segment in sorted([*segments, *_boxes(text)])]


def _after_mark(text: str, start: int) -> str:
    rest = text[start : start + 400].lstrip(" \t*_")
    if own_line := _NO_WORDS.match(rest):  # "Answer:" on a line of its own
        rest = rest[own_line.end() :].lstrip()
    line = rest.split("\n", 1)[0].split("</", 1)[0]
    following = _MARK.search(line)
    return line[: following.start()] if following else line


def _boxes(text: str) -> list[tuple[int, str]]:
    found = []
    start = text.find(_BOXED)
    while start >= 0:
        inside = start + len(_BOXED)
        end = _closing_brace(text, inside)
        found.append((inside, text[inside:end]))
        start = text.find(_BOXED, end)  # inner boxes are parsed with the outer one
    return found


def _closing_brace(text: str, start: int) -> int:
    depth = 1
    for index in range(start, min(len(text), start + 400)):
        depth += (text[index] == "{") - (text[index] == "}")
        if depth == 0:
            return index
    return min(len(text), start + 400)


def _read_segment(segment: str) -> NumericAnswer | None:
    # The first sentence with a number; of an equation, the last side that is a single number.
    sentence = next((s for s in _SENTENCE_END.split(segment) if _NUMBER.search(s)), "")
    assigned = set(_ASSIGNED.findall(sentence))
    if len(assigned) > len({name for name, _ in assigned}):
        return None  # one unknown, several values
    sides = sentence.split("=")
    if len(sides) > 1:
        single = [side for side in sides if len(_NUMBER.findall(side)) == 1]
        if single:
            return _read_numbers(single[-1])
    return _read_numbers(sides[-1])


def _read_numbers(text: str) -> NumericAnswer | None:
    aside = _ASIDE.sub(" ", text)
    text = aside if _NUMBER.search(aside) else text
    matches = list(_NUMBER.finditer(text))
    if not matches:
        return None
    lead = text[: matches[0].start()]
    starts_with_it = not lead.strip(" \t*_({[$\"'")
    if len({_value(match) for match in matches}) > 1:
        gaps = [text[a.end() : b.start()] for a, b in pairwise(matches)]
        beside = gaps[0] if starts_with_it else gaps[-1]
        if any(_CHOICE.search(gap) for gap in [lead, *gaps]) or _is_list(beside):
            return None
    chosen = matches[0] if starts_with_it else matches[-1]
    value = _value(chosen)
    return None if value is None else NumericAnswer(value, chosen["percent"] is not None)


def _is_list(gap: str) -> bool:
    # Without regular expressions, because their time is quadratic in a run of spaces or marks.
    is_operation = gap.strip().removesuffix("(").strip() in _OPERATIONS
    return is_operation or gap.strip(_LIST_MARKS).lower() in ("", "and", "to")


def _value(match: re.Match[str]) -> Fraction | None:
    if match["whole"]:
        parts = [_read_digits(match[name]) for name in ("whole", "part", "of")]
        if None in parts or parts[2] == 0:
            return None
        whole, part, of = (value for value in parts if value is not None)
        value = whole + part / of
    else:
        unsigned = _unsigned(match)
        if unsigned is None:
            return None
        value = unsigned
    negative = (match["sign"] == "-") != (match["sign2"] == "-")
    return -value if negative else value


def _unsigned(match: re.Match[str]) -> Fraction | None:
    value = _read_digits(match["number"])
    exponent = match["exponent"] or match["power"] or "0"
    if value is None or len(exponent) > 4 or abs(int(exponent)) > MAX_EXPONENT:
        return None
    value *= Fraction(10) ** int(exponent)
    if match["below"] is None:
        return value
    below = _read_digits(match["below"])
    return value / below if below else None


def _read_digits(digits: str) -> Fraction | None:
    return Fraction(digits.replace(",", "")) if len(digits) <= MAX_DIGITS else None
