"""Reference page of all modules, from the first lines of their docstrings."""

import ast
from collections.abc import Iterator
from pathlib import Path

from reference_markdown import table

__all__ = ["modules_page", "summaries"]

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("mlrl_envs", "mlrl_learners", "benchmarks")


def modules_page() -> str:
    """Return a page with one table per folder: each module and the first line of its docstring."""
    parts = ["# Modules"]
    for folder in _folders():
        rows = [(f"`{name}`", line) for name, line in summaries(folder).items()]
        name = folder.relative_to(ROOT).as_posix()
        parts += [f"## {name}", _first_line(folder / "__init__.py")]
        parts += [table(("module", "contents"), rows)] if rows else []
    return "\n\n".join(part for part in parts if part) + "\n"


def summaries(folder: Path) -> dict[str, str]:
    """Return the first docstring line of each module in a folder, by file name."""
    return {
        path.name: _first_line(path)
        for path in sorted(folder.glob("*.py"))
        if path.name != "__init__.py"
    }


def _folders() -> Iterator[Path]:
    for package in PACKAGES:
        folders = {path.parent for path in (ROOT / package).rglob("*.py")}
        yield from sorted(folder for folder in folders if "templates" not in folder.parts)


def _first_line(path: Path) -> str:
    if not path.exists():
        return ""
    docstring = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
    return docstring.split("\n", 1)[0]
