"""Detection of functions that only pass on and repack their arguments, on syntax trees.

The returned values are traced back through names, loops, inner functions and the answer's own
helpers. If they consist only of parameters, constants, displays, subscripts, unary operators,
conversions and calls of teammates' functions, the function does no work of its own. Arithmetic,
comparisons, filters, other calls, and loops that make decisions are work. Not detected: arithmetic
without effect (`+ 0`), and encodings that take work to undo (a joined text).
"""

import ast
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet

from mlrl_envs.parsing.text import FunctionNode
from mlrl_envs.programs.assembly import FunctionAnswer

__all__ = ["only_repacks"]

_CONVERTERS = frozenset(
    (
        *("list", "tuple", "set", "frozenset", "dict", "str", "repr", "ascii", "bytes"),
        *("bytearray", "memoryview", "iter", "next", "reversed", "map", "object", "print"),
        *("append", "extend", "insert", "add", "update", "items", "keys", "values", "get", "pop"),
        *("copy", "deepcopy", "encode", "decode", "literal_eval", "loads", "dumps", "partial"),
        *("namedtuple", "SimpleNamespace"),
    )
)
# No work on the result of a teammate, but possibly on a parameter (the digits of a number).
_CASTS = frozenset(("int", "float", "bool", "complex", "isinstance"))
_PLAIN = (
    *(ast.Constant, ast.Tuple, ast.List, ast.Set, ast.Dict, ast.Starred, ast.keyword, ast.Slice),
    *(ast.UnaryOp, ast.unaryop, ast.BoolOp, ast.boolop, ast.IfExp, ast.NamedExpr),
    *(ast.Lambda, ast.arguments, ast.arg, ast.JoinedStr, ast.FormattedValue, ast.expr_context),
    *(ast.Yield, ast.YieldFrom, ast.Await, ast.comprehension, ast.Expr),
)
_Comprehension = ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp
_Row = ast.Tuple | ast.List
_Loop = ast.For | ast.AsyncFor | ast.While
_Scope = FunctionNode | ast.ClassDef | ast.Lambda
_BUILT_IN = (str, bytes, int, float, complex, list, tuple, dict, set, range)
# Placeholder for a value that is the result of work.
_WORK = ast.Add()


def only_repacks(answer: FunctionAnswer, helpers: AbstractSet[str] = frozenset()) -> bool:
    """Return whether the function of an answer does no work of its own.

    Args:
        answer: The answer; without a function it does no work.
        helpers: Functions of teammates that it may call.
    """
    return answer.function is None or _Reader(answer, helpers).only_repacks(answer.function)


class _Reader:
    """The values that each name of an answer may be bound to."""

    def __init__(self, answer: FunctionAnswer, helpers: AbstractSet[str]) -> None:
        self._helpers = helpers
        self._made_of: dict[str, list[ast.AST]] = {}
        nodes = [node for statement in answer.statements for node in ast.walk(statement)]
        loops = [node for node in nodes if isinstance(node, _Loop) and self._decides(node)]
        self._decided = {id(node) for loop in loops for node in ast.walk(loop)}
        for node in nodes:
            for name, value in _bindings(node):
                made_of = self._made_of.setdefault(name, [])
                made_of += [_WORK if id(node) in self._decided else value] if value else []
        given = {name for name, made_of in self._made_of.items() if not made_of}
        for node in nodes:
            for name in _changed(node) & self._made_of.keys():
                self._made_of[name].append(_WORK if id(node) in self._decided else node)
        self._answers = self._made_from(helpers)
        self._varying = self._made_from(given | helpers)

    def only_repacks(self, function: FunctionNode) -> bool:
        values, tests = self._returned(function), _tests(function)
        if not values:
            return True
        # Conditions around a single answer decide nothing, unless they read it.
        if len({ast.dump(value) for value in values if self._reads_answer(value)}) == 1:
            tests = [test for test in tests if self._reads_answer(test)]
        return all(self._hands_on(node) for node in self._reach([*values, *tests]))

    def _made_from(self, names: Iterable[str]) -> set[str]:
        """Return these names and all names whose values depend on them."""
        bound: dict[ast.AST, list[str]] = {}
        for user, made_of in self._made_of.items():
            for value in made_of:
                bound.setdefault(value, []).append(user)
        users: dict[str, list[str]] = {}
        for value, targets in bound.items():
            for name in _names(value):
                users.setdefault(name, []).extend(targets)
        found, pending = set(names), list(names)
        while pending:
            new = set(users.get(pending.pop(), ())) - found
            found |= new
            pending += new
        return found

    def _reach(self, roots: Iterable[ast.AST]) -> Iterator[ast.AST]:
        """Yield every node that the roots depend on, through names and inner functions."""
        pending, seen = list(roots), set[ast.AST | str]()
        while pending:
            node = pending.pop()
            if node in seen:
                continue
            seen.add(node)
            if isinstance(node, FunctionNode):
                pending += [*self._returned(node), *_tests(node)]
                continue
            yield node
            pending += ast.iter_child_nodes(node)
            if isinstance(node, ast.Name) and node.id not in seen:
                seen.add(node.id)
                pending += self._made_of.get(node.id, [])

    def _hands_on(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Name):
            return node.id in self._made_of or self._is_converter(node.id)
        if isinstance(node, ast.Attribute | ast.Subscript):
            return self._takes_out(node)
        if isinstance(node, _Comprehension):
            filters = any(generator.ifs for generator in node.generators)
            items = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
            return not filters and not self._maps(items, [g.iter for g in node.generators])
        if isinstance(node, ast.Call):
            mapped = isinstance(node.func, ast.Name) and node.func.id == "map"
            return not mapped or not self._maps(node.args[:1], node.args[1:])
        if isinstance(node, ast.Compare):
            return all(isinstance(operator, ast.Is | ast.IsNot) for operator in node.ops)
        return isinstance(node, (*_PLAIN, ast.Is, ast.IsNot))

    def _takes_out(self, node: ast.Attribute | ast.Subscript) -> bool:
        if isinstance(node, ast.Attribute):
            own = not any(hasattr(kind, node.attr) for kind in _BUILT_IN)
            known = node.attr in _CONVERTERS and self._varies(node.value)
            return known or (own and self._reads_answer(node.value))
        # A lookup in a table is work.
        return self._varies(node.value) or not self._varies(node.slice)

    def _is_converter(self, name: str) -> bool:
        casts = _CASTS if self._helpers else frozenset[str]()
        return name in _CONVERTERS or name in casts or name in self._helpers

    def _maps(self, parts: Iterable[ast.AST], over: Iterable[ast.AST]) -> bool:
        # Calling a teammate for each item shares work, unless the items are a literal sequence.
        asks = any(self._helpers & _names(part) for part in parts)
        return asks and not any(isinstance(items, ast.Tuple | ast.List | ast.Set) for items in over)

    def _decides(self, loop: _Loop) -> bool:
        if isinstance(loop, ast.While):
            lasting = isinstance(loop.test, ast.Constant)
            return not lasting or any(isinstance(node, ast.If) for node in ast.walk(loop))
        deciding = any(isinstance(node, ast.If | ast.While) for node in ast.walk(loop))
        return deciding or self._maps(loop.body, [loop.iter])

    def _reads_answer(self, node: ast.AST) -> bool:
        return not self._answers.isdisjoint(_names(node))

    def _varies(self, node: ast.AST) -> bool:
        return not self._varying.isdisjoint(_names(node))

    def _returned(self, function: FunctionNode) -> list[ast.AST]:
        found = [
            _WORK if id(node) in self._decided else node.value
            for node in _own_nodes(function)
            if isinstance(node, ast.Return | ast.Yield | ast.YieldFrom) and node.value
        ]
        return [choice for value in found for choice in _choices(value)]


def _bindings(node: ast.AST) -> Iterator[tuple[str, ast.AST | None]]:
    """Yield the names that a node binds or may change, each with the value it depends on."""
    if isinstance(node, FunctionNode):
        yield node.name, node
    elif isinstance(node, ast.ClassDef):
        yield node.name, _WORK  # Classes are not followed, because they may do any work.
    elif isinstance(node, ast.arg):
        yield node.arg, None
    elif isinstance(node, ast.Import | ast.ImportFrom):
        for alias in node.names:
            known = isinstance(node, ast.Import) or alias.name in _CONVERTERS
            yield (alias.asname or alias.name).split(".")[0], None if known else _WORK
    else:
        yield from _assignments(node)


def _assignments(node: ast.AST) -> Iterator[tuple[str, ast.AST | None]]:
    if isinstance(node, ast.Assign):
        for target in node.targets:
            yield from _parts(target, node.value)
    elif isinstance(node, ast.AnnAssign | ast.NamedExpr):
        yield from _parts(node.target, node.value)
    elif isinstance(node, ast.AugAssign):
        yield from _parts(node.target, _WORK)
    elif isinstance(node, ast.For | ast.AsyncFor | ast.comprehension):
        yield from _parts(node.target, node.iter)
    elif isinstance(node, ast.withitem) and node.optional_vars:
        yield from _parts(node.optional_vars, node.context_expr)


def _changed(node: ast.AST) -> set[str]:
    # An expression statement may change the values that it uses: `out.append(n * 2)`.
    return _names(node) if isinstance(node, ast.Expr) else set()


def _parts(target: ast.AST, value: ast.AST | None) -> Iterator[tuple[str, ast.AST | None]]:
    if isinstance(target, _Row) and isinstance(value, _Row) and len(target.elts) == len(value.elts):
        for part, made_of in zip(target.elts, value.elts, strict=True):
            yield from _parts(part, made_of)
        return
    keys = [node.slice for node in ast.walk(target) if isinstance(node, ast.Subscript)]
    for name in _names(target):
        yield name, value
        yield from ((name, key) for key in keys)


def _names(node: ast.AST) -> set[str]:
    return {name.id for name in ast.walk(node) if isinstance(name, ast.Name)}


def _own_nodes(function: FunctionNode) -> Iterator[ast.AST]:
    pending: list[ast.AST] = list(function.body)
    while pending:
        node = pending.pop()
        yield node
        if not isinstance(node, _Scope):
            pending += ast.iter_child_nodes(node)


def _tests(function: FunctionNode) -> list[ast.AST]:
    nodes = list(_own_nodes(function))
    tests: list[ast.AST] = [n.test for n in nodes if isinstance(n, ast.If | ast.IfExp)]
    return tests + [_WORK for node in nodes if isinstance(node, ast.Match)]


def _choices(value: ast.AST) -> Iterator[ast.AST]:
    pending = [value]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.IfExp):
            pending += [node.body, node.orelse]
        else:
            yield node
