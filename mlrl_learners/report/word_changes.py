"""Words that differ between two texts, marked."""

import difflib
import re
from collections.abc import Sequence

from mlrl_learners.report.html import Child, Html, tag

__all__ = ["beside", "changes"]

_WORD = re.compile(r"\s*\S+|\s+$")
_MOST_WORDS = 800  # the time is quadratic in it


def changes(before: str, after: str, since: str) -> Html:
    """Show a text with the words that were added and removed since another one, folded."""
    old, new = _words(before), _words(after)
    parts: list[Child] = []
    for kind, a, b, c, d in _opcodes(old, new):
        if kind == "equal":
            parts.append("".join(new[c:d]))
        else:
            parts += [_marked("del", old[a:b]), _marked("ins", new[c:d])]
    return tag(
        "details",
        tag("summary", f"what changed since {since}"),
        tag("div", parts, class_="prose text"),
        _cut(old, new),
        class_="reads",
    )


def beside(left: str, right: str) -> tuple[Html, Html]:
    """Return both texts, each with the words marked that the other one lacks."""
    old, new = _words(left), _words(right)
    ours: list[Child] = []
    theirs: list[Child] = []
    for kind, a, b, c, d in _opcodes(old, new):
        same = kind == "equal"
        ours.append("".join(old[a:b]) if same else _marked("mark", old[a:b]))
        theirs.append("".join(new[c:d]) if same else _marked("mark", new[c:d]))
    note = _cut(old, new)
    return tag("div", ours, note, class_="prose"), tag("div", theirs, note, class_="prose")


def _opcodes(old: Sequence[str], new: Sequence[str]) -> list[tuple[str, int, int, int, int]]:
    """Return equal and different spans of words; of words beyond the limit nothing is said."""
    first = [word.strip() for word in old[:_MOST_WORDS]]
    second = [word.strip() for word in new[:_MOST_WORDS]]
    return list(difflib.SequenceMatcher(None, first, second).get_opcodes())


def _cut(old: Sequence[str], new: Sequence[str]) -> Html | None:
    if max(len(old), len(new)) <= _MOST_WORDS:
        return None
    return tag("p", f"The first {_MOST_WORDS} words are compared.", class_="quiet")


def _marked(name: str, words: Sequence[str]) -> Html | None:
    """Mark words, but not the white space before them."""
    text = "".join(words)
    start = len(text) - len(text.lstrip())
    return tag("span", text[:start], tag(name, text[start:])) if text else None


def _words(text: str) -> list[str]:
    return _WORD.findall(text)
