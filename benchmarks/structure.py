"""Structure of the code: the import graph, and figures computed from it.

    python -m benchmarks.structure [--json] [--root DIR] [--stop MODULE_PREFIX]

`tests/test_layers.py` checks the order of the packages on the same graph. Not covered: imports by
name at run time (`importlib.import_module`).
"""

import argparse
import ast
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

__all__ = ["Import", "Module", "closure", "cycles", "figures", "read_modules"]

PACKAGES = ("mlrl_envs", "mlrl_learners")
ROOT = Path(__file__).parents[1]
MAX_FILE_LINES, MAX_FUNCTION_LINES = 300, 40
READ_MODULE = "mlrl_learners.algorithms.magrpo"  # the method whose reading is measured

When = Literal["import", "use", "typing"]


@dataclass(frozen=True)
class Import:
    """One imported name.

    Attributes:
        name: Absolute: the imported module, followed by the imported attribute if there is one.
        when: `"import"` at import time, `"use"` inside a function, `"typing"` under TYPE_CHECKING.
    """

    name: str
    when: When


@dataclass(frozen=True)
class Module:
    """A source file.

    Attributes:
        name: Absolute module name; that of the package for `__init__.py`.
        path: Where it is.
        tree: Its syntax tree.
        lines: Number of lines.
        imports: What it imports, in order.
    """

    name: str
    path: Path
    tree: ast.Module
    lines: int
    imports: tuple[Import, ...]


def read_modules(root: Path, packages: Iterable[str] = PACKAGES) -> dict[str, Module]:
    """Return the modules of packages below `root` by name; templates of packages are left out."""
    modules = {}
    for package in packages:
        for path in sorted((root / package).rglob("*.py")):
            parts = path.relative_to(root).with_suffix("").parts
            if "templates" in parts:
                continue
            name = ".".join(parts).removesuffix(".__init__")
            source = path.read_text(encoding="utf-8")
            tree = ast.parse(source)
            imports = tuple(_imports(tree, name, path, "import"))
            modules[name] = Module(name, path, tree, source.count("\n"), imports)
    return modules


def edges(modules: dict[str, Module], *, typing: bool = False) -> dict[str, set[str]]:
    """Return for each module the modules of the same set that it imports."""
    graph: dict[str, set[str]] = {}
    for module in modules.values():
        found = (
            _resolved(each.name, modules)
            for each in module.imports
            if typing or each.when != "typing"
        )
        graph[module.name] = {name for name in found if name and name != module.name}
    return graph


def closure(graph: dict[str, set[str]], start: str, stop: str | None = None) -> set[str]:
    """Return the modules reached from `start`; those that begin with `stop` are not followed."""
    reached, pending = {start}, [start]
    while pending:
        name = pending.pop()
        if stop and name.startswith(stop):
            continue
        pending += (new := graph[name] - reached)
        reached |= new
    return reached


def cycles(graph: dict[str, set[str]]) -> list[set[str]]:
    """Return the strongly connected components of more than one module (Tarjan, 1972)."""
    reach = {name: closure(graph, name) - {name} for name in graph}
    found: list[set[str]] = []
    for name in graph:
        together = {other for other in reach[name] if name in reach[other]} | {name}
        if len(together) > 1 and together not in found:
            found.append(together)
    return found


def figures(modules: dict[str, Module], stop: str | None = None) -> dict[str, int]:
    """Return counts of modules, packages, imports and sizes."""
    graph = edges(modules)
    reach = closure(graph, READ_MODULE, stop) if READ_MODULE in graph else set()
    read = {name for name in reach if name.startswith("mlrl_learners.")}
    stems = Counter((m.name.split(".")[0], m.path.stem) for m in modules.values())
    loose = Counter(
        m.name.split(".")[0] for m in modules.values() if m.path.parent.name in PACKAGES
    )
    importers = Counter(name for targets in graph.values() for name in targets)
    functions = [
        node
        for m in modules.values()
        for node in ast.walk(m.tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    pairs = {(_package(a), _package(b)) for a, targets in graph.items() for b in targets}
    return {
        "modules": len(modules),
        "packages": sum(m.path.name == "__init__.py" for m in modules.values()),
        "imports between modules": sum(map(len, graph.values())),
        "imports between packages": sum(a != b for a, b in pairs),
        "import cycles": len(cycles(graph)),
        "modules at the top of mlrl_envs": loose["mlrl_envs"],
        "modules at the top of mlrl_learners": loose["mlrl_learners"],
        "modules with one importer": sum(count == 1 for count in importers.values()),
        "file stems that occur twice": sum(
            count > 1 for (_, stem), count in stems.items() if stem != "__init__"
        ),
        "public class names that occur twice": len(repeated_classes(modules)),
        "modules to read MAGRPO": len(read),
        "lines to read MAGRPO": sum(modules[name].lines for name in read),
        f"files over {MAX_FILE_LINES} lines": sum(
            m.lines > MAX_FILE_LINES for m in modules.values()
        ),
        f"functions over {MAX_FUNCTION_LINES} lines": sum(
            (node.end_lineno or 0) - node.lineno >= MAX_FUNCTION_LINES for node in functions
        ),
        "repeated functions": len(repeated_functions(modules)),
        "lines": sum(m.lines for m in modules.values()),
    }


def repeated_classes(modules: dict[str, Module]) -> dict[str, list[str]]:
    """Return the modules of each public class name that is defined more than once."""
    found: dict[str, list[str]] = {}
    for module in modules.values():
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found.setdefault(node.name, []).append(module.name)
    return {name: where for name, where in found.items() if len(where) > 1}


def repeated_functions(modules: dict[str, Module]) -> list[list[str]]:
    """Return functions and methods of equal signature and body; docstrings and names apart."""
    found: dict[str, list[str]] = {}
    for module in modules.values():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.FunctionDef):
                body = node.body[1:] if ast.get_docstring(node) else node.body
                if body and not _is_ellipsis(body[0]):
                    key = "\n".join([ast.dump(node.args), *map(ast.dump, body)])
                    found.setdefault(key, []).append(f"{module.name}:{node.name}")
    return [names for names in found.values() if len(names) > 1]


def _is_ellipsis(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _package(module: str) -> str:
    """Return the first two components of a module's name."""
    return ".".join(module.split(".")[:2])


def _resolved(name: str, modules: dict[str, Module]) -> str:
    """Return the module that an imported name belongs to; empty for other packages."""
    while name and name not in modules:
        name = name.rpartition(".")[0]
    return name


def _imports(node: ast.AST, module: str, path: Path, when: When) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        inner = when
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            inner = "use" if when == "import" else when
        elif isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            inner = "typing"
        if isinstance(child, ast.Import):
            yield from (Import(alias.name, when) for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            base = _absolute(child, module, path)
            yield from (Import(f"{base}.{alias.name}", when) for alias in child.names)
        yield from _imports(child, module, path, inner)


def _absolute(node: ast.ImportFrom, module: str, path: Path) -> str:
    if not node.level:
        return node.module or ""
    package = module.split(".") if path.name == "__init__.py" else module.split(".")[:-1]
    return ".".join([*package[: len(package) - node.level + 1], *filter(None, [node.module])])


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--root", type=Path, default=ROOT, help="another checkout to measure")
    parser.add_argument(
        "--stop",
        default="mlrl_learners.engine.",
        help="modules behind an interface, which a reader of a method need not open",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    found = figures(read_modules(arguments.root), arguments.stop)
    if arguments.json:
        print(json.dumps(found))
        return
    width = max(map(len, found))
    for name, value in found.items():
        print(f"{name:{width}}  {value:>7,}")


if __name__ == "__main__":
    main()
