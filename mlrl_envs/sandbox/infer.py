"""Inference of a program's style, entry points and operators from its source and tests."""

import ast
import builtins
import re
import sys

from mlrl_envs.errors import InvalidArgumentError
from mlrl_envs.sandbox.judge.plan import free_names
from mlrl_envs.sandbox.program import OPERATORS, Style

__all__ = ["infer_dunders", "infer_entry_points", "infer_style"]

DEFINITION = re.compile(
    r"^(?:async +)?(?:def|class) +(\w+)|^(\w+) *(?::[^=\n]*)?=[^=]", re.MULTILINE
)


def infer_style(tests: str) -> Style:
    """Return the style of the tests: "check", "unittest" or "asserts".

    Raises:
        InvalidArgumentError: If the tests do not parse.
    """
    try:
        body = ast.parse(tests).body
    except (SyntaxError, ValueError) as error:
        raise InvalidArgumentError(f"tests do not parse: {error}") from error
    if any(isinstance(node, ast.FunctionDef) and node.name == "check" for node in body):
        return "check"
    if any(isinstance(node, ast.ClassDef) and node.bases for node in body):
        return "unittest"
    return "asserts"


def infer_entry_points(source: str, tests: str, style: Style) -> tuple[str, ...]:
    """Return the names that the tests use and the source defines.

    If there is none and the style is "check", the result is the last name that the source defines.
    If there is still none, the result is the names that the tests use without defining them, so
    that the run ends in a load error. The source is searched with a regular expression and not
    parsed, because hostile source could crash the parser in the caller's process.

    Raises:
        InvalidArgumentError: If no name is found.
    """
    names = free_names(ast.parse(tests))
    # A builtin is an entry point only if the tests use no other name (MBPP 126 tests a function
    # `sum`). Otherwise a source could replace a builtin of the tests, such as `len`.
    own = [name for name in names if not hasattr(builtins, name)]
    wanted = own or list(names)
    defined = [next(filter(None, groups)) for groups in DEFINITION.findall(source)]
    found = [name for name in defined if name in wanted]
    if not found and style == "check":
        found = defined[-1:]
    if not found:
        found = [name for name in own if name not in sys.stdlib_module_names]
    if not found:
        raise InvalidArgumentError(
            "the tests use no name that the source defines: pass a Program with entry_points"
        )
    return tuple(dict.fromkeys(found))


def infer_dunders(reference: str, entry_points: tuple[str, ...]) -> tuple[str, ...]:
    """Return the operators that the classes of a reference define, for `Program.dunders`."""
    classes = [node for node in ast.parse(reference).body if isinstance(node, ast.ClassDef)]
    methods = [
        item.name
        for node in classes
        if node.name in entry_points
        for item in node.body
        if isinstance(item, ast.FunctionDef)
    ]
    return tuple(dict.fromkeys(name for name in methods if name in OPERATORS))
