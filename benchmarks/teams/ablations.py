"""Ablations of `magrpo` on the tasks of teams: one setting changed at a time, at as many episodes.

    python -m benchmarks.teams.ablations [--tasks network puzzle] [--changes chain greedy ...]
        [--seeds 0 1 2] [--runs runs/teams] [--gather-only] [--publish]

Runs start from the imitation of `python -m benchmarks.teams` and use its folder. The command may be
killed at any time; the same command keeps what is complete and continues the rest. `--publish`
adds the finished runs to `benchmarks/teams/ablations.json`, where they replace those of the same
tasks, changes and seeds, and writes the table of `docs/results_ablations.md`.
"""

import argparse
import dataclasses
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.perf.table import between
from benchmarks.shared.curves import ROOT
from benchmarks.teams.comparisons import compare
from benchmarks.teams.plans import METHODS, Method
from benchmarks.teams.published import with_published, write_published
from benchmarks.teams.results import gather
from benchmarks.teams.tasks import TASKS
from benchmarks.teams.training import INTERRUPTED, Job, train_all
from mlrl_learners.config.option_places import merge_options

__all__ = ["BASE", "CHANGES", "ablation_table", "main"]

RESULTS = Path(__file__).with_name("ablations.json")
PAGE = ROOT / "docs" / "results_ablations.md"
BASE = "magrpo"
GAMES = ("network", "puzzle")  # tasks of several turns: with one turn most changes are the base


def _change(label: str, options: Mapping[str, Any]) -> Method:
    merged = merge_options(METHODS[BASE].options, options)
    return dataclasses.replace(METHODS[BASE], label=label, options=merged)


def _lag(iterations: int) -> Method:
    correction = {"importance": {"correction": "token_truncate"}}
    method = _change(f"`--lag {iterations}`, `importance.correction: token_truncate`", correction)
    return dataclasses.replace(method, ray={"enabled": True, "lag": iterations})


# Eight answers at each turn of one walk: as many answers as in eight rollouts of as many turns.
WALK: Mapping[str, Any] = {"group": {"size": 8, "rollouts": 1}, "baseline": {"group_by": "node"}}
CHANGES: Mapping[str, Method] = {
    "chain": _change(
        "eight answers at each turn; a random one is continued",
        merge_options(WALK, {"group": {"branching": "chain"}}),
    ),
    "greedy": _change(
        "eight answers at each turn; the best one is continued (with `credit.turn_weights: nodes`)",
        merge_options(
            WALK, {"group": {"branching": "greedy"}, "credit": {"turn_weights": "nodes"}}
        ),
    ),
    "group-agent": _change(
        "`baseline.group_by: agent` (all turns in one group)", {"baseline": {"group_by": "agent"}}
    ),
    "deviation": _change(
        "`baseline.normalize_std` (divides by the deviation)", {"baseline": {"normalize_std": True}}
    ),
    "no-baseline": _change(
        "`baseline.kind: none` (returns as they are)",
        {"baseline": {"kind": "none", "group_by": "node"}},
    ),
    "moving-baseline": _change(
        "`baseline.kind: role_ema` (a moving average of the agent's returns)",
        {"baseline": {"kind": "role_ema", "group_by": "node"}},
    ),
    "team-credit": _change(
        "`credit.kind: team` (each agent learns from the mean of all rewards)",
        {"credit": {"kind": "team"}},
    ),
    "own-weights": _change("weights for each agent", {"team": {"share_weights": False}}),
    "lora": _change(
        "LoRA adapters of rank 8, learning rate 1e-2",
        {"lora": {"rank": 8, "alpha": 16}, "optimizer": {"lr": 1e-2}},
    ),
    "top-p": _change(
        "`sampling.top_p` 0.9, probabilities of the truncated distribution",
        {"sampling": {"top_p": 0.9}},
    ),
    "top-p-whole": _change(
        "`sampling.top_p` 0.9, probabilities of the whole distribution (`renormalize: false`)",
        {"sampling": {"top_p": 0.9, "renormalize": False}},
    ),
    "lag-1": _lag(1),
    "lag-4": _lag(4),
}
"""Methods that differ from `magrpo` in one setting each, which may have several options."""
ALL = {BASE: METHODS[BASE], **CHANGES}


def main(argv: Sequence[str] | None = None) -> int:
    """Train what is missing, print the table, and publish it if asked; return the status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.teams.ablations",
                                     description=__doc__.splitlines()[0])  # fmt: skip
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(GAMES))
    parser.add_argument("--changes", nargs="+", choices=CHANGES, default=list(CHANGES))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--runs", type=Path, default=Path("runs/teams"), help="folder of runs")
    parser.add_argument("--gather-only", action="store_true", help="do not train")
    parser.add_argument("--publish", action="store_true", help="write results and the table")
    given = parser.parse_args(argv)
    status = 0
    if not given.gather_only:
        status = train_all(_jobs(given), given.runs)
        if status == INTERRUPTED:
            return status
    return _report(given) or status


def _jobs(given: argparse.Namespace) -> Iterator[Job]:
    for name in (BASE, *given.changes):
        for task in given.tasks:
            for seed in given.seeds:
                yield Job(task, name, ALL[name], seed)


def _report(given: argparse.Namespace) -> int:
    runs = gather(_jobs(given), given.runs)
    if not runs:
        print(f"no finished runs in {str(given.runs)!r}", file=sys.stderr)
        return 1
    if given.publish:
        runs = with_published(runs, RESULTS, ALL)
    table = ablation_table(runs)
    print(table)
    if given.publish:
        write_published(runs, RESULTS, ALL)
        page = PAGE.read_text(encoding="utf-8")
        begin, end = "<!-- ablations: begin -->", "<!-- ablations: end -->"
        PAGE.write_text(between(page, begin, end, table), encoding="utf-8")
    return 0


def ablation_table(runs: Sequence[Mapping[str, Any]]) -> str:
    """Return each change beside `magrpo` as a Markdown table, paired as in the teams' table.

    Args:
        runs: Finished runs of `magrpo` and of changes, as `read_run` returns them.
    """
    lines = [
        "| task | change | `magrpo` | changed | over seeds | by seed | over tasks | p |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for task in dict.fromkeys(each["task"] for each in runs):
        for name, change in CHANGES.items():
            found = compare(runs, task, name, BASE)
            if found is not None:
                lines.append(
                    f"| {task} | {change.label} | {found.theirs:.2f} | {found.ours:.2f} "
                    f"| {found.over_seeds} | {found.seeds} | {found.over_tasks} | {found.p:.4f} |"
                )
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
