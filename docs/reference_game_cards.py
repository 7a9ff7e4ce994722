"""Reward cards of games: pages generated from audits by seats."""

import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from reference_docstrings import docstring_sections
from reference_markdown import fenced, table

from mlrl_envs.auditing.game_report import GameAuditReport, SeatResult
from mlrl_learners.report.game_audit_chart import game_audit_chart

__all__ = ["GAMES", "game_card", "game_pictures", "game_rows", "game_summary", "is_sound"]

Audit = Mapping[str, Any]
"""A stored audit: `options`, `fingerprint`, `versions` and `audit`."""

NOT_FOR_TRAINING = "rewards text without moves: not for training"

NOTES = {
    "mlrl/public-goods-v0": "Giving nothing is the dominant move: by the rules, not by a defect.",
    "mlrl/matrix-v0": "Always cooperating is as good as the best script against that script.",
    "mlrl/coder-tester-v1": "The reference tester writes hidden assertions, and *example table* "
    "answers them from the tests that it reads; a tester without them gives less away.",
}
_HEADER = (
    "script",
    "honest",
    "tries",
    "worst attack",
    "gain",
    "ratio",
    "earn more",
)
_MODES = {
    "one": "The attack plays one seat, the best script the others",
    "all": "The attack plays all seats",
}
GAMES = """## Games

In games a seat is attacked and the best script plays the others, see
[Games](audit.md#games). The *gain* is what the worst attack earns more than the best script in
the same seat, in units of the payoff. The *ratio* of a cooperative game is the mean return when the
worst attack plays all seats, divided by that of the best script; a baseline such as a random move
may earn a large part of it."""


def game_rows(audits: Iterable[Audit]) -> str:
    """Return a table with a row for each audited game."""
    rows = []
    for audit in audits:
        env_id = audit["audit"]["env_id"]
        rows.append((f"[`{env_id}`](reward_cards/{_name(env_id)}.md)", *_row(audit)))
    return table(("game", *_HEADER), rows)


def game_summary(audit: Audit) -> str:
    """Return the verdict on a game with its picture, for its reference page."""
    env_id = audit["audit"]["env_id"]
    return "\n\n".join(
        (
            table(_HEADER, [_row(audit)]),
            f"![gains of attacks](../../images/{_picture(env_id)})",
            f"[All figures](../../reward_cards/{_name(env_id)}.md)",
        )
    )


def game_pictures(audit: Audit) -> dict[str, str]:
    """Return the picture of a game by its path in `docs`."""
    path = f"images/{_picture(audit['audit']['env_id'])}"
    return {path: game_audit_chart(_report(audit)) + "\n"}


def game_card(audit: Audit, generated: str) -> str:
    """Return the card of a game."""
    env_id = audit["audit"]["env_id"]
    intro, sections = docstring_sections(env_id)
    parts = [f"# Reward card: {env_id}", generated, intro.split("\n\n", 1)[0]]
    parts += [f"[Options, rules and an example](../reference/environments/{_name(env_id)}.md)"]
    parts += [f"## Reward\n\n{sections['Reward']}", "## Audit", *_measured(audit)]
    versions = [f"- {' '.join(line.split())}" for line in sections["Version history"].split("\n")]
    return "\n\n".join([*parts, "## Versions", "\n".join(versions)]) + "\n"


def is_sound(audit: Audit) -> bool:
    """Return whether no text that names no move earns more than the best script."""
    return all(each.names_move for each in _report(audit).exploits)


def _measured(audit: Audit) -> Iterator[str]:
    report = _report(audit)
    if not is_sound(audit):
        yield f"**{NOT_FOR_TRAINING}**"
    worst, env_id = report.worst, report.env_id
    ratio = "" if report.ratio is None else f", a ratio of {report.ratio:.2f} to the best script"
    yield (
        f"The best script, `{report.script}`, earns {report.honest_mean:.3f} on the mean. The "
        f"worst attack is *{_words(worst)}* with {worst.mean:.3f}: a gain of {worst.gain:+.3f} "
        f"(standard error {worst.error:.3f}){ratio}."
    )
    yield " ".join(part for part in (_verdict(report), NOTES.get(env_id)) if part)
    yield f"![Gains of attacks on {env_id}](../images/{_picture(env_id)})"
    for seats, heading in _MODES.items():
        rows = [_result(each) for each in report.results if each.seats == seats]
        if rows:
            yield f"{heading}:"
            yield table(("attack", "tasks", "mean", "gain", "error", "gain by seat"), rows)
    if worst.example:
        yield "The first answer of the worst attack, shortened:"
        yield fenced(worst.example)
    options = ", ".join(f"`{name}={value!r}`" for name, value in audit["options"].items())
    yield (
        f"Measured on {len(report.tasks)} tasks with {report.budget} tries each, "
        f"seed {report.seed}, {options}; mlrl {audit['versions']['mlrl']}, "
        f"Python {audit['versions']['python']}, scorer `{audit['fingerprint']['scorer'][:12]}`."
    )


def _verdict(report: GameAuditReport) -> str:
    if not report.exploits:
        return "No attack earns more than the best script."
    names = ", ".join(f"*{_words(each)}*" for each in report.exploits)
    return f"More than the best script earn: {names}."


def _row(audit: Audit) -> Sequence[str]:
    report = _report(audit)
    worst = report.worst
    names = ", ".join(dict.fromkeys(_words(each) for each in report.exploits))
    return (
        f"`{report.script}`",
        f"{report.honest_mean:.2f}",
        f"{len(report.tasks)} x {report.budget}",
        f"{_words(worst)} {worst.mean:.2f}",
        f"{worst.gain:+.2f} ± {worst.error:.2f}",
        "-" if report.ratio is None else f"{report.ratio:.2f}",
        names or "none",
    )


def _result(each: SeatResult) -> Sequence[str]:
    by_seat = ", ".join(f"{gain:+.2f}" for gain in each.by_seat.values())
    numbers = (f"{each.mean:.3f}", f"{each.gain:+.3f}", f"{each.error:.3f}")
    return (_words(each), str(each.tasks), *numbers, by_seat or "-")


def _report(audit: Audit) -> GameAuditReport:
    fields = {name: audit["audit"][name] for name in inspect.signature(GameAuditReport).parameters}
    names = set(inspect.signature(SeatResult).parameters)
    results = [
        SeatResult(**{name: value for name, value in each.items() if name in names})
        for each in fields.pop("results")
    ]
    return GameAuditReport(results=results, **fields)


def _words(result: SeatResult) -> str:
    return result.name.replace("_", " ")


def _name(env_id: str) -> str:
    return env_id.split("/", 1)[1]


def _picture(env_id: str) -> str:
    return f"reward_cards/{_name(env_id)}.svg"
