"""Parts of generated math problems: a question, true equations, and an answer."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from mlrl_envs.datasets.draws import Draws
from mlrl_envs.parsing.numbers import format_number

__all__ = ["Problem", "Template", "equation"]


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem before it is checked and named.

    Attributes:
        question: The problem as agents read it.
        steps: The equations of a solution; the last one has the answer on its right side.
        answer: The answer.
    """

    question: str
    steps: tuple[str, ...]
    answer: Fraction


Template = Callable[[Draws, int], Problem]
"""Makes a problem of a level from draws."""


def equation(left: str, value: Fraction | int) -> str:
    """Return an equation with a formatted number on its right side."""
    return f"{left} = {format_number(Fraction(value))}"
