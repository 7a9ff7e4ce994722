"""Reward cards: pages generated from the audits in `benchmarks/audits` and from docstrings.

A card has the formulas of the reward, what it reads and cannot read, and for each audited mode a
picture and tables. Pages and pictures are committed; a test compares them with the audits.
"""

import inspect
import json
import re
import statistics
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from reference_docstrings import docstring_sections, formulas
from reference_game_cards import GAMES, game_card, game_pictures, game_rows, game_summary, is_sound
from reference_markdown import fenced, table

import mlrl_envs
from mlrl_envs.auditing.report import LOW, AuditReport, FamilyResult
from mlrl_learners.report.audit_chart import audit_chart
from mlrl_learners.report.reward_card import MAX_RATIO

__all__ = ["card_pages", "card_summary", "is_for_training"]

AUDITS = Path(__file__).resolve().parents[1] / "benchmarks/audits"
MODES = ("grounded", "judged", "paper")
NOT_FOR_TRAINING = "rule judge: not for training"

_VISIBLE = 0.005  # smaller shares are shown as 0.00

Audit = Mapping[str, Any]
"""A stored audit: `options`, `fingerprint`, `versions`, `groups` and `audit`."""


def card_pages() -> dict[str, str]:
    """Return the cards, their pictures and the page of all cards, by path in `docs`."""
    audits = _audits()
    pages = {"reward_cards.md": _index(audits)}
    for env_id in dict.fromkeys(env_id for env_id, _ in audits):
        found = {mode: audit for (each, mode), audit in audits.items() if each == env_id}
        pages[f"reward_cards/{_name(env_id)}.md"] = _card(env_id, found)
        for mode, audit in found.items():
            picture = audit_chart(_report(audit), reward=mode, groups=_groups(audit))
            pages[f"images/{_picture(env_id, mode)}"] = picture + "\n"
    for env_id, audit in _games().items():
        pages[f"reward_cards/{_name(env_id)}.md"] = game_card(audit, _GENERATED)
        pages |= game_pictures(audit)
    return pages


def card_summary(env_id: str) -> str:
    """Return the verdicts on an environment with their pictures, for its reference page."""
    if env_id in _games():
        return game_summary(_games()[env_id])
    found = {mode: audit for (each, mode), audit in _audits().items() if each == env_id}
    if not found:
        return "Not audited."
    parts = [table(_HEADER[1:], [_row(mode, audit) for mode, audit in found.items()])]
    parts += [f"![{mode}](../../images/{_picture(env_id, mode)})" for mode in found]
    return "\n\n".join([*parts, f"[All figures](../../reward_cards/{_name(env_id)}.md)"])


def is_for_training(audit: Audit) -> bool:
    """Return whether the worst exploit earns at most half of what honest answers earn.

    In a game: whether no text that names no move earns more than the best script.
    """
    if "results" in audit["audit"]:
        return is_sound(audit)
    ratio = _report(audit).ratio
    return ratio is not None and ratio <= MAX_RATIO


def _audits() -> dict[tuple[str, str], Audit]:
    """Return the stored audits by environment and mode, in the order of the registry."""
    found = {
        (each["audit"]["env_id"], each["options"]["reward"]): each
        for each in _stored()
        if "families" in each["audit"]
    }
    places = [(env_id, mode) for env_id in mlrl_envs.registry for mode in MODES]
    return {place: found[place] for place in places if place in found}


def _games() -> dict[str, Audit]:
    """Return the stored audits of games, in the order of the registry."""
    found = {e["audit"]["env_id"]: e for e in _stored() if "results" in e["audit"]}
    return {env_id: found[env_id] for env_id in mlrl_envs.registry if env_id in found}


def _stored() -> list[Audit]:
    return [json.loads(path.read_text("utf-8")) for path in AUDITS.glob("*.json")]


def _report(audit: Audit) -> AuditReport:
    fields = {name: audit["audit"][name] for name in inspect.signature(AuditReport).parameters}
    families = [FamilyResult(**family) for family in fields.pop("families")]
    return AuditReport(families=families, **fields)


def _groups(audit: Audit) -> dict[str, Sequence[float]]:
    names = {"people": "people's texts", "models": "models' texts"}
    return {names[name]: values for name, values in audit["groups"].items() if values}


_HEADER = (
    "environment",
    "mode",
    "honest",
    f"below {LOW}",
    "tries",
    "worst exploit",
    "ratio",
    "verdict",
)


def _index(audits: Mapping[tuple[str, str], Audit]) -> str:
    rows = [
        (f"[`{env_id}`](reward_cards/{_name(env_id)}.md)", *_row(mode, audit))
        for (env_id, mode), audit in audits.items()
    ]
    parts = [_INTRODUCTION, table(_HEADER, rows), GAMES, game_rows(_games().values()), _MEASURING]
    return "\n\n".join(parts) + "\n"


def _row(mode: str, audit: Audit) -> tuple[str, ...]:
    report = _report(audit)
    worst = f"{_words(report.worst.name)} {report.worst.best:.2f}"
    verdict = "" if is_for_training(audit) else NOT_FOR_TRAINING
    low, ratio = _percent(report.honest_low), _number(report.ratio)
    tries = f"{len(report.tasks)} x {report.budget:,}"
    return (f"`{mode}`", _number(report.honest_mean), low, tries, worst, ratio, verdict)


def _card(env_id: str, audits: Mapping[str, Audit]) -> str:
    intro, sections = docstring_sections(env_id)
    page = f"[Options, data and an example](../reference/environments/{_name(env_id)}.md)"
    parts = [f"# Reward card: {env_id}", _GENERATED, intro.split("\n\n", 1)[0], page]
    parts += [f"## Modes\n\n{sections['Reward']}"]
    parts += [
        f"## What `grounded` reads\n\n{sections['Reads']}",
        f"## What `grounded` cannot read\n\n{sections['Cannot read']}",
    ]
    for mode, audit in audits.items():
        parts += [f"## Audit of `{mode}`", *_measured(env_id, mode, audit)]
    parts += ["## Formulas", *formulas(sections["Reward"])]
    versions = [f"- {' '.join(line.split())}" for line in sections["Version history"].split("\n")]
    return "\n\n".join([*parts, "## Versions", "\n".join(versions)]) + "\n"


def _measured(env_id: str, mode: str, audit: Audit) -> Iterator[str]:
    """Yield the parts of one audit."""
    report = _report(audit)
    if not is_for_training(audit):
        yield f"**{NOT_FOR_TRAINING}**"
    yield (
        f"Honest answers earn {_number(report.honest_mean)} on the mean, "
        f"{_percent(report.honest_low)} of them less than {LOW}. The worst exploit is "
        f"*{_words(report.worst.name)}* with {report.worst.best:.2f}: "
        f"a ratio of {_number(report.ratio)}."
    )
    yield f"![Distributions of {env_id}, {mode}](../images/{_picture(env_id, mode)})"
    groups = {"honest answers": report.honest, **_groups(audit)}
    header = ("answers", "number", "mean", "spread", f"below {LOW}")
    yield table(header, [_group_row(name, values) for name, values in groups.items() if values])
    yield from _attacks([each for each in report.families if not each.knows_answer])
    knowing = [each for each in report.families if each.knows_answer]
    if knowing:
        yield "With the answer known:"
        yield from _attacks(knowing)
    if report.worst.best >= _VISIBLE:
        yield "The best try of the worst exploit, shortened:"
        text = "\n\n".join(f"{a}: {_shown(t)}" for a, t in report.worst.example.items())
        yield fenced(text)
    options = ", ".join(f"`{name}={value!r}`" for name, value in audit["options"].items())
    yield (
        f"Measured on {len(report.tasks)} tasks with {report.budget} tries each, "
        f"seed {report.seed}, {options}; mlrl {audit['versions']['mlrl']}, "
        f"Python {audit['versions']['python']}, scorer `{audit['fingerprint']['scorer'][:12]}`, "
        f"data `{audit['fingerprint']['data'][:12]}`.{_confirmation(audit)}"
    )


def _confirmation(audit: Mapping[str, Any]) -> str:
    if "measured_with" not in audit:
        return ""
    return (
        f" Attacks were played with scorer `{audit['measured_with'][:12]}`; with this one the "
        "honest answers and people's texts earn the same."
    )


def _group_row(name: str, values: Sequence[float]) -> tuple[str, ...]:
    low = sum(value < LOW - 1e-9 for value in values) / len(values)
    mean, spread = statistics.fmean(values), statistics.pstdev(values)
    return (name, str(len(values)), f"{mean:.2f}", f"{spread:.2f}", _percent(low))


def _attacks(families: Sequence[FamilyResult]) -> Iterator[str]:
    """Yield a table of the families that earn something, and the names of the others."""
    rows = [
        (_words(each.name), str(each.tries), *map(_number, (each.mean, each.best, each.max)))
        for each in families
        if each.max >= _VISIBLE
    ]
    if rows:
        yield table(("attack", "tries", "mean", "best of task", "max"), rows)
    others = ", ".join(_words(each.name) for each in families if each.max < _VISIBLE)
    if others:
        yield f"Nothing is earned by: {others}."


def _shown(text: str) -> str:
    """Return a text without characters that Markdown or XML cannot hold."""
    return re.sub(r"[^\S\n ]|[\x00-\x09\x0b-\x1f\x7f\ud800-\udfff]", " ", text)


def _words(name: str) -> str:
    return name.replace("_", " ")


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.0%}"


def _name(env_id: str) -> str:
    return env_id.split("/", 1)[1]


def _picture(env_id: str, mode: str) -> str:
    return f"reward_cards/{_name(env_id)}.{mode}.svg"


_GENERATED = "<!-- Generated by python -m benchmarks.reward_cards from benchmarks/audits. -->"
_INTRODUCTION = f"""{_GENERATED}

# Reward cards

What a reward pays for honest answers and for attacks. A card has the formulas of an environment's
reward, what it reads and cannot read, and for each mode an [audit](audit.md): families of attack, a
search for exploits, honest answers that were written without knowledge of the reward, people's
texts, and texts of models.

*Tries* are tasks times tries on each. The *ratio* is the worst exploit divided by the mean of the
honest answers. Above {MAX_RATIO} the verdict is "{NOT_FOR_TRAINING}":
a policy that is trained on this mode may learn the exploit. Presets do not train on it, except
`humaneval-paper`, which repeats a published setting, `tiny`, a random model for trying the
commands, and those of the story task: its default scorer, a model that runs on two cores, does not
stop a search. Name a larger model in `scorer` for a policy that others shall use."""
_MEASURING = """Rewards are shares of the reward range above an empty answer. The models are those
of the [benchmark suites](benchmarks.md), small and mostly untrained. Of people's TL;DRs only the
half that was not used to choose thresholds counts; each is the summary of a pair without an
elaboration, and its share that of what a summary alone can earn.

A test fails if a reward or prompt changed after its audit, or if a page differs from its audit. To
measure again (on one core ten minutes, and an hour for `judged`, where a model scores each text;
games have no modes and are measured with the first command):

```bash
MLRL_DATA_DIR=data python -m benchmarks.reward_cards --modes grounded,paper --resume
MLRL_DATA_DIR=data python -m benchmarks.reward_cards --modes judged --resume
python -m benchmarks.reward_cards --cards-only
```

```{toctree}
:hidden:
:glob:

reward_cards/*
```"""
