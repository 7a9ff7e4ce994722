"""Teams of the leaderboard: one for each environment of the suite `writing`.

    python -m benchmarks.learning.suite_teams [--envs story tldr arxiv debate]
        [--methods magrpo sft ippo one-magrpo] [--seeds 0 1 2] [--runs runs/suite-teams]
    mlrl bench run --suite writing --actor 'runs/suite-teams/{env}-magrpo-{seed}'
        --name 'trained: magrpo'
    mlrl bench run --suite writing --actor 'pipeline:runs/suite-teams/{env}-one-magrpo-{seed}'
        --name 'trained: one agent, magrpo' --only mlrl/story-v1:test

Two copies of SmolLM2-135M-Instruct learn on the train split of each environment, with the options
and the token budget of the suite and the same number of updates. In an update, all methods sample
as many answers: `magrpo` and `sft` several of a task, `ippo` one of each of more tasks. `sft`
imitates the answers that earned most. `one-magrpo` is one agent with one model: in the workflow
`pipeline` it writes the first text, reads it, and writes the second; whole episodes are compared.
No agent debates for both sides.

Debates are learnt with `vocabulary="topic"`, because most arguments earn nothing without it; the
suite scores without it. Interrupted runs are resumed. A run of `magrpo` takes half an hour
(stories) to an hour on one core. With fewer environments, play those with `--only`; with fewer
seeds than the suite has, write a number in place of `{seed}`.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.learning.texts import DEBATES, MODEL, OPTIONS, PAIRS
from benchmarks.shared.kept_runs import finish_all
from mlrl_learners.bench.suite import load_suite
from mlrl_learners.config.option_places import merge_options
from mlrl_learners.config.run import EnvConfig, LearnerConfig, RunConfig, TrainConfig

__all__ = ["METHODS", "TEAMS", "Team", "main", "methods_of", "run_config"]

SUITE, ITERATIONS = "writing", 10
ONE_AGENT = "one-magrpo"
METHODS = ("magrpo", "sft", "ippo", ONE_AGENT)


@dataclass(frozen=True)
class Team:
    """What a team learns.

    Attributes:
        env: Options of the environment besides those of the suite.
        groups: Options of `magrpo`: which answers are compared.
        tasks: Tasks of an update of `magrpo` and `sft`.
        answers: Answers of each agent to a task in such an update.
        good: Lowest return that `sft` imitates. A fifth of the texts of the untrained model earn
            it; how many debates do was not measured.
    """

    env: Mapping[str, Any]
    groups: Mapping[str, Any]
    tasks: int
    answers: int
    good: float


TEAMS: Mapping[str, Team] = {
    "story": Team({}, PAIRS, 4, 6, good=0.35),
    "tldr": Team({}, PAIRS, 4, 6, good=0.3),
    "arxiv": Team({}, PAIRS, 4, 6, good=0.14),
    "debate": Team({"vocabulary": "topic"}, DEBATES, 2, 8, good=0.5),
}
# A processor without bfloat16 instructions computes float32 faster than bfloat16.
PRECISION = {"compute": {"precision": "float32"}}


def main(argv: Sequence[str] | None = None) -> int:
    """Train the missing runs, and return whether all are finished."""
    parser = argparse.ArgumentParser(description="Train the teams of the suite `writing`.")
    parser.add_argument("--envs", nargs="+", choices=list(TEAMS), default=list(TEAMS))
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=["magrpo"])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--runs", type=Path, default=Path("runs/suite-teams"))
    arguments = parser.parse_args(argv)
    runs = [
        (run_config(name, seed, method), arguments.runs / f"{name}-{method}-{seed}")
        for seed in arguments.seeds
        for method in arguments.methods
        for name in arguments.envs
        if method in methods_of(name)
    ]
    if not runs:
        parser.error("no agent writes for both sides of a debate: choose other --envs or --methods")
    return 0 if finish_all(runs) else 130


def methods_of(name: str) -> tuple[str, ...]:
    """Return the methods of an environment, a name of `TEAMS`."""
    return tuple(each for each in METHODS if each != ONE_AGENT or name != "debate")


def run_config(name: str, seed: int, method: str = "magrpo") -> RunConfig:
    """Return the configuration of a run.

    Args:
        name: A name of `TEAMS`.
        seed: Seed of the task order and of all sampling.
        method: A name of `methods_of(name)`.
    """
    team = TEAMS[name]
    entry = next(each for each in load_suite(SUITE).entries if f"/{name}-" in each.env)
    budget = {"sampling": {"max_new_tokens": entry.budget.tokens}}
    learner = merge_options(_method_options(team, method), budget, PRECISION)
    env = {"split": "train", "max_turns": entry.budget.turns, **entry.options, **team.env}
    if method == ONE_AGENT:
        env["workflow"] = "pipeline"
    train = TrainConfig(
        iterations=ITERATIONS,
        tasks_per_iteration=team.tasks * (team.answers if method == "ippo" else 1),
        seed=seed,
        checkpoint_every=5,
        keep_checkpoints=1,
    )
    algorithm = "magrpo" if method == ONE_AGENT else method
    return RunConfig(
        EnvConfig(entry.env, env), LearnerConfig(algorithm, MODEL, learner), train=train
    )


def _method_options(team: Team, method: str) -> dict[str, Any]:
    if method == "magrpo":
        return merge_options(OPTIONS, team.groups)
    if method == ONE_AGENT:
        one_model = {"team": {"share_weights": True}}
        return merge_options(OPTIONS, DEBATES, {"group": {"rollouts": team.answers}}, one_model)
    shared = {name: OPTIONS[name] for name in ("sampling", "optimizer")}
    if method == "sft":
        own = {
            "group": {"size": team.answers},
            "examples": {"filter_reward": team.good},
            "optimizer": {"lr": 2e-5},  # with 8e-5 stories fall from 0.2 to 0.1 after seven updates
        }
        return merge_options(shared, own)
    # One step per update, as with the other methods; a value head, because separate critics would
    # double the memory.
    own = {"critic": {"kind": "value_head"}, "optimizer": {"epochs": 1}, "group": {"size": 1}}
    return merge_options(shared, own)


if __name__ == "__main__":
    sys.exit(main())
