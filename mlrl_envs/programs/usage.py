"""Use of helpers by a main function, determined on syntax trees.

The published formula and the diagnostics read it. Calls through another name (`g = aux; g(x)`) are
not recognised. `mlrl_envs.rewards.coding.cooperation` measures whether the result matters.
"""

import ast
from collections.abc import Iterator
from typing import Literal

from mlrl_envs.parsing.text import FunctionNode
from mlrl_envs.programs.assembly import FunctionAnswer

__all__ = ["Usage", "is_thin_wrapper", "usage_of"]

Usage = Literal["missing", "uncalled", "ignored", "wrapped", "used"]


def usage_of(main: FunctionAnswer, name: str) -> Usage:
    """Return how the answer `main` uses the helper `name`."""
    if main.function is None:
        return "missing"
    if _rebinds(main, name) or not any(_is_call(node, name) for node in _nodes(main)):
        return "uncalled"
    if is_thin_wrapper(main.function, name):
        return "wrapped"
    return "ignored" if _ignores(main, name) else "used"


def is_thin_wrapper(main: FunctionNode, name: str) -> bool:
    """Return whether `main` only returns `name(...)`, directly or through one variable."""
    body = _working(main)
    if not body or not isinstance(body[-1], ast.Return):
        return False
    returned = body[-1].value
    if len(body) == 1:
        return _is_call(returned, name)
    target, value = _assignment(body[0])
    return (
        len(body) == 2
        and _is_call(value, name)
        and isinstance(returned, ast.Name)
        and returned.id == target
    )


def _nodes(answer: FunctionAnswer) -> Iterator[ast.AST]:
    for statement in answer.statements:
        yield from ast.walk(statement)


def _working(function: FunctionNode) -> list[ast.stmt]:
    # Docstrings, constants, `pass` and imports are not work.
    return [
        node
        for node in function.body
        if not isinstance(node, ast.Pass | ast.Import | ast.ImportFrom)
        and not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
    ]


def _is_call(node: ast.AST | None, name: str) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name


def _assignment(statement: ast.AST) -> tuple[str, ast.expr | None]:
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target = statement.targets[0]
        return (target.id, statement.value) if isinstance(target, ast.Name) else ("", None)
    if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
        return statement.target.id, statement.value
    return "", None


def _rebinds(main: FunctionAnswer, name: str) -> bool:
    return any(_binds(node, name) for node in _nodes(main))


def _binds(node: ast.AST, name: str) -> bool:
    if isinstance(node, FunctionNode | ast.ClassDef):
        return node.name == name
    if isinstance(node, ast.Name):
        return node.id == name and not isinstance(node.ctx, ast.Load)
    if isinstance(node, ast.alias):
        return (node.asname or node.name) == name
    return isinstance(node, ast.arg) and node.arg == name


def _ignores(main: FunctionAnswer, name: str) -> bool:
    # Ignored: every result is discarded or assigned to a variable that is never read.
    nodes = list(_nodes(main))
    read = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    wasted = 0
    for node in nodes:
        target, value = _assignment(node)
        bare = isinstance(node, ast.Expr) and _is_call(node.value, name)
        wasted += bare or (_is_call(value, name) and target not in read)
    return wasted == sum(_is_call(node, name) for node in nodes)
