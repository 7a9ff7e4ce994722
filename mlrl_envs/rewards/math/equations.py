"""Equations in the solution of a math problem: whether they are true, and what they build on.

Only equations without brackets are parsed, such as `48 / 2 = 24`. Equations with brackets, units
inside or unknowns are ignored.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from mlrl_envs.parsing.numbers import read_number

__all__ = ["Equation", "equations", "is_backed", "shows_steps"]

MAX_EQUATIONS = 100  # only the last ones are parsed; bounds the time
WINDOW = 80
MAX_OPERAND_CHARS = 20

_NUMBER = r"(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]+)?"
_SIGN = r"[ \t]*[-+*/x\u00d7\u00f7]"
_SUM = re.compile(rf"-?(?:\$?{_NUMBER}{_SIGN}[ \t]*)+\$?{_NUMBER}\s*\Z")
_RESULT = re.compile(
    rf"\s*(?P<value>-?\s?\$?{_NUMBER}(?:/[0-9]+)?)"
    rf"(?![0-9]|[.,][0-9]|{_SIGN}[ \t]*[0-9(]|[ \t]*[%^])"  # no digit or operator follows
)
_GLUED = re.compile(r"[\w.,]\Z")
_TOKEN = re.compile(rf"{_NUMBER}|[-+*/]")
_STEP_WORDS = re.compile(r"(?i)\b(?:steps?|first|then|next|finally|therefore|because|so)\b")
_QUESTION_NUMBER = re.compile(_NUMBER)


@dataclass(frozen=True, slots=True)
class Equation:
    """A calculation as written.

    Attributes:
        text: The source text.
        operands: The numbers on the left side.
        result: The number on the right side.
        is_true: Whether both sides are equal up to rounding.
    """

    text: str
    operands: tuple[Fraction, ...]
    result: Fraction
    is_true: bool


def shows_steps(text: str) -> bool:
    """Return whether a text contains a calculation or a word that orders steps."""
    return bool(_STEP_WORDS.search(text)) or bool(equations(text))


def equations(text: str) -> list[Equation]:
    """Return the last calculations of a text, in order."""
    sides = text.replace("\u2212", "-").rsplit("=", MAX_EQUATIONS)
    found = [_equation(left[-WINDOW:], right[:WINDOW]) for left, right in pairwise(sides)]
    return [equation for equation in found if equation is not None]


def is_backed(text: str, answer: Fraction, question: str) -> bool:
    """Return whether true calculations lead from numbers of the question to the answer.

    Calculations that only repeat the answer (`42 + 0 = 42`) do not count.
    """
    known = {read_number(match) for match in _QUESTION_NUMBER.findall(question)}
    for equation in equations(text):
        if not equation.is_true:
            continue
        builds_on = any(abs(operand) in known for operand in equation.operands)
        if builds_on and answer not in equation.operands and _close(equation.result, answer):
            return True
        if builds_on:
            known.add(abs(equation.result))
    return False


def _equation(left: str, right: str) -> Equation | None:
    match, result = _SUM.search(left), _RESULT.match(right)
    if match is None or result is None or _goes_on_before(left, match.start()):
        return None
    sign = -1 if match.group().startswith("-") else 1
    tokens = _TOKEN.findall(
        re.sub(r"[x\u00d7]", "*", match.group().lstrip("-")).replace("\u00f7", "/")
    )
    if any(len(token) > MAX_OPERAND_CHARS for token in tokens):
        return None
    operands = [Fraction(token.replace(",", "")) for token in tokens[::2]]
    operands[0] *= sign
    value, stated = _evaluate(operands, tokens[1::2]), read_number(result["value"].replace(" ", ""))
    if value is None or stated is None:
        return None
    text = f"{match.group().strip()} = {result['value'].strip()}"
    return Equation(text, tuple(operands), stated, _close(value, stated))


def _goes_on_before(left: str, start: int) -> bool:
    # In "(2 + 1) * 3 + 4 =" and "x - 5 + 3 =" the match is only the end of a longer sum.
    before = left[:start]
    return before.rstrip()[-1:] in tuple("+-*/x\u00d7\u00f7^)%") or bool(_GLUED.search(before))


def _evaluate(operands: Sequence[Fraction], signs: Sequence[str]) -> Fraction | None:
    # Products first, then sums.
    terms = [operands[0]]
    for sign, operand in zip(signs, operands[1:], strict=True):
        if sign == "/" and operand == 0:
            return None
        if sign in "*/":
            terms[-1] = terms[-1] * operand if sign == "*" else terms[-1] / operand
        else:
            terms.append(operand if sign == "+" else -operand)
    return sum(terms, Fraction(0))


def _close(value: Fraction, stated: Fraction) -> bool:
    return abs(value - stated) <= max(Fraction(1, 100), abs(value) / 200)
