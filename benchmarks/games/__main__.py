"""Command line of the proof that learners learn games.

    python -m benchmarks.games GAME [--methods NAME ...] [--seeds 0 1 2] [--resume]
        [--runs runs/games] [--measure-only] [--list]

GAME is one of kuhn, nim, tictactoe, connect-four, liars-dice, matrix, public-goods and hanabi.

Trains every method of a game from every seed, measures the stored weights, and writes
`benchmarks/games/results/<game>.json`, `docs/images/games_<game>.svg` and a table. It may be killed
at any time; `--resume` keeps what is complete and continues the rest.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.games.plans import Plan
from benchmarks.games.table import PLANS
from benchmarks.shared.curves import ROOT
from mlrl_envs.errors import MlrlError

DESCRIPTION = "Small models learn games by the project's own learners, from legal moves on."


def main(argv: Sequence[str] | None = None) -> int:
    """Train what is missing, measure it, and write results; return the exit status."""
    arguments = _parse(argv)
    plan: Plan = PLANS[arguments.game]
    if arguments.list:
        for name, method in plan.methods.items():
            print(f"{name:20} {method.label}")
        return 0
    methods = arguments.methods or list(plan.methods)
    unknown = [name for name in methods if name not in plan.methods]
    if unknown:
        known = ", ".join(plan.methods)
        print(f"--methods must be of {known}, got {unknown[0]!r}", file=sys.stderr)
        return 2
    runs = arguments.runs / arguments.game
    if runs.exists() and not (arguments.resume or arguments.measure_only):
        print(f"{str(runs)!r} holds runs: pass --resume, or another --runs", file=sys.stderr)
        return 2
    return _run(arguments, plan, methods, runs)


def _run(arguments: argparse.Namespace, plan: Plan, methods: Sequence[str], runs: Path) -> int:
    from benchmarks.games.results import draw, measure_method, stored_curves, table, write_results
    from benchmarks.games.training import InterruptedRunError, train_method

    status = 0
    for seed in arguments.seeds:
        for name in methods:
            try:
                if not arguments.measure_only:
                    train_method(plan, name, seed, runs)
                curve = measure_method(plan, name, seed, runs)
            except InterruptedRunError:
                print("interrupted: the same command with --resume continues", file=sys.stderr)
                return 130
            except MlrlError as error:
                print(f"left out: {name}, seed {seed}: {error}", file=sys.stderr)
                status = 1
                continue
            last = curve["measures"][-1]
            print(f"{name}, seed {seed}: {plan.shown} {last[plan.shown]:.3f} after "
                  f"{last['update']} updates", flush=True)  # fmt: skip
            write_results(arguments.game, plan, [curve])
    if stored := stored_curves(arguments.game, plan):
        draw(plan, stored, ROOT / "docs" / "images" / f"games_{arguments.game}.svg")
        print(table(plan, stored))
    return status


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.games", description=DESCRIPTION)
    parser.add_argument("game", choices=list(PLANS))
    parser.add_argument("--methods", nargs="+", metavar="NAME", help="methods; all by default")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--runs", type=Path, default=Path("runs/games"), help="folder of runs")
    parser.add_argument("--resume", action="store_true", help="keep and continue what is there")
    parser.add_argument("--measure-only", action="store_true", help="measure, do not train")
    parser.add_argument("--list", action="store_true", help="print the methods of the game")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
