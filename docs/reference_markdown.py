"""Conversion of docstrings and dataclasses to Markdown for the reference pages."""

import dataclasses
import re
from collections.abc import Iterable
from typing import Any

from mlrl_learners.config.groups import field_docs

__all__ = ["docstring_as_markdown", "fenced", "options_table", "table"]

SECTIONS = ("Args", "Attributes", "Returns", "Raises", "Yields", "Version history")


def docstring_as_markdown(docstring: str) -> str:
    """Convert the sections of a Google-style docstring to Markdown lists."""
    lines: list[str] = []
    section = ""
    for line in docstring.splitlines():
        heading = line.strip().removesuffix(":")
        if line.endswith(":") and not line.startswith(" ") and heading in SECTIONS:
            section = heading
            lines += ["", f"**{section}**", ""]
        elif section and line.strip():
            lines.append(_section_line(line))
        else:
            section = section if line.startswith(" ") else ""
            lines.append(line)
    return "\n".join(lines).strip()


def _section_line(line: str) -> str:
    item = re.match(r" {4}([\w*.]+|None)(?: \(.*\))?: (.*)", line)
    if item:
        return f"- `{item[1]}`: {item[2]}"
    return "  " + line.strip() if line.startswith(" " * 8) else line.strip()


def options_table(kind: type, prefix: str = "") -> str:
    """Return a table of the fields of a dataclass with defaults and descriptions."""
    meanings = field_docs(kind)
    rows = []
    for item in dataclasses.fields(kind):
        default = _default(item)
        rows.append((f"`{prefix}{item.name}`", default, meanings.get(item.name, "")))
    return table(("name", "default", "meaning"), rows)


def _default(item: "dataclasses.Field[Any]") -> str:
    if item.default is not dataclasses.MISSING:
        return f"`{item.default!r}`"
    if item.default_factory is not dataclasses.MISSING:
        return f"`{item.default_factory()!r}`"
    return "required"


def table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a Markdown table."""
    lines = [list(header)]
    lines.append(["---"] * len(lines[0]))
    lines += [[cell.replace("|", "\\|") for cell in row] for row in rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def fenced(text: str, language: str = "text") -> str:
    """Return text as a code block whose fence is longer than any fence in it."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"
