"""Tests written by agents: assertions about one function with literal arguments and results.

Tests run outside of the jail of untrusted programs. Only assertions on literals are accepted, which
execute nothing but the function under test: `assert f(1, [2]) == 3`, `assert f(x=1)`,
`assert not f(1)`, `assert f(1) is None`.
"""

import ast
from collections.abc import Iterator, Sequence
from typing import Any

from mlrl_envs.parsing.code_blocks import BYTE_ORDER_MARK, code_blocks
from mlrl_envs.parsing.text import parse_code

__all__ = ["literal_tests", "novel_tests"]

MAX_TEST_CHARS = 400
MAX_TEXT_CHARS = 20_000
_CONTAINERS = frozenset({list, tuple, set, dict, str, bytes})


def literal_tests(text: str, name: str, limit: int) -> tuple[str, ...]:
    """Return the first accepted assertions of an answer, each once, in a normal form.

    Args:
        text: Any text; fenced code counts, without it the lines that begin with `assert`.
        name: The function under test.
        limit: The largest number of assertions.
    """
    text = text[:MAX_TEXT_CHARS].removeprefix(BYTE_ORDER_MARK)
    found: dict[str, None] = {}
    for block in code_blocks(text) or [text]:
        for node in _assertions(block):
            if len(found) < limit and _is_accepted(node.test, name):
                test = ast.unparse(ast.Assert(node.test))
                if len(test) <= MAX_TEST_CHARS:
                    found[test] = None
    return tuple(found)


def novel_tests(
    tests: Sequence[str], shown: Sequence[str], solution: str, name: str
) -> tuple[str, ...]:
    """Return the tests whose arguments no shown test has, whatever their expected results.

    Arguments are equal as Python values (`f(2)`, `f(x=2)` and `f(2.0)` have the same), and alike in
    containers of other types (`f([2])`, `f((2,))`, `f({2: 0})`), so that a shown test that is
    written in another form is not novel.

    Args:
        tests: Results of `literal_tests`.
        shown: Any assertions, in which calls with literal arguments are looked for.
        solution: Code that defines the function, for the names of its parameters.
        name: The function under test.
    """
    names = _parameters(solution, name)
    trees = [parse_code(test).tree for test in shown]
    known = [call for tree in trees if tree for call in _calls(tree, name, names)]
    return tuple(
        test
        for test in tests
        if not any(
            _alike(call, each) for call in _calls(ast.parse(test), name, names) for each in known
        )
    )


def _alike(one: Any, other: Any) -> bool:  # noqa: ANN401  values of literals
    """Return whether two values are equal, or have the same items in containers of any types."""
    kinds = {type(one), type(other)}
    if one == other or not kinds <= _CONTAINERS or kinds == {str}:
        return bool(one == other)
    if kinds == {dict}:
        return one.keys() == other.keys() and all(_alike(one[key], other[key]) for key in one)
    if len(one) != len(other):
        return False
    if set in kinds:  # in any order
        return all(any(_alike(item, each) for each in other) for item in one)
    return all(map(_alike, one, other))


def _parameters(solution: str, name: str) -> list[str]:
    tree = parse_code(solution).tree
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.FunctionDef) and node.name == name:
            return [each.arg for each in (*node.args.posonlyargs, *node.args.args)]
    return []


def _calls(tree: ast.AST, name: str, names: Sequence[str]) -> Iterator[dict[object, Any]]:
    """Yield the arguments of calls with literals, by parameter, or by place if it is unknown."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _is_call(node, name):
            places = enumerate(node.args)
            found: dict[object, Any] = {
                names[i] if i < len(names) else i: ast.literal_eval(each) for i, each in places
            }
            yield found | {each.arg: ast.literal_eval(each.value) for each in node.keywords}


def _assertions(code: str) -> list[ast.Assert]:
    """Return the assert statements of code, or of its lines if it does not parse."""
    tree = parse_code(code).tree
    if tree is not None:
        return [node for node in ast.walk(tree) if isinstance(node, ast.Assert)]
    lines = [line.strip() for line in code.splitlines() if line.strip().startswith("assert ")]
    trees = [parse_code(line).tree for line in lines if len(line) <= MAX_TEST_CHARS]
    return [node for tree in trees if tree for node in tree.body if isinstance(node, ast.Assert)]


def _is_accepted(test: ast.expr, name: str) -> bool:
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _is_call(test.operand, name)
    if not isinstance(test, ast.Compare):
        return _is_call(test, name)
    if len(test.ops) != 1 or not _is_call(test.left, name):
        return False
    (operator,), (result,) = test.ops, test.comparators
    if isinstance(operator, ast.Is):
        return isinstance(result, ast.Constant) and isinstance(result.value, bool | None)
    return isinstance(operator, ast.Eq) and _is_literal(result)


def _is_call(node: ast.expr, name: str) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == name
        and all(map(_is_literal, node.args))
        and all(each.arg is not None and _is_literal(each.value) for each in node.keywords)
    )


def _is_literal(node: ast.expr) -> bool:
    try:
        ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return False
    return True
