"""Methods that code sets at run time, found in its syntax tree.

Found are assignments to an attribute, `setattr`, changes of a `__dict__`, and texts of code that
uses `exec` or `eval`. Code that may set any attribute, because it does not spell the name or sets
a special attribute such as `__class__`, sets all. Not found are a namespace that code passes on,
and a text for `exec` that it puts together.
"""

import ast
import re
from collections.abc import Iterable, Sequence, Set

__all__ = ["overridden"]

_SETTERS = {"setattr": -2, "__setattr__": -2, "delattr": -1, "__delattr__": -1}  # place of the name
_CHANGES = frozenset({"clear", "ior", "pop", "popitem", "setdefault", "setitem", "update"})
_IN_TEXT = frozenset({*_SETTERS, "__class__", "__code__", "__dict__"})
_SPECIAL = re.compile(r"__(?!annotations|doc|module|name|qualname|wrapped)\w+__")
_WORD = re.compile(r"\w+")


def overridden(statements: Iterable[ast.stmt], names: Set[str]) -> set[str]:
    """Return those of the names that code may set as an attribute when it runs.

    Args:
        statements: The code.
        names: Names of methods; `size.setter` is an accessor of the property `size`, which
            `self.size = 1` calls.
    """
    nodes = [node for statement in statements for node in ast.walk(statement)]
    properties = {name.partition(".")[0] for name in names if "." in name}
    called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    targets: set[str | None] = {
        None for node in nodes if _is_setter(node) and id(node) not in called
    }
    targets |= {target for node in nodes for target in _targets(node, properties)}
    if any(getattr(node, "id", "") in ("exec", "eval") for node in nodes):
        targets |= _in_texts(nodes)
    if any(target is None or _SPECIAL.fullmatch(target) for target in targets):
        return set(names)
    return {name for name in names if name.partition(".")[0] in targets}


def _targets(node: ast.AST, properties: Set[str]) -> Sequence[str | None]:
    """Return the attributes that a node sets, with None for any."""
    if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
        calls_setter = node.attr in properties and getattr(node.value, "id", "") == "self"
        return () if calls_setter else [node.attr]
    if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
        return [_text(node.slice)] if _is_namespace(node.value) else ()
    if isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr):
        return [None] if node.value is not None and _is_namespace(node.value) else ()
    return _set_by_call(node) if isinstance(node, ast.Call) else ()


def _set_by_call(node: ast.Call) -> Sequence[str | None]:
    if _is_setter(node.func):
        place = _SETTERS[_name(node.func)]
        return [_text(node.args[place])] if len(node.args) >= -place else [None]
    owner = [node.func.value] if isinstance(node.func, ast.Attribute) else []
    changes = _name(node.func).strip("_") in _CHANGES
    return [None] if changes and any(map(_is_namespace, [*owner, *node.args])) else ()


def _in_texts(nodes: Sequence[ast.AST]) -> set[str | None]:
    """Return the words of all texts but docstrings, with None if they may set any attribute."""
    alone = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    texts = [_text(node) or "" for node in nodes if id(node) not in alone]
    words = {word for text in texts for word in _WORD.findall(text)}
    return {None} if words & _IN_TEXT else {word for word in words if not _SPECIAL.fullmatch(word)}


def _name(node: ast.AST) -> str:
    return str(getattr(node, "id", getattr(node, "attr", "")))


def _is_setter(node: ast.AST) -> bool:
    if isinstance(node, ast.alias):
        return node.name in _SETTERS or "mock" in node.name.split(".")
    return _name(node) in _SETTERS


def _is_namespace(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        return _name(node.func) in ("globals", "locals", "vars")
    return _name(node) == "__dict__"


def _text(node: ast.AST) -> str | None:
    value = node.value if isinstance(node, ast.Constant) else None
    return value if isinstance(value, str) else None
