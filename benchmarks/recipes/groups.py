"""Kinds of groups on toys: whose mean and deviation an advantage is relative to.

Dr. MAS (arXiv 2602.08847) compares all steps of an agent over a task, each step with equal weight,
and does not measure the other choices. Here `magrpo` trains with every `baseline.group_by` and
`baseline.weight_by`, on equal numbers of answers: 8 chains of one task, 2 answers per prompt.

    nice -n 10 python -m benchmarks.recipes.groups --publish

`--publish` writes `benchmarks/recipes/groups.json`, and the table into `docs/learners.md`. It takes
minutes on one thread.
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

import mlrl_learners
from benchmarks.perf.table import between
from benchmarks.recipes.toys import PAGE
from benchmarks.shared.intervals import half_width
from mlrl_learners.figures.means import mean
from mlrl_learners.play.rollout import collect_rollouts
from mlrl_learners.testing.toy_env import ToyEnv
from mlrl_learners.testing.toy_model import toy_model
from mlrl_learners.testing.toy_training import mean_return
from mlrl_learners.testing.toys import TOYS

__all__ = ["GROUPS", "RESULTS", "main", "run", "table"]

RESULTS = Path(__file__).with_name("groups.json")
BEGIN, END = "<!-- groups: begin -->", "<!-- groups: end -->"
AGENTS = ("left", "right")
ROLLOUTS = 8
GROUPS = (
    ("node", "step"),
    ("agent_turn", "step"),
    ("agent", "step"),
    ("agent", "trajectory"),
    ("task", "step"),
    ("task", "trajectory"),
    ("anchor", "step"),
)
"""`baseline.group_by` and `baseline.weight_by`; a weight has no effect on the other groups."""


def run(group_by: str, weight_by: str, *, toy: str, seed: int, updates: int) -> float:
    """Train `magrpo` on a toy and return its mean return.

    Args:
        group_by: Answers that share a mean and a deviation.
        weight_by: Whether answers or episodes count once.
        toy: Name of the toy.
        seed: Seed of the model and of everything that is sampled.
        updates: Number of updates of 8 rollouts.
    """
    learner: Any = mlrl_learners.make(
        "magrpo",
        agents=AGENTS,
        model=toy_model(seed),
        seed=seed,
        group={"size": 2, "rollouts": ROLLOUTS, "branching": "chain"},
        baseline={"group_by": group_by, "weight_by": weight_by, "normalize_std": True},
        optimizer={"lr": 1e-2},
        sampling={"max_new_tokens": 1, "top_p": 1.0, "temperature": 1.0},
        compute={"device": "cpu"},
    )
    for number in range(updates):
        played = collect_rollouts(
            [ToyEnv(TOYS[toy], AGENTS) for _ in range(ROLLOUTS)],
            learner,
            learner.rollout,
            task_options=[{}] * ROLLOUTS,
            seeds=[number] * ROLLOUTS,
        )
        learner.update(played.rollouts)
    return mean_return(TOYS[toy], learner, AGENTS, seed=seed)


def table(found: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """Return the results as a Markdown table: mean over seeds and 95 % interval.

    Args:
        found: For each toy a row for each kind of group, with `returns` by seed.
    """
    lines = [
        "| group_by | weight_by | "
        + " | ".join(f"`{toy}`, best {TOYS[toy].optimum:.2f}" for toy in found)
        + " |",
        "|---|---|" + "---|" * len(found),
    ]
    for rows in zip(*found.values(), strict=True):
        cells = " | ".join(_cell(row["returns"]) for row in rows)
        lines.append(f"| `{rows[0]['group_by']}` | `{rows[0]['weight_by']}` | {cells} |")
    return "\n".join(lines)


def _cell(returns: Sequence[float]) -> str:
    width = half_width(returns)
    return f"{mean(returns):.2f}" + ("" if width is None else f" ± {width:.2f}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Train with every kind of group, print the table, and publish it if asked."""
    parser = argparse.ArgumentParser(prog="benchmarks.recipes.groups", description=__doc__)
    parser.add_argument("--seeds", type=int, default=3, help="number of seeds")
    parser.add_argument("--updates", type=int, default=60, help="updates per run")
    parser.add_argument(
        "--toys", nargs="+", choices=sorted(TOYS), default=["relay", "late_cost", "doors"]
    )
    parser.add_argument("--publish", action="store_true", help="write the results and the table")
    given = parser.parse_args(arguments)
    torch.set_num_threads(1)
    found = {toy: [_row(*group, toy, given) for group in GROUPS] for toy in given.toys}
    print(table(found))
    if given.publish:
        whole = {"updates": given.updates, "seeds": given.seeds, "toys": found}
        RESULTS.write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")
        page = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(between(page, BEGIN, END, table(found)), encoding="utf-8")
    return 0


def _row(group_by: str, weight_by: str, toy: str, given: argparse.Namespace) -> dict[str, Any]:
    returns = [
        run(group_by, weight_by, toy=toy, seed=seed, updates=given.updates)
        for seed in range(given.seeds)
    ]
    return {"group_by": group_by, "weight_by": weight_by, "returns": [round(r, 4) for r in returns]}


if __name__ == "__main__":
    raise SystemExit(main())
