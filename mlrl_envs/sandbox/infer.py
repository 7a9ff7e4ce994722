"""Guessing a program's style and entry points, for callers who hand over two strings."""

import ast

from mlrl_envs.errors import InvalidArgumentError
from mlrl_envs.sandbox.plan import free_names
from mlrl_envs.sandbox.program import OPERATORS, Style

__all__ = ["infer_dunders", "infer_entry_points", "infer_style"]


def infer_style(tests: str) -> Style:
    """Return "check", "unittest" or "asserts", whichever the tests look like.

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

    For "check" without such a name, the last function of the source. A source that does not
    parse yields what the tests leave undefined, so that the run ends in a load error.

    Raises:
        InvalidArgumentError: If no name can be found.
    """
    wanted = free_names(ast.parse(tests))
    try:
        defined = _top_level_names(ast.parse(source))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        defined = [name for name in wanted if name not in dir(__builtins__)] or ["candidate"]
    found = [name for name in defined if name in wanted]
    if not found and style == "check":
        found = defined[-1:]
    if not found:
        raise InvalidArgumentError("the tests use no name that the source defines")
    return tuple(dict.fromkeys(found))


def infer_dunders(reference: str, entry_points: tuple[str, ...]) -> tuple[str, ...]:
    """Return the operators that a reference solution's classes define, for `Program.dunders`."""
    classes = [node for node in ast.parse(reference).body if isinstance(node, ast.ClassDef)]
    methods = [
        item.name
        for node in classes
        if node.name in entry_points
        for item in node.body
        if isinstance(item, ast.FunctionDef)
    ]
    return tuple(dict.fromkeys(name for name in methods if name in OPERATORS))


def _top_level_names(tree: ast.Module) -> list[str]:
    names: list[str] = []
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.append(node.name)
        elif isinstance(node, ast.Assign):
            names += [target.id for target in node.targets if isinstance(target, ast.Name)]
    return names
