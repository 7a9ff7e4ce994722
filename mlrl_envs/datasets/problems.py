"""Syntax of problems that ask for a function: helper code, assertions and solutions."""

import ast
from collections.abc import Sequence

from mlrl_envs.parsing.text import FunctionNode, bound_names

__all__ = ["count_assertions", "definitions", "prelude_of", "solutions_in", "source_of"]


def prelude_of(prompt: str, name: str) -> list[ast.stmt]:
    """Return the statements of a prompt except the function `name`: imports and helper functions.

    Raises:
        SyntaxError: If the prompt does not parse.
    """
    return [
        node
        for node in ast.parse(prompt).body
        if not (isinstance(node, FunctionNode) and node.name == name)
    ]


def definitions(statements: Sequence[ast.stmt]) -> tuple[str, ...]:
    """Return the names of functions and classes that statements define, sorted.

    Imports are not included: an answer may repeat an import, but not replace a function.
    """
    defining = [node for node in statements if isinstance(node, FunctionNode | ast.ClassDef)]
    return tuple(sorted(node.name for node in defining))


def source_of(statements: Sequence[ast.stmt]) -> str:
    """Return the source of statements, without comments."""
    return "\n\n".join(ast.unparse(node) for node in statements)


def count_assertions(tests: str) -> int:
    """Return the number of assert statements in tests, without those on constants."""
    asserts = [node for node in ast.walk(ast.parse(tests)) if isinstance(node, ast.Assert)]
    return sum(not isinstance(node.test, ast.Constant) for node in asserts)


def solutions_in(source: str) -> dict[str, str]:
    """Return each function of a module with all statements of the module that it depends on.

    Raises:
        SyntaxError: If the module does not parse.
    """
    statements = ast.parse(source).body
    binding = {name: node for node in statements for name in bound_names(node)}
    functions = [node for node in statements if isinstance(node, FunctionNode)]
    return {node.name: source_of(_closure(node, statements, binding)) for node in functions}


def _closure(
    function: ast.stmt, statements: Sequence[ast.stmt], binding: dict[str, ast.stmt]
) -> list[ast.stmt]:
    needed: list[ast.stmt] = []
    waiting = [function]
    while waiting:
        node = waiting.pop()
        if node not in needed:
            needed.append(node)
            names = [inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)]
            waiting += [binding[name] for name in names if name in binding]
    return [node for node in statements if node in needed]
