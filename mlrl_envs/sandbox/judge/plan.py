"""Compilation of the trusted tests: one record per assertion, and the expected number of records.

Every assertion is wrapped in a context manager that writes a record and suppresses the exception
of a failed assertion, so that the next one still runs. A `try` or `with` statement that contains
assertions is wrapped as a whole and gives one record. Assertions of a constant
(`assert True, "..."`) check nothing and give no record.
"""

import ast
import sys
from dataclasses import dataclass
from types import CodeType
from typing import Any

from mlrl_envs.sandbox.judge.operators import used_operators

__all__ = ["CONTEXTS", "Plan", "free_names", "make_plan"]

CONTEXTS = "__mlrl_tests__"  # name of the list of context managers in the namespace of the tests
MAX_EXPECTED = 10_000


@dataclass(frozen=True)
class Plan:
    """Compiled tests of a program.

    Attributes:
        helpers: Compiled helpers.
        tests: Compiled tests, each assertion wrapped in its context.
        operators: Operators that the tests may use on instances of the candidate's classes.
        names: For each context, the source expression of its assertion.
        expected: Indices of the contexts in the order in which they will run, or None if the
            order is not known before the run.
    """

    helpers: CodeType
    tests: CodeType
    operators: tuple[str, ...]
    names: tuple[str, ...]
    expected: tuple[int, ...] | None


def make_plan(tests: str, helpers: str, style: str, entry_points: tuple[str, ...] = ()) -> Plan:
    """Compile tests and helpers, and count the assertions that will run."""
    operators = used_operators(tests, entry_points) if style == "unittest" else ()
    tree = ast.parse(tests)
    names: list[str] = []
    expected: list[int] | None
    if style == "unittest":
        expected = None
    else:
        scope = tree if style == "asserts" else _check_function(tree)
        scope.body = _Instrumenter(tests, names).instrument(scope.body)
        expected = _count(scope.body)
    ast.fix_missing_locations(tree)
    helpers += _missing_imports(tests, helpers)
    return Plan(
        helpers=compile(helpers, "<helpers>", "exec", dont_inherit=True),
        tests=compile(tree, "<tests>", "exec", dont_inherit=True),
        operators=operators,
        names=tuple(names),
        expected=None if expected is None else tuple(expected),
    )


def _missing_imports(tests: str, helpers: str) -> str:
    """Return import statements for standard modules that the tests use but do not import.

    Some tests rely on an import in the reference solution (MBPP 596 reads `sys`).
    """
    wanted = free_names(ast.parse(helpers + "\n" + tests))
    modules = [name for name in wanted if name in sys.stdlib_module_names]
    return "".join(f"\nimport {name}" for name in modules)


def free_names(tree: ast.Module) -> list[str]:
    """Return the names that a module reads but never binds, in order of appearance."""
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    bound = {node.id for node in names if isinstance(node.ctx, ast.Store)}
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            bound.add(node.name)
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
        elif isinstance(node, ast.alias):
            bound.add((node.asname or node.name).split(".")[0])
    reads = [node.id for node in names if isinstance(node.ctx, ast.Load)]
    return [name for name in dict.fromkeys(reads) if name not in bound]


def _check_function(tree: ast.Module) -> ast.FunctionDef:
    """Return the last definition of `check`, which overrides earlier ones."""
    found = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    return [node for node in found if node.name == "check"][-1]


def _is_constant(node: ast.Assert) -> bool:
    return isinstance(node.test, ast.Constant)


def _holds_assertion(node: ast.AST) -> bool:
    return any(isinstance(item, ast.Assert) and not _is_constant(item) for item in ast.walk(node))


class _Instrumenter:
    """Wraps each assertion, and each `try` or `with` with assertions, in a context."""

    def __init__(self, source: str, names: list[str]) -> None:
        self._source = source
        self._names = names

    def instrument(self, body: list[ast.stmt]) -> list[ast.stmt]:
        return [self._statement(node) for node in body]

    def _statement(self, node: ast.stmt) -> ast.stmt:
        if isinstance(node, ast.Assert):
            return node if _is_constant(node) else self._wrap(node, node.test)
        if isinstance(node, (ast.Try, ast.With)):
            return self._wrap(node, node) if _holds_assertion(node) else node
        for field in ("body", "orelse"):
            inner = getattr(node, field, None)
            if isinstance(inner, list) and not isinstance(node, ast.ClassDef):
                setattr(node, field, self.instrument(inner))
        return node

    def _wrap(self, node: ast.stmt, named: ast.AST) -> ast.With:
        index = len(self._names)
        text = ast.get_source_segment(self._source, named) or ast.unparse(named)
        self._names.append(" ".join(text.split()) if "\n" in text else text)
        context = ast.Subscript(
            value=ast.Name(id=CONTEXTS, ctx=ast.Load()),
            slice=ast.Constant(value=index),
            ctx=ast.Load(),
        )
        wrapped = ast.With(items=[ast.withitem(context_expr=context)], body=[node])
        return ast.copy_location(wrapped, node)


def _index_of(node: ast.stmt) -> int | None:
    """Return the index of a context that `_Instrumenter` added, None for any other statement."""
    if not isinstance(node, ast.With):
        return None
    expression: Any = node.items[0].context_expr
    if not isinstance(expression, ast.Subscript) or not isinstance(expression.value, ast.Name):
        return None
    index: Any = expression.slice
    return int(index.value) if expression.value.id == CONTEXTS else None


def _count(body: list[ast.stmt]) -> list[int] | None:
    """Return the contexts that a body will run, in order; None if they cannot be determined."""
    indices: list[int] = []
    for node in body:
        index = _index_of(node)
        if index is not None:
            indices.append(index)
            continue
        if isinstance(node, (ast.Return, ast.Break, ast.Continue, ast.Raise)):
            return indices
        inside = _count_inside(node)
        if inside is None or len(indices) + len(inside) > MAX_EXPECTED:
            return None
        indices += inside
    return indices


def _count_inside(node: ast.stmt) -> list[int] | None:
    if not any(
        _index_of(item) is not None for item in ast.walk(node) if isinstance(item, ast.stmt)
    ):
        leaves = any(isinstance(item, (ast.Return, ast.Break)) for item in _own_statements(node))
        return None if leaves else []
    if not isinstance(node, ast.For) or node.orelse:
        return None
    rounds = _rounds(node.iter)
    jumps = (ast.Return, ast.Break, ast.Continue)
    if rounds is None or any(isinstance(item, jumps) for item in ast.walk(node)):
        return None
    once = _count(node.body)
    return None if once is None or rounds * len(once) > MAX_EXPECTED else once * rounds


def _own_statements(node: ast.stmt) -> list[ast.AST]:
    """Return the nodes of a statement, except those inside functions and classes it defines."""
    if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)):
        return []
    return [node, *(part for child in ast.iter_child_nodes(node) for part in _parts(child))]


def _parts(node: ast.AST) -> list[ast.AST]:
    if isinstance(node, ast.stmt):
        return _own_statements(node)
    return [node]


def _rounds(iterable: ast.expr) -> int | None:
    """Return the number of iterations of a loop over a literal or `range`, else None."""
    if isinstance(iterable, (ast.List, ast.Tuple)):
        starred = any(isinstance(item, ast.Starred) for item in iterable.elts)
        return None if starred else len(iterable.elts)
    if not isinstance(iterable, ast.Call) or not isinstance(iterable.func, ast.Name):
        return None
    numbers = [_literal(item) for item in iterable.args]
    if iterable.func.id != "range" or iterable.keywords or not 1 <= len(numbers) <= 3:
        return None
    if None in numbers or 0 in numbers[2:]:
        return None
    return len(range(*[number for number in numbers if number is not None]))


def _literal(node: ast.expr) -> int | None:
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError):
        return None
    return value if isinstance(value, int) else None
