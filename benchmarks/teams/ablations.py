"""Ablations of `magrpo` on the tasks of teams: one option changed at a time, at as many episodes.

    python -m benchmarks.teams.ablations [--tasks network puzzle] [--changes chain greedy ...]
        [--seeds 0 1 2] [--runs runs/teams] [--gather-only] [--publish]

Runs start from the imitation of `python -m benchmarks.teams` and use its folder. The command may be
killed at any time; the same command keeps what is complete and continues the rest. `--publish`
adds the finished runs to `benchmarks/teams/ablations.json`, where they replace those of the same
tasks, changes and seeds, and writes the table of `docs/results.md`.
"""

import argparse
import dataclasses
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.curves import ROOT
from benchmarks.perf.table import between
from benchmarks.teams.comparisons import compare
from benchmarks.teams.plans import METHODS, Method
from benchmarks.teams.published import outdated, published_with, write_published
from benchmarks.teams.results import read_run
from benchmarks.teams.tasks import TASKS
from benchmarks.teams.training import train
from mlrl_learners.config.option_places import merge_options

__all__ = ["BASE", "CHANGES", "ablation_table", "main"]

RESULTS = Path(__file__).with_name("ablations.json")
PAGE = ROOT / "docs" / "results.md"
BASE = "magrpo"
GAMES = ("network", "puzzle")  # tasks of several turns: with one turn most changes are the base


def _change(label: str, options: Mapping[str, Any]) -> Method:
    merged = merge_options(METHODS[BASE].options, options)
    return dataclasses.replace(METHODS[BASE], label=label, options=merged)


def _lag(iterations: int) -> Method:
    correction = {"importance": {"correction": "token_truncate"}}
    method = _change(f"`--lag {iterations}`, `importance.correction: token_truncate`", correction)
    return dataclasses.replace(method, ray={"enabled": True, "lag": iterations})


# Eight answers at each turn of one walk are as many tokens as eight rollouts.
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
        "LoRA adapters of rank 8, learning rate times 10",
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
"""Methods that differ from `magrpo` in one option each."""


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
    if not given.gather_only and not _train(given):
        print("interrupted: the same command continues", file=sys.stderr)
        return 130
    return _report(given)


def _train(given: argparse.Namespace) -> bool:
    return all(
        train(TASKS[task], method, name, seed, given.runs / task)
        for name, method in [(BASE, METHODS[BASE]), *((n, CHANGES[n]) for n in given.changes)]
        for task in given.tasks
        for seed in given.seeds
    )


def _report(given: argparse.Namespace) -> int:
    runs: list[Mapping[str, Any]] = []
    for task in given.tasks:
        for name in (BASE, *given.changes):
            for seed in given.seeds:
                run = read_run(task, name, seed, given.runs / task)
                if run is None:
                    print(f"left out: {task}, {name}, seed {seed}: not finished")
                else:
                    runs.append(run)
    if not runs:
        print(f"no finished runs in {str(given.runs)!r}", file=sys.stderr)
        return 1
    if given.publish:
        for name in outdated(RESULTS, CHANGES):
            print(f"left out: published runs of {name}, which is defined in another way now")
        runs = published_with(runs, RESULTS, [BASE, *CHANGES], CHANGES)
    table = ablation_table(runs)
    print(table)
    if given.publish:
        named = dict.fromkeys(run["method"] for run in runs if run["method"] != BASE)
        changes = {name: dataclasses.asdict(CHANGES[name]) for name in named}
        write_published(runs, RESULTS, changes=changes)
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
        "| task | change | seeds | `magrpo` | changed | difference [95 %] | by seed | p |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for task in dict.fromkeys(each["task"] for each in runs):
        for name, change in CHANGES.items():
            found = compare(runs, task, name, BASE)
            if found is not None:
                lines.append(
                    f"| {task} | {change.label} | {len(found.by_seed)} | {found.theirs:.2f} "
                    f"| {found.ours:.2f} | {found.difference} | {found.seeds} | {found.p:.4f} |"
                )
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
