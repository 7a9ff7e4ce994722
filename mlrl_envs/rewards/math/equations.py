"""Working in the solution of a math problem: its equations, and whether it leads to the answer.

Equations are read with brackets, such as `(2 + 1) * 8 = 24`; those with units inside or unknowns
are ignored. Whether working leads to the answer is decided by its numbers alone, so that steps may
be equations, sentences, tables or LaTeX.
"""

import ast
import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

__all__ = ["Equation", "equations", "is_backed", "numbers_in", "shows_steps", "without_numbers"]

MAX_EQUATIONS = 100  # only the last ones are parsed; bounds the time
MAX_NUMBERS = 300
WINDOW = 80
NEARBY = 6  # a step uses some of the last numbers before its result
MAX_DIGITS = 20

_NUMBER = r"(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]+)?"
_SIGN = r"[-+*/x\u00d7\u00f7\u00b7]"
_SUM = re.compile(rf"-?[($]*{_NUMBER}(?:[() \t]*{_SIGN}[ \t]*[($]*{_NUMBER})+\)*\s*\Z")
_RESULT = re.compile(
    rf"\s*(?P<value>-?\s?\$?{_NUMBER}(?:/[0-9]+)?)"
    rf"(?![0-9]|[.,][0-9]|[ \t]*{_SIGN}[ \t]*[0-9(]|[ \t]*[%^])"  # no digit or operator follows
)
_BEFORE = re.compile(r"[-+*/x\u00d7\u00f7\u00b7^)%]\s*\Z|[\w.,]\Z")  # a longer sum, or an unknown
_PLAIN = str.maketrans({"x": "*", "\u00d7": "*", "\u00b7": "*", "\u00f7": "/", "$": "", ",": ""})
_STEP_WORDS = re.compile(r"(?i)\b(?:steps?|first|then|next|finally|therefore|because|so)\b")
_ANY_NUMBER = re.compile(rf"{_NUMBER}|(?<![0-9])\.[0-9]+")
_WHOLE = re.compile(rf"(?<![\w./]){_NUMBER}(?![\w/%]|\.[0-9])")
_OPERATIONS: dict[type, Callable[[Fraction, Fraction], Fraction]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


@dataclass(frozen=True, slots=True)
class Equation:
    """A calculation as written.

    Attributes:
        text: The source text.
        operands: The numbers on the left side, without signs.
        written: The numbers on the right side, without signs; two of a fraction.
        result: The value of the right side.
        is_true: Whether both sides are equal up to rounding.
        is_final: Whether the right side is one number, not another calculation.
    """

    text: str
    operands: tuple[Fraction, ...]
    written: tuple[Fraction, ...]
    result: Fraction
    is_true: bool
    is_final: bool


def shows_steps(text: str) -> bool:
    """Return whether a text contains a calculation or a word that orders steps."""
    return bool(_STEP_WORDS.search(text)) or bool(equations(text))


def equations(text: str) -> list[Equation]:
    """Return the last calculations of a text that have a number as the result, in order."""
    return [equation for equation in _equalities(text) if equation.is_final]


def _equalities(text: str) -> list[Equation]:
    sides = text.replace("\u2212", "-").rsplit("=", MAX_EQUATIONS)
    found = [_equation(left[-WINDOW:], right[:WINDOW]) for left, right in pairwise(sides)]
    return [equation for equation in found if equation is not None]


def is_backed(text: str, answer: Fraction, question: str) -> bool:
    """Return whether the numbers of a text lead from the question to the answer.

    A number follows if it is the result of a true equation, or the sum, difference, product or
    quotient of two of the last numbers before it, or the sum of all of the last three to five. One
    of the numbers that it is made from must be in the question or follow itself, and none may be
    equal to it. Signs are ignored.
    """
    known = set(numbers_in(question)) | {number / 100 for number in numbers_in(question)}
    for equation in _equalities(text):
        result = abs(equation.result)
        if equation.is_true and _follows(result, [equation.operands], known):
            if equation.is_final and _is_close(result, abs(answer)):
                return True
            known |= {result, *equation.written}
    before: list[Fraction] = []
    for number in numbers_in(text):
        if _follows(number, _ways(before[-NEARBY:], number), known):
            if _is_close(number, abs(answer)):
                return True
            known.add(number)
        before.append(number)
    return False


def _follows(number: Fraction, ways: Sequence[tuple[Fraction, ...]], known: set[Fraction]) -> bool:
    return any(known.intersection(way) and number not in way for way in ways)


def without_numbers(text: str, question: str) -> str:
    """Return a text without the numbers of a question; those in fractions stay."""
    known = set(numbers_in(question))
    return _WHOLE.sub(
        lambda found: "" if known.issuperset(numbers_in(found[0])) else found[0], text
    )


def numbers_in(text: str) -> list[Fraction]:
    """Return the last numbers of a text, without signs."""
    found = [number for number in _ANY_NUMBER.findall(text) if len(number) <= MAX_DIGITS]
    return list(_exact(found[-MAX_NUMBERS:]))


def _ways(before: Sequence[Fraction], number: Fraction) -> list[tuple[Fraction, ...]]:
    """Return the groups of the last numbers that make a number."""
    pairs = [(a, b) for place, a in enumerate(before) for b in before[:place]]
    ways: list[tuple[Fraction, ...]] = [
        (a, b)
        for a, b in pairs
        if any(_is_close(result, number) for result in (a + b, abs(a - b), a * b))
        or _is_close(number * b, a)
        or _is_close(number * a, b)
    ]
    tails = [tuple(before[-count:]) for count in (3, 4, 5)]
    return ways + [tail for tail in tails if sum(tail) == number]


def _is_close(value: Fraction, stated: Fraction) -> bool:
    return abs(value - stated) <= Fraction(1, 100)


def _equation(left: str, right: str) -> Equation | None:
    match, final = _SUM.search(left), _RESULT.match(right)
    if match is None or _BEFORE.search(left[: match.start()]):
        return None
    said = (final["value"] if final else right).strip()
    if final is None and not _SUM.match(said):
        return None
    value, stated = _evaluate(match.group()), _evaluate(said)
    operands, written = re.findall(_NUMBER, match.group()), re.findall(_NUMBER, said)
    if value is None or stated is None or max(map(len, operands + written)) > MAX_DIGITS:
        return None
    is_true = abs(value - stated) <= max(Fraction(1, 100), abs(value) / 200)
    text = f"{match.group().strip()} = {said}"
    return Equation(text, _exact(operands), _exact(written), stated, is_true, final is not None)


def _exact(numbers: Sequence[str]) -> tuple[Fraction, ...]:
    return tuple(Fraction(number.replace(",", "")) for number in numbers)


def _evaluate(expression: str) -> Fraction | None:
    try:
        return _value_of(ast.parse(expression.translate(_PLAIN).strip(), mode="eval").body)
    except (SyntaxError, ZeroDivisionError, KeyError):
        return None


def _value_of(node: ast.AST) -> Fraction:
    if isinstance(node, ast.BinOp):
        return _OPERATIONS[type(node.op)](_value_of(node.left), _value_of(node.right))
    if isinstance(node, ast.UnaryOp):
        return -_value_of(node.operand)
    if isinstance(node, ast.Constant):
        return Fraction(str(node.value))
    raise SyntaxError("not arithmetic")
