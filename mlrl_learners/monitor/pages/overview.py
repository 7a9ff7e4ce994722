"""Page of a run: overview, main chart, configuration, environment and failed episodes."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from mlrl_learners.monitor.library import MonitoredRun
from mlrl_learners.monitor.pages.layout import address, frame
from mlrl_learners.monitor.states import state_of
from mlrl_learners.report.bench_tables import draw_crossplay, draw_suite
from mlrl_learners.report.configuration import differing, draw_options
from mlrl_learners.report.html import Child, Html, isolated, scrolled, tag
from mlrl_learners.report.overview import Overview, command_of, draw_overview
from mlrl_learners.report.panels import draw_returns
from mlrl_learners.report.reward_card import draw_reward_card, reward_card_of
from mlrl_learners.runs.files import CONFIG_FILE, CROSSPLAY_FILE, ENVIRONMENT_FILE, RESULT_FILE
from mlrl_learners.runs.stored import UNREADABLE, decode_failure

__all__ = ["run_page"]

_MOST_FAILURES = 20
_MOST_COMPARED = 50
_SMOOTHING = 5
_NO_FILE = "There is none. Symbolic links are not followed."


def run_page(run: MonitoredRun, runs: Sequence[MonitoredRun], failures: Sequence[str]) -> str:
    """Return the page of a run.

    Args:
        run: The run.
        runs: Every run, with whose configurations its own is compared.
        failures: The last lines of its `failures.jsonl`.
    """
    environment = run.text(ENVIRONMENT_FILE)
    curves = replace(run.metrics.curves(), color=run.color)
    last_write = datetime.fromtimestamp(run.written_at(), UTC)
    written = f"last write {last_write:%Y-%m-%d %H:%M} UTC"
    overview = Overview(
        curves, run.options(), command_of(environment), f"{state_of(run)}, {written}"
    )
    trained = [draw_overview(overview), draw_returns(curves, smoothing=_SMOOTHING)]
    card = reward_card_of(run.options())
    body = [
        tag("h1", run.name),
        trained if run.is_trained else tag("p", written, class_="facts"),
        draw_suite(run.result(RESULT_FILE)),
        draw_crossplay(run.result(CROSSPLAY_FILE)),
        _links(run),
        None if card is None else draw_reward_card(card),
        [tag("h2", "Configuration"), _configuration(run, runs)] if run.is_trained else None,
        _failures(failures),
        _environment(environment),
    ]
    return frame(run.name, tag("div", body, class_="page"), run=run.name, here="run")


def _links(run: MonitoredRun) -> Html:
    where = [("run", run.name)]
    return tag(
        "p",
        tag("a", "All curves", href=address("/", [("chosen", 1), *where])),
        tag("a", "Episodes", href=address("/episodes", where)),
        tag("a", "One file to send to a colleague", href=address("/report", where),
            download="report.html"),
        tag("span", "in ", tag("code", str(run.path)), class_="quiet"),
        class_="pager",
    )  # fmt: skip


def _configuration(run: MonitoredRun, runs: Sequence[MonitoredRun]) -> list[Html]:
    """Show the options in which other runs differ first."""
    options = run.options()
    if not options:
        text = run.text(CONFIG_FILE)
        return [
            scrolled("pre", text, class_="file") if text else tag("p", _NO_FILE, class_="quiet")
        ]
    others = [other.options() for other in runs[:_MOST_COMPARED] if other.options()]
    first = [name for name in differing([options, *others]) if name in options]
    said = f"{len(first)} of {len(options)} options differ between the runs; they come first."
    box = tag("input", type="search", placeholder="Find an option", aria_label="Find an option",
              data_search="", data_filter=".options tbody th", class_="enhanced")  # fmt: skip
    note = tag("p", said, class_="quiet") if first else None
    return [box, *([note] if note else []), draw_options(options, first)]


def _failures(lines: Sequence[str]) -> list[Html]:
    """Return the section of lost episodes; their number is in the overview."""
    if not lines:
        return []
    shown = [tag("li", _failure(line)) for line in lines[-_MOST_FAILURES:]]
    return [tag("h2", "Lost to infrastructure"), tag("ul", shown)]


def _environment(text: str) -> list[Html]:
    if not text.strip():
        return []
    file = scrolled("pre", text, class_="file")
    return [
        tag("h2", "Versions and machine"),
        tag("details", tag("summary", ENVIRONMENT_FILE), file),
    ]


def _failure(line: str) -> Child:
    try:
        failure = decode_failure(json.loads(line))
    except UNREADABLE:
        return isolated(line)
    where = [f"iteration {failure.iteration}, ", isolated(failure.task_id), ": "]
    return [*where, isolated(failure.message)]
