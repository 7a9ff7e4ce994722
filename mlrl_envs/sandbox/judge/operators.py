"""Operators that the tests of a class use on its instances.

By default no operator is forwarded to the candidate, because an object that answers `len` or `[]`
could pass for the data that a test expects. Some tested classes are containers, though. An
operator that the tests apply to an instance that they created themselves must be defined by the
reference class, so it is allowed on such instances.
"""

import ast
from collections.abc import Iterator

__all__ = ["used_operators"]

CALLS = {"len": "__len__", "iter": "__iter__", "str": "__str__", "repr": "__repr__"}
METHODS = frozenset({*CALLS.values(), "__getitem__", "__setitem__", "__delitem__"})
SUBSCRIPTS = {ast.Load: "__getitem__", ast.Store: "__setitem__", ast.Del: "__delitem__"}


def used_operators(tests: str, entry_points: tuple[str, ...]) -> tuple[str, ...]:
    """Return the operators that the tests apply to instances that they create.

    Args:
        tests: Source of the tests.
        entry_points: Names that the tests take from the candidate. Only capitalised names count
            as classes, so that no result of a function gains an operator.
    """
    tree = ast.parse(tests)
    classes = {name for name in entry_points if name[:1].isupper()}
    made = {
        ast.unparse(target)
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and _makes(node.value, classes)
        for target in node.targets
    }
    found = (name for node in ast.walk(tree) for name in _operators(node, made))
    return tuple(sorted(set(found)))


def _makes(value: ast.expr, classes: set[str]) -> bool:
    return (
        isinstance(value, ast.Call)
        and isinstance(value.func, ast.Name)
        and value.func.id in classes
    )


def _operators(node: ast.AST, made: set[str]) -> Iterator[str]:
    """Yield the operators that a node applies to one of the created instances."""
    if isinstance(node, ast.Subscript):
        if ast.unparse(node.value) in made:
            yield SUBSCRIPTS[type(node.ctx)]
    elif isinstance(node, ast.Attribute):
        if node.attr in METHODS and ast.unparse(node.value) in made:
            yield node.attr
    elif isinstance(node, (ast.For, ast.comprehension)):
        if ast.unparse(node.iter) in made:
            yield "__iter__"
    elif isinstance(node, ast.Compare):
        if (
            isinstance(node.ops[0], (ast.In, ast.NotIn))
            and ast.unparse(node.comparators[0]) in made
        ):
            yield "__contains__"
    elif isinstance(node, ast.Call):
        yield from _called(node, made)


def _called(node: ast.Call, made: set[str]) -> Iterator[str]:
    """Yield the operators that `len(x)` and similar calls or `self.assertIn(item, x)` apply."""
    first, second = [*(ast.unparse(argument) for argument in node.args[:2]), "", ""][:2]
    called = node.func.id if isinstance(node.func, ast.Name) else ""
    method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    if called in CALLS and first in made:
        yield CALLS[called]
    if method in ("assertIn", "assertNotIn") and second in made:
        yield "__contains__"
