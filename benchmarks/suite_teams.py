"""Teams of the leaderboard: one for each environment of the suite `writing`.

    python -m benchmarks.suite_teams [--envs story tldr arxiv debate] [--seeds 0]
        [--runs runs/suite-teams]
    mlrl bench run --suite writing --actor 'runs/suite-teams/{env}-0' --name 'trained: magrpo'

Two copies of SmolLM2-135M-Instruct learn by `magrpo` on the train split of each environment, with
the token budget of the suite and the same number of updates. TLDR and arXiv are learnt with
`assignment`, because policies write about their assignment without it, and debates with
`vocabulary="topic"`, because most arguments earn nothing without it; the suite scores without these
options. Interrupted runs are resumed. A run takes half an hour (stories) to an hour on one core.
With fewer environments, play those with `--only`.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.kept_runs import finish_all
from benchmarks.text_curves import DEBATES, MODEL, OPTIONS, PAIRS
from mlrl_learners.bench.suite import load_suite
from mlrl_learners.config.option_places import merge_options
from mlrl_learners.config.run import EnvConfig, LearnerConfig, RunConfig, TrainConfig

__all__ = ["TEAMS", "main", "run_config"]

SUITE, ITERATIONS = "writing", 10
TEAMS: Mapping[str, tuple[Mapping[str, Any], Mapping[str, Any], int]] = {
    "story": ({}, PAIRS, 4),
    "tldr": ({"assignment": True}, PAIRS, 4),
    "arxiv": ({"assignment": True}, PAIRS, 4),
    "debate": ({"vocabulary": "topic"}, DEBATES, 2),
}
"""Options of the environment, options of the learner, and tasks of an update."""
# A processor without bfloat16 instructions computes float32 faster than bfloat16.
PRECISION = {"compute": {"precision": "float32"}}


def main(argv: Sequence[str] | None = None) -> int:
    """Train the missing runs, and return whether all are finished."""
    parser = argparse.ArgumentParser(description="Train the teams of the suite `writing`.")
    parser.add_argument("--envs", nargs="+", choices=list(TEAMS), default=list(TEAMS))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--runs", type=Path, default=Path("runs/suite-teams"))
    arguments = parser.parse_args(argv)
    runs = [
        (run_config(name, seed), arguments.runs / f"{name}-{seed}")
        for seed in arguments.seeds
        for name in arguments.envs
    ]
    return 0 if finish_all(runs) else 130


def run_config(name: str, seed: int) -> RunConfig:
    """Return the configuration of a run.

    Args:
        name: A name of `TEAMS`.
        seed: Seed of the task order and of all sampling.
    """
    options, method, tasks = TEAMS[name]
    entry = next(each for each in load_suite(SUITE).entries if f"/{name}-" in each.env)
    budget = {"sampling": {"max_new_tokens": entry.budget.tokens}}
    learner = merge_options(OPTIONS, method, budget, PRECISION)
    env = {"split": "train", "max_turns": entry.budget.turns, **entry.options, **options}
    train = TrainConfig(
        iterations=ITERATIONS,
        tasks_per_iteration=tasks,
        seed=seed,
        checkpoint_every=5,
        keep_checkpoints=1,
    )
    return RunConfig(
        EnvConfig(entry.env, env), LearnerConfig("magrpo", MODEL, learner), train=train
    )


if __name__ == "__main__":
    sys.exit(main())
