"""Static reachability: the definitions that one refers to, directly or through others.

Source files are parsed, never executed. A definition is a top-level statement of a module: a
class, a function or an assignment. It reaches every definition whose name it uses, in its own
module or in one that the module imports from. Not covered: names that are looked up at run time
(`getattr`, `importlib.import_module`); a package whose modules are loaded that way is given to
`reachable` as `whole` and is reached completely or not at all.
"""

import ast
import functools
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

__all__ = ["canonical", "reachable"]

Key: TypeAlias = tuple[str, str]
"""A module, and a name in it; an empty name stands for statements that bind no name."""

_UNUSED_FIELDS = frozenset({"ctx", "kind", "type_comment", "type_params", "type_ignores"})
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass
class _ParsedModule:
    """Top-level statements of a module.

    Attributes:
        statements: By the name that they bind, without docstrings and annotations of functions.
        effects: Statements that bind no name, such as calls.
        imports: For each imported name, the module, and the attribute of it or an empty string.
    """

    statements: dict[str, list[ast.stmt]] = field(default_factory=dict)
    effects: list[ast.stmt] = field(default_factory=list)
    imports: dict[str, Key] = field(default_factory=dict)


def reachable(
    module: str,
    name: str,
    *,
    packages: Sequence[str],
    whole: Sequence[str] = (),
    excluded: Sequence[str] = (),
) -> set[str]:
    """Return the canonical text of every definition that one reaches, its own included.

    Args:
        module: The module of the definition.
        name: Its name there.
        packages: Top-level packages whose modules are followed; others are taken as given.
        whole: Packages all of whose modules are reached as soon as one of them is.
        excluded: Modules and packages that are not followed.
    """
    texts: set[str] = set()
    seen: set[Key] = set()
    pending: list[Key] = [(module, name)]
    while pending:
        key = pending.pop()
        if key in seen or not _is_followed(key[0], packages, excluded):
            continue
        seen.add(key)
        if package := next((each for each in whole if _is_inside(key[0], each)), None):
            texts |= _package_texts(package)
            continue
        parsed = _module(key[0])
        if key[1] in parsed.imports and key[1] not in parsed.statements:
            pending.append(parsed.imports[key[1]])
            continue
        names = list(parsed.statements) if key[1] == "*" else [key[1]]
        bound = [statement for each in names for statement in parsed.statements.get(each, ())]
        for statement in [*parsed.effects, *bound]:
            texts.add(canonical(statement))
            pending += _used(statement, key[0], parsed)
    return texts


def canonical(node: object) -> str:
    """Return a text that is equal for equal syntax trees, in every version of Python."""
    if isinstance(node, list):
        return "[" + ",".join(map(canonical, node)) + "]"
    if isinstance(node, ast.Constant):
        return repr(node.value)
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = (
        f"{name}={canonical(value)}"
        for name, value in ast.iter_fields(node)
        if name not in _UNUSED_FIELDS and value is not None and value != []
    )
    return f"{type(node).__name__}({','.join(fields)})"


def _is_followed(module: str, packages: Sequence[str], excluded: Sequence[str]) -> bool:
    return any(_is_inside(module, each) for each in packages) and not any(
        _is_inside(module, each) for each in excluded
    )


def _is_inside(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


@functools.cache
def _module(name: str) -> _ParsedModule:
    path = _path(name)
    return _parse(path, name) if path else _ParsedModule()


@functools.cache
def _package_texts(package: str) -> set[str]:
    root = _path(package)
    if root is None:
        return set()
    modules = [_parse(path, package) for path in sorted(root.parent.rglob("*.py"))]
    statements = (
        statement
        for module in modules
        for group in [module.effects, *module.statements.values()]
        for statement in group
    )
    return set(map(canonical, statements))


def _path(name: str) -> Path | None:
    """Return the source file of a module, found below the file of its top-level package."""
    top, *rest = name.split(".")
    file = getattr(sys.modules.get(top), "__file__", None)
    if file is None:
        return None
    if not rest:
        return Path(file)
    base = Path(file).parent.joinpath(*rest)
    return next((p for p in (base.with_suffix(".py"), base / "__init__.py") if p.is_file()), None)


def _parse(path: Path, name: str) -> _ParsedModule:
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    tree = ast.parse(path.read_text(encoding="utf-8"))
    module = _ParsedModule(imports=dict(_imports(tree, package)))
    for statement in _without_docstring(tree.body):
        if isinstance(statement, ast.Import | ast.ImportFrom) or _is_for_typing(statement):
            continue
        bound = sorted(set(_bound(statement)))
        stripped = _Stripper().visit(statement)
        if bound == ["__all__"]:
            continue
        for each in bound:
            module.statements.setdefault(each, []).append(stripped)
        if not bound:
            module.effects.append(stripped)
    return module


def _imports(tree: ast.Module, package: str) -> Iterator[tuple[str, Key]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.split(".", maxsplit=1)[0]
                yield alias.asname or top, (alias.name if alias.asname else top, "*")
        elif isinstance(node, ast.ImportFrom):
            parents = package.split(".")
            base = ".".join(parents[: len(parents) - node.level + 1]) if node.level else ""
            source = ".".join(filter(None, [base, node.module]))
            for alias in node.names:
                inner = f"{source}.{alias.name}"
                key = (inner, "*") if _path(inner) else (source, alias.name)
                yield alias.asname or alias.name, key


def _bound(statement: ast.stmt) -> Iterator[str]:
    """Yield the names that a top-level statement binds."""
    if isinstance(statement, _Scope):
        yield statement.name
        return
    for node in ast.walk(statement):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, _Scope):
            yield node.name


def _used(statement: ast.stmt, name: str, module: _ParsedModule) -> Iterator[Key]:
    """Yield the definitions that a statement refers to."""
    attributes: set[int] = set()
    for node in ast.walk(statement):  # parents come before their children
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            source = module.imports.get(node.value.id)
            if source is not None and source[1] == "*":  # an attribute of an imported module
                attributes.add(id(node.value))
                inner = f"{source[0]}.{node.attr}"
                yield (inner, "*") if _path(inner) else (source[0], node.attr)
        elif isinstance(node, ast.Name) and id(node) not in attributes:
            if node.id in module.statements:
                yield name, node.id
            elif node.id in module.imports:
                yield module.imports[node.id]


def _is_for_typing(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.If) and ast.unparse(statement.test) == "TYPE_CHECKING"


def _without_docstring(body: Iterable[ast.stmt]) -> list[ast.stmt]:
    statements = list(body)
    first = statements[0] if statements else None
    is_docstring = (
        isinstance(first, ast.Expr)
        and isinstance(first.value, ast.Constant)
        and isinstance(first.value.value, str)
    )
    return statements[1:] if is_docstring else statements


class _Stripper(ast.NodeTransformer):
    """Removes what has no effect on results: docstrings, imports, annotations of functions."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return self._function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return self._function(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        self._strip_body(node)
        return node

    def _function(self, node: _Function) -> ast.AST:
        node.returns = None
        for argument in ast.walk(node.args):
            if isinstance(argument, ast.arg):
                argument.annotation = None
        for inner in ast.walk(node):
            if isinstance(inner, ast.AnnAssign):
                inner.annotation = ast.Constant(None)
        self._strip_body(node)
        return node

    def _strip_body(self, node: _Scope) -> None:
        node.body = _without_docstring(node.body)
        self.generic_visit(node)
        node.body = [s for s in node.body if not isinstance(s, ast.Import | ast.ImportFrom)]
        node.body = node.body or [ast.Pass()]
