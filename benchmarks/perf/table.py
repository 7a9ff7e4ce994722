"""Tables of `docs/performance.md`, generated from `results/*.json`."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ["between", "headlines", "table", "write_page"]

BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"
HEADLINES_BEGIN, HEADLINES_END = "<!-- headlines: begin -->", "<!-- headlines: end -->"
INTRODUCTION = "# Performance\n"
# Rows of the short table: name of the result, quantity, and description. Both sides of a row do the
# same work in the same precision.
HEADLINES = (
    ("magrpo_8x256", "seconds a step, float32", "MAGRPO step, 8 tasks, 256 tokens, float32"),
    ("magrpo_8x96", "seconds a step, float32", "MAGRPO step, 8 tasks, 96 tokens, float32"),
    ("magrpo_8x96_2_turns", "seconds a step, float32", "MAGRPO step, trees of two turns, float32"),
    ("ippo_8x96", "seconds a step, float32", "IPPO step, 8 tasks, 96 tokens, float32"),
    ("grpo_8x96", "seconds a step, float32", "GRPO step, 8 prompts, 96 tokens, float32"),
    (
        "story_curve",
        "seconds of training, seed 0, ours, float32",
        "training until held-out stories earn 0.75, one seed, float32",
    ),
    ("decoding", "sampled tokens a second, float32", "sampled tokens per second, 32 rows, float32"),
    ("sandbox", "programs a second", "programs per second, against an executor without a jail"),
    (
        "sandbox",
        "assertions on literals, programs a second",
        "programs per second, assertions on literals",
    ),
    ("gpu", "MAGRPO step, both sides", "MAGRPO step, 2 tasks, 8 answers of 256 tokens, bfloat16"),
)


def write_page(results: Path, page: Path) -> None:
    """Write the tables between the markers of the page; the text around them stays."""
    machines = {path.stem: json.loads(path.read_text()) for path in sorted(results.glob("*.json"))}
    tables = "\n\n".join(table(name, figures) for name, figures in machines.items())
    tops = {name for name, *_ in HEADLINES}
    measured = [figures for figures in machines.values() if tops & figures.keys()]
    short = "\n\n".join(f"{_hardware(figures)}\n\n{headlines(figures)}" for figures in measured)
    text = page.read_text() if page.exists() else f"{INTRODUCTION}\n{BEGIN}\n{END}\n"
    if HEADLINES_BEGIN in text:
        text = between(text, HEADLINES_BEGIN, HEADLINES_END, short)
    page.parent.mkdir(exist_ok=True)
    page.write_text(between(text, BEGIN, END, tables))


def headlines(figures: Mapping[str, Any]) -> str:
    """Return the short table of one machine; results that are missing are left out."""
    lines = ["| benchmark | mlrl | other library | ratio |", "|---|---|---|---|"]
    for name, what, label in HEADLINES:
        for row in figures.get(name, {}).get("rows", ()):
            if row["what"] == what:
                ours, peer = (_short(row[side], row["unit"]) for side in ("ours", "peer"))
                lines.append(f"| {label} | {ours} | {peer} ({row['peer_name']}) | {_ratio(row)} |")
    return "\n".join(lines)


def between(text: str, begin: str, end: str, content: str) -> str:
    """Replace what stands between two markers of a text."""
    head, _, rest = text.partition(begin)
    _, _, tail = rest.partition(end)
    return f"{head}{begin}\n{content}\n{end}{tail}"


def _short(value: float | Mapping[str, float], unit: str) -> str:
    return f"{_number(value['median'] if isinstance(value, Mapping) else value)} {unit}".strip()


def _ratio(row: Mapping[str, Any]) -> str:
    return f"{row['ratio']}×" if "ratio" in row else ""  # noqa: RUF001


def table(machine: str, figures: Mapping[str, Any]) -> str:
    """Return all results of one machine as a Markdown table.

    `n` is the number of measurements of a row, empty for plain numbers.
    """
    lines = [f"### {machine}", "", _hardware(figures), ""]
    lines += ["| work | figure | ours | peer | ratio | n | load |", "|---|---|---|---|---|---|---|"]
    for figure in figures.values():
        load = figure.get("hardware", {}).get("load_before", "")
        lines += [f"{_line(figure['title'], row)} {load} |" for row in figure["rows"]]
    return "\n".join(lines)


def _hardware(figures: Mapping[str, Any]) -> str:
    """Return what the machine of the first figure is, and known dates and commits of all."""
    facts = next(iter(figures.values()))["hardware"]
    memory = f"{facts['memory_gib']} GiB"
    machine = f"{facts['processor']}, {facts['cores']} cores, {memory}, {facts['system']}"
    commits: dict[str, set[str]] = {}
    for figure in figures.values():
        if run := figure.get("run"):
            commits.setdefault(run["date"], set()).add(run["commit"])
    days = [f"{date} (commit {', '.join(sorted(found))})" for date, found in commits.items()]
    return f"{machine}; measured on {', '.join(sorted(days))}." if days else f"{machine}."


def _line(title: str, row: Mapping[str, Any]) -> str:
    peer = f"{_cell(row['peer'], row['unit'])} ({row['peer_name']})" if "peer" in row else ""
    ours = _cell(row["ours"], row["unit"])
    n = row["ours"].get("n", "") if isinstance(row["ours"], Mapping) else ""
    return f"| {title} | {row['what']} | {ours} | {peer} | {_ratio(row)} | {n} |"


def _cell(value: float | str | Mapping[str, float], unit: str) -> str:
    if isinstance(value, str):
        return value
    if not isinstance(value, Mapping):
        return f"{_number(value)} {unit}".strip()
    middle = f"{_number(value['median'])} {unit}".strip()
    if value.get("n") == 1:
        return middle
    return f"{middle} [{_number(value['min'])}, {_number(value['max'])}]"


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.3g}"
