"""Command that audits the built-in environments and writes their reward cards.

    MLRL_DATA_DIR=DATA python -m benchmarks.reward_cards [ENV ...] [--modes grounded,paper]
        [--budget N] [--tasks N] [--scorer JSON] [--resume]
    python -m benchmarks.reward_cards --cards-only
    python -m benchmarks.reward_cards [ENV ...] --confirm [--before CHECKOUT]
    python -m benchmarks.reward_cards --check

An audit is one file in `benchmarks/audits`. `--resume` leaves out the audits that exist with the
same settings for the reward as it is now. `--cards-only` measures nothing and writes the pages in
`docs/reward_cards`; `--confirm` renews judged audits whose rewards have not changed, see
`benchmarks.reward_cards.confirm`; `--check` names stale audits and pages and fails if there are
any. A language model scores each text in `judged`, which takes much longer than the other modes.
Games have no modes.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.reward_cards.confirm import confirm
from benchmarks.reward_cards.measure import (
    AUDITS,
    PLANS,
    is_current,
    measure,
    measure_game,
    stale_lines,
)
from benchmarks.reward_cards.pages import stale_pages, write_pages
from mlrl_envs.errors import unknown_name
from mlrl_learners.progress import progress_bar

JUDGED = ("mlrl/story-v1", "mlrl/tldr-v1", "mlrl/arxiv-v1", "mlrl/debate-v1")

JUDGED_TASKS = 2  # 0.1 to 0.5 s a text on one core


def main(argv: Sequence[str] | None = None) -> int:
    """Measure what is asked for, and write the pages."""
    arguments = _parser().parse_args(argv)
    if arguments.check:
        lines = [*stale_lines(), *stale_pages()]
        print("\n".join(lines) or "all cards are current")
        return int(bool(lines))
    for env_id in arguments.env:
        if env_id not in PLANS:
            raise unknown_name("environment", env_id, PLANS)
    if arguments.confirm:
        return _confirm(arguments.env or JUDGED, arguments.before)
    if not arguments.cards_only:
        _measure_all(arguments.env or list(PLANS), arguments)
    write_pages()
    return 0


def _measure_all(asked: Sequence[str], arguments: argparse.Namespace) -> None:
    for mode in arguments.modes.split(","):
        for env_id in asked:
            if not PLANS[env_id].is_game and (mode != "judged" or env_id in JUDGED):
                _measure(env_id, mode, arguments)
    for env_id in asked:
        if PLANS[env_id].is_game:
            _measure_game(env_id, arguments)


def _confirm(env_ids: Sequence[str], before: Path | None) -> int:
    reasons = {env_id: confirm(env_id, before) for env_id in env_ids}
    for env_id, reason in reasons.items():
        print(f"{env_id} judged: {'confirmed' if reason is None else f'measure again, {reason}'}")
    write_pages()
    return int(any(reasons.values()))


def _measure(env_id: str, mode: str, arguments: argparse.Namespace) -> None:
    planned = JUDGED_TASKS if mode == "judged" else PLANS[env_id].tasks
    tasks = arguments.tasks or planned
    budget = arguments.budget or PLANS[env_id].budget
    if arguments.resume and is_current(env_id, mode, budget=budget, tasks=tasks):
        return
    scorer = arguments.scorer if mode == "judged" else None
    with progress_bar(total=budget * tasks, description=f"{env_id} {mode}") as bar:
        found = measure(
            env_id, mode, scorer=scorer, budget=budget, tasks=tasks, progress=bar.update
        )
    audit = found["audit"]
    print(
        f"{env_id} {mode}: honest {audit['honest_mean']:.2f}, {audit['honest_low']:.0%} below 0.8, "
        f"worst {audit['worst']}, ratio {audit['ratio']}",
        flush=True,
    )


def _measure_game(env_id: str, arguments: argparse.Namespace) -> None:
    tasks = arguments.tasks or PLANS[env_id].tasks
    budget = arguments.budget or PLANS[env_id].budget
    if arguments.resume and is_current(env_id, "", budget=budget, tasks=tasks):
        return
    with progress_bar(total=budget * tasks, description=env_id) as bar:
        audit = measure_game(env_id, budget=budget, tasks=tasks, progress=bar.update)["audit"]
    seats = "all" if audit["cooperative"] else "one"
    worst = next(each for each in audit["results"] if each["seats"] == seats)
    print(
        f"{env_id}: honest {audit['honest_mean']:.3f}, worst {worst['name']}, "
        f"gain {worst['gain']:.3f}, ratio {audit['ratio']}, exploits {audit['exploits']}",
        flush=True,
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.reward_cards",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("env", nargs="*", help="ids of built-in environments; default: all")
    parser.add_argument("--modes", default="grounded", help="modes of the reward, with commas")
    parser.add_argument("--budget", type=int, help="tries per task; default: 1000, for games fewer")
    parser.add_argument(
        "--tasks",
        type=int,
        help="attacked tasks; default: 8, with programs 4, for judged 2, for games up to 240",
    )
    parser.add_argument("--scorer", type=json.loads, metavar="JSON", help="text scorer of judged")
    parser.add_argument("--resume", action="store_true", help="keep current audits")
    parser.add_argument("--cards-only", action="store_true", help="write the pages only")
    parser.add_argument("--confirm", action="store_true", help="renew unchanged judged audits")
    parser.add_argument(
        "--before", type=Path, metavar="CHECKOUT", help="compare with the code there, run here"
    )
    parser.add_argument("--check", action="store_true", help=f"compare {AUDITS.name} and pages")
    return parser


if __name__ == "__main__":
    sys.exit(main())
