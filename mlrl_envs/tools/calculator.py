"""Calculator tool, based on the library `simpleeval`; it never calls `eval`.

Expressions are short and contain numbers, arithmetic and the functions below. Integers are exact up
to 10^60, and operands are checked before an operator or function computes, so that every expression
takes milliseconds at most. `^` means a power.
"""

import math
import operator
import warnings
from collections.abc import Callable
from typing import Any

from mlrl_envs.errors import InfraError
from mlrl_envs.parsing.syntax import parse_module

__all__ = ["FUNCTIONS", "CalculatorError", "calculate", "format_value"]

MAX_CHARS = 300
MAX_VALUE = 10**60
MAX_EXPONENT = 1000
MAX_FACTORIAL = 40
MAX_DIGITS = 60
Number = int | float


class CalculatorError(Exception):
    """An expression cannot be evaluated; the message gives the reason."""


def calculate(expression: str) -> str:
    """Return the value of an expression as text: `"4"`, `"0.3"`.

    Args:
        expression: The expression, at most 300 characters.

    Raises:
        CalculatorError: If it is not arithmetic, or a value is out of bounds.
        InfraError: If `simpleeval` is not installed.
    """
    if len(expression) > MAX_CHARS:
        raise CalculatorError(f"an expression has at most {MAX_CHARS} characters")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # warnings about input such as `2(3)` are irrelevant
            body = parse_module(expression.strip().replace("^", "**")).body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise CalculatorError("not an arithmetic expression") from error
    if len(body) != 1:
        raise CalculatorError("give one expression")
    return format_value(_evaluate(expression, body[0]))


def format_value(value: Number) -> str:
    """Return integral values without a decimal point, others with 12 significant digits."""
    if isinstance(value, float):
        if not math.isfinite(value):
            raise CalculatorError("the result is out of bounds")
        if value.is_integer() and abs(value) < 1e15:
            value = int(value)
    return str(value) if isinstance(value, int) else f"{value:.12g}"


def _evaluate(expression: str, statement: Any) -> Number:  # noqa: ANN401  a syntax node
    calculator = _library()
    try:
        return _bounded(calculator.eval(expression, previously_parsed=statement))
    except CalculatorError:
        raise
    except ZeroDivisionError as error:
        raise CalculatorError("division by zero") from error
    except OverflowError as error:
        raise CalculatorError("the result is out of bounds") from error
    except (ValueError, RecursionError) as error:
        raise CalculatorError("undefined for these numbers") from error
    except Exception as error:
        # The library raises its own errors for unknown syntax and names.
        raise CalculatorError(f"only numbers, + - * / // % ^ and {', '.join(FUNCTIONS)}") from error


def _library() -> Any:  # noqa: ANN401  a type of an optional package
    try:
        import simpleeval
    except ImportError as error:
        raise InfraError("the calculator needs pip install 'mlrl[tasks]' (simpleeval)") from error
    import ast

    operators: dict[type, Callable[..., Any]] = {
        ast.Add: _of_numbers(operator.add),
        ast.Sub: _of_numbers(operator.sub),
        ast.Mult: _of_numbers(operator.mul),  # a text times a number would fill the memory
        ast.Div: _of_numbers(operator.truediv),
        ast.FloorDiv: _of_numbers(operator.floordiv),
        ast.Mod: _of_numbers(operator.mod),
        ast.Pow: _power,
        ast.USub: lambda a: -_bounded(a),
        ast.UAdd: _bounded,
    }
    names = {"pi": math.pi, "e": math.e, "tau": math.tau}
    calculator = simpleeval.SimpleEval(operators, dict(FUNCTIONS), names)
    kept = ("Expr", "Name", "UnaryOp", "BinOp", "Call", "Constant", "Num")
    calculator.nodes = {
        kind: evaluate for kind, evaluate in calculator.nodes.items() if kind.__name__ in kept
    }
    return calculator


def _bounded(value: Any) -> Number:  # noqa: ANN401  the result of any operator
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise CalculatorError("only real numbers")
    if abs(value) > MAX_VALUE:
        raise CalculatorError("the result is out of bounds")
    return value


def _power(base: Any, exponent: Any) -> Number:  # noqa: ANN401  any operand
    base, exponent = _bounded(base), _bounded(exponent)
    if abs(exponent) > MAX_EXPONENT:
        raise CalculatorError("the exponent is out of bounds")
    return _bounded(base**exponent)


def _round(value: Any, digits: Any = 0) -> Number:  # noqa: ANN401  any operand
    value, digits = _bounded(value), _bounded(digits)
    if not isinstance(digits, int) or abs(digits) > MAX_DIGITS:  # Python computes 10 ** digits
        raise CalculatorError(f"round to a whole number of at most {MAX_DIGITS} digits")
    return _bounded(round(value, digits) if digits else round(value))


def _factorial(n: Any) -> int:  # noqa: ANN401  any operand
    if not 0 <= _bounded(n) <= MAX_FACTORIAL:
        raise CalculatorError(f"factorial of 0 to {MAX_FACTORIAL} only")
    return math.factorial(int(n))


def _of_numbers(function: Callable[..., Any]) -> Callable[..., Number]:
    def checked(*values: Any) -> Number:  # noqa: ANN401  any operand
        return _bounded(function(*map(_bounded, values)))

    return checked


FUNCTIONS: dict[str, Callable[..., Number]] = {
    **{
        function.__name__: _of_numbers(function)
        for function in (
            *(math.sqrt, math.sin, math.cos, math.tan, math.asin, math.acos, math.atan),
            *(math.exp, math.log, math.log2, math.log10, math.floor, math.ceil, math.gcd),
            *(abs, min, max),
        )
    },
    "round": _round,
    "pow": _power,
    "factorial": _factorial,
}
