"""Answers of agents with tools, compared as numbers and names.

A text has one answer: a list of candidates is none. Functions accept any text and raise no errors.
"""

import re

from mlrl_envs.parsing.numbers import find_answer, read_number, same_answer
from mlrl_envs.tasks import ToolTask

__all__ = ["DIGITS", "NUMBER", "exact", "is_right"]

DIGITS = re.compile(r"\d+(?:\.\d+)?")
NUMBER = re.compile(r"(?<![\w.])-?(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?")
MAX_ANSWER_CHARS = 200
_THOUSANDS = re.compile(r"(?<=\d)[ \u00a0\u202f'\u2019](?=\d{3}(?!\d))")
_WORD = re.compile(r"[^\W_]+")
_CHOICE = re.compile(r"(?i)\b(?:or|either|maybe|perhaps)\b|\|")


def exact(number: str) -> str:
    """Return one spelling for all spellings of a number: "1250.5" for "1,250.50"."""
    try:
        return f"{float(number.replace(',', '')):.9g}"
    except ValueError:
        return number


def is_right(answer: str | None, task: ToolTask) -> bool:
    """Return whether an answer gives the wanted number, or the wanted name before any other.

    Numbers that the task tells, or that the answer is computed from, may stand beside it.
    """
    if answer is None or len(answer) > MAX_ANSWER_CHARS:
        return False
    wanted = read_number(task.answer) if re.match(r"-?[0-9]", task.answer) else None
    if wanted is None:
        return _is_named(answer, task)
    told = " ".join([task.question, *dict(task.briefs).values()])
    needs = [number for item in task.evidence for number in item.needs]
    known = set(map(exact, DIGITS.findall(told) + needs))
    plain = _THOUSANDS.sub("", answer)
    rest = NUMBER.sub(lambda found: "" if exact(found[0]) in known else found[0], plain)
    return any(same_answer(find_answer(text), wanted) for text in (answer, rest))


def _is_named(answer: str, task: ToolTask) -> bool:
    """Return whether the first name in an answer is the right one, and no list of names follows."""
    said = _words(answer)
    places = {name: said.find(_words(name)) for name in (task.answer, *task.rivals)}
    given = sorted((name for name in places if places[name] >= 0), key=places.__getitem__)
    if given[:1] != [task.answer] or _CHOICE.search(answer):
        return False
    between = said[places[given[0]] + len(_words(given[0])) : places[given[-1]]].split()
    return len(given) == 1 or bool(set(between) - {"and", *_words(" ".join(given)).split()})


def _words(text: str) -> str:
    """Return the words of a text, each between two spaces, without case and punctuation."""
    return f" {' '.join(_WORD.findall(text.casefold()))} "
