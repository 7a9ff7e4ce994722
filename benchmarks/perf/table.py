"""The table of `docs/performance.md`, made from `results/*.json` and from nothing else."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ["table", "write_page"]

BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"
INTRODUCTION = """# Performance

Every figure comes from `benchmarks/perf/`: both sides in one run, taking turns, on the same work;
medians, with the least and the most in brackets. A ratio above 1 is in our favour.
`load` is how many other programs shared the cores just before: beside them, seconds say little and
only ratios and processor time carry over.
`make perf` measures all of them again, `python -m benchmarks.perf NAME ...` some, and `--list`
names them with the minutes they take.
The exact work, versions and every single measurement are in `benchmarks/perf/results/`.
"""


def write_page(results: Path, page: Path) -> None:
    """Put the tables between the page's markers; the words around them stay."""
    files = sorted(results.glob("*.json"))
    tables = "\n\n".join(table(path.stem, json.loads(path.read_text())) for path in files)
    text = page.read_text() if page.exists() else f"{INTRODUCTION}\n{BEGIN}\n{END}\n"
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    page.parent.mkdir(exist_ok=True)
    page.write_text(f"{head}{BEGIN}\n{tables}\n{END}{tail}")


def table(machine: str, figures: Mapping[str, Any]) -> str:
    """Return one machine's figures as a Markdown table."""
    lines = [f"## {machine}", ""]
    for facts in [figure["hardware"] for figure in figures.values() if "hardware" in figure][:1]:
        memory = f"{facts['memory_gib']} GiB"
        lines += [
            f"{facts['processor']}, {facts['cores']} cores, {memory}, {facts['system']}.",
            "",
        ]
    lines += ["| work | figure | ours | peer | ratio | load |", "|---|---|---|---|---|---|"]
    for figure in figures.values():
        load = figure.get("hardware", {}).get("load_before", "")
        lines += [f"{_line(figure['title'], row)} {load} |" for row in figure["rows"]]
    return "\n".join(lines)


def _line(title: str, row: Mapping[str, Any]) -> str:
    peer = f"{_cell(row['peer'], row['unit'])} ({row['peer_name']})" if "peer" in row else ""
    ratio = f"{row['ratio']} x" if "ratio" in row else ""
    return f"| {title} | {row['what']} | {_cell(row['ours'], row['unit'])} | {peer} | {ratio} |"


def _cell(value: float | str | Mapping[str, float], unit: str) -> str:
    if isinstance(value, str):
        return value
    if not isinstance(value, Mapping):
        return f"{_number(value)} {unit}".strip()
    low, high = _number(value["min"]), _number(value["max"])
    return f"{_number(value['median'])} {unit} [{low}, {high}]"


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.3g}"
