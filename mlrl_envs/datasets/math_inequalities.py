"""Inequalities in one variable, whose answer is the smallest or the largest integer."""

from fractions import Fraction

from mlrl_envs.datasets.draws import Draws
from mlrl_envs.datasets.math_parts import Problem, equation

__all__ = ["inequality"]


def inequality(draws: Draws, level: int) -> Problem:
    """Return an inequality of one step, with a factor, or with the variable on both sides."""
    name = draws.pick("xyznkm")
    if level == 1:
        return _shifted(draws, name)
    bound, factor = draws.integer(10, 90), draws.integer(3, 12)
    rest = draws.integer(1, factor - 1)  # never 0, so that `>` and `>=` have the same answer
    if level == 2:
        return _with_factor(draws, name, bound, factor, rest)
    return _both_sides(draws, name, bound, factor, rest)


def _shifted(draws: Draws, name: str) -> Problem:
    shift, bound = draws.integer(11, 60), draws.integer(61, 160)
    if draws.integer(0, 1):
        edge = bound - shift
        question = f"What is the smallest integer {name} with {name} + {shift} > {bound}?"
        steps = (equation(f"{bound} - {shift}", edge), equation(f"{edge} + 1", edge + 1))
        return Problem(question, steps, Fraction(edge + 1))
    edge = bound + shift
    question = f"What is the largest integer {name} with {name} - {shift} < {bound}?"
    steps = (equation(f"{bound} + {shift}", edge), equation(f"{edge} - 1", edge - 1))
    return Problem(question, steps, Fraction(edge - 1))


def _with_factor(draws: Draws, name: str, bound: int, factor: int, rest: int) -> Problem:
    shift, edge = draws.integer(4, 60), factor * bound - rest
    steps = (
        equation(f"{edge + shift} - {shift}", edge),
        equation(f"{edge} / {factor}", Fraction(edge, factor)),
        equation(f"{factor * bound} / {factor}", bound),
    )
    side = f"{factor}{name} + {shift} >= {edge + shift}"
    return Problem(f"What is the smallest integer {name} with {side}?", steps, Fraction(bound))


def _both_sides(draws: Draws, name: str, bound: int, factor: int, rest: int) -> Problem:
    taken, shift = draws.integer(1, factor - 1), draws.integer(15, 90)
    added, edge = factor - taken, factor * bound + rest
    steps = (
        equation(f"{edge + shift} - {shift}", edge),
        equation(f"{taken} + {added}", factor),
        equation(f"{edge} / {factor}", Fraction(edge, factor)),
        equation(f"{factor * bound} / {factor}", bound),
    )
    side = f"{edge + shift} - {_times(taken, name)} >= {_times(added, name)} + {shift}"
    return Problem(f"What is the largest integer {name} with {side}?", steps, Fraction(bound))


def _times(factor: int, name: str) -> str:
    return name if factor == 1 else f"{factor}{name}"
