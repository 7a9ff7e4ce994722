"""Pages of the leaderboard: rendering, writing and checking that they are up to date."""

import base64
import hashlib
import os
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from mlrl_envs.errors import MissingPackageError
from mlrl_learners.bench.leaderboard.overview import (
    Cell,
    counted_runs,
    main_result,
    overview_columns,
    overview_rows,
)
from mlrl_learners.bench.leaderboard.plot import draw_plot
from mlrl_learners.bench.leaderboard.rows import (
    WHOLE,
    LeaderboardGroup,
    LeaderboardRow,
    groups_of,
)
from mlrl_learners.bench.leaderboard.sources import ResultSource, read_sources
from mlrl_learners.bench.results import read_transcripts
from mlrl_learners.errors import RunDirError
from mlrl_learners.report.html import clean, without_overrides
from mlrl_learners.report.styles import stylesheet
from mlrl_learners.report.transcript_markup import Side, compare
from mlrl_learners.runs.stored import decode_episode

__all__ = ["build", "stale", "write"]

MARKDOWN, PAGE, TRANSCRIPTS = "LEADERBOARD.md", "index.html", "transcripts"
SHOWN_EPISODES = 2
UNKNOWN = "\u2013"
Pages = dict[str, str]


def build(results: Path, out: Path | None = None) -> Pages:
    """Return every page by its path.

    Args:
        results: Folder of results.
        out: Folder that the pages are for, which links to results start from; by default a folder
            beside `results`.

    Raises:
        ConfigError: If there is no result, one is invalid or lacks its transcripts, or two of a
            suite were not played alike.
        MissingPackageError: If `jinja2` is missing.
    """
    sources = read_sources(results)
    groups = groups_of(sources)
    templates = _templates()
    link = Path(os.path.relpath(results, out or results.parent / "leaderboard")).as_posix()
    script = _part("page.js")
    actors = sorted({row.actor for group in groups for row in group.rows})
    common = {"style": stylesheet() + _part("style.css"), "WHOLE": WHOLE}
    pages = {
        MARKDOWN: templates.get_template("leaderboard.md.jinja").render(
            suites=_by_suite(groups),
            WHOLE=WHOLE,
            results=link,
            columns=overview_columns(groups),
            overview=overview_rows(groups),
            main_result=main_result(groups),
        ),
        PAGE: templates.get_template("index.html.jinja").render(
            **common,
            results=link,
            suites=_by_suite(groups),
            columns=overview_columns(groups),
            overview=overview_rows(groups),
            main_result=main_result(groups),
            plots={
                group.slug: draw_plot(group, actors)
                for group in groups
                if any(row.tokens is not None for row in group.rows)
            },
            script=script,
            script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        ),
    }
    for source in sources:
        pages[f"{TRANSCRIPTS}/{source.slug}.html"] = templates.get_template(
            "transcript.html.jinja"
        ).render(**common, result=source.result, entries=_shown(source))
    return {path: text.rstrip("\n") + "\n" for path, text in pages.items()}


def stale(pages: Pages, folder: Path) -> list[str]:
    """Return the pages that are missing, different or left over in a folder.

    HTML pages are optional, because a checkout holds the Markdown page alone: they are checked if
    the folder has any.
    """
    found = []
    has_html = (folder / PAGE).exists() or (folder / TRANSCRIPTS).exists()
    for path, text in pages.items():
        if path != MARKDOWN and not has_html:
            continue
        file = folder / path
        if not file.is_file():
            found.append(f"{path} is missing")
        elif file.read_text("utf-8") != text:
            found.append(f"{path} is stale")
    return found + [f"{path} has no result" for path in _left_over(pages, folder)]


def write(pages: Pages, folder: Path) -> None:
    """Write every page, and remove transcripts that have no result.

    Raises:
        RunDirError: If a file cannot be written.
    """
    try:
        for path, text in pages.items():
            file = folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, "utf-8", newline="\n")
        for path in _left_over(pages, folder):
            (folder / path).unlink()
    except OSError as error:
        raise RunDirError(f"cannot write into {str(folder)!r}: {error}") from error


def _left_over(pages: Pages, folder: Path) -> list[str]:
    there = sorted((folder / TRANSCRIPTS).glob("*.html"))
    return [name for name in (f"{TRANSCRIPTS}/{file.name}" for file in there) if name not in pages]


def _by_suite(groups: Sequence[LeaderboardGroup]) -> dict[str, list[LeaderboardGroup]]:
    suites: dict[str, list[LeaderboardGroup]] = {}
    for group in groups:
        suites.setdefault(group.suite, []).append(group)
    return suites


def _shown(source: ResultSource) -> list[dict[str, Any]]:
    """Return the first episodes of each entry, one per task."""
    episodes = [decode_episode(record) for record in read_transcripts(source.file, source.result)]
    shown: list[dict[str, Any]] = []
    for entry in source.result["entries"]:
        mine = [episode for episode in episodes if episode.entry == entry["name"]]
        firsts = {episode.task_id: episode for episode in reversed(mine)}
        chosen = [e for e in mine if firsts[e.task_id] is e][:SHOWN_EPISODES]
        cards = compare([Side("", chosen)], limit=SHOWN_EPISODES, open_first=0 if shown else 1)
        shown.append({"entry": entry, "cards": cards if chosen else None})
    return shown


def _templates() -> Any:  # noqa: ANN401 - jinja2 is optional
    try:
        import jinja2
    except ImportError as error:
        raise MissingPackageError(
            "the leaderboard needs the package 'jinja2': pip install 'mlrl[bench]'"
        ) from error
    found = jinja2.Environment(
        loader=jinja2.PackageLoader("mlrl_learners.bench.leaderboard"),
        autoescape=lambda name: str(name).endswith(".html.jinja"),  # noqa: S701 - Markdown: see cell
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: clean(value) if type(value) is str else value,
    )
    found.filters["anchor"] = _anchor
    found.filters["cell"] = _cell
    found.filters["mean_cell"] = _mean_cell
    found.filters["figure"] = _figure
    found.filters["number"] = lambda value: UNKNOWN if value is None else f"{value:.0f}"
    found.filters["range"] = _range
    found.filters["runs"] = counted_runs
    return found


def _cell(text: str) -> str:
    """Escape a text for a cell of a Markdown table."""
    plain = " ".join(without_overrides(clean(text)).split())
    return "".join(f"\\{c}" if c in r"\`*_{}[]<>|#~&" else c for c in plain)


def _range(interval: tuple[float, float] | None) -> str:
    return UNKNOWN if interval is None else f"{interval[0]:.3f} to {interval[1]:.3f}"


def _figure(row: LeaderboardRow, name: str) -> str:
    interval = getattr(row, f"{name}_interval" if name != "mean" else "interval")
    value = f"{getattr(row, name):.3f}"
    low_high = UNKNOWN if interval is None else f"{interval[0]:.3f}, {interval[1]:.3f}"
    return f"{value} [{low_high}]"


def _mean_cell(cell: Cell) -> str:
    """Return a mean with half of its interval, in bold if it is the best complete one."""
    row = cell.row
    mean = f"{row.mean:.3f}"
    if row.interval is not None:
        mean += f" ± {(row.interval[1] - row.interval[0]) / 2:.3f}"
    if not row.is_complete:
        mean += " (incomplete)"
    if row.runs == 1:
        mean += counted_runs(row, " ({})")
    return f"**{mean}**" if cell.is_best else mean


def _anchor(group: LeaderboardGroup) -> str:
    """Return the anchor that GitHub gives to the heading of the suite of a group."""
    kept = (c for c in group.suite.lower() if c.isalnum() or c in " -_")
    return "".join(kept).replace(" ", "-")


def _part(name: str) -> str:
    folder = resources.files("mlrl_learners.bench.leaderboard") / "templates"
    return folder.joinpath(name).read_text("utf-8")
