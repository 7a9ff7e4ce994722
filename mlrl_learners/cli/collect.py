"""`mlrl collect`: play a split and write the episodes to a file."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import mlrl_envs
from mlrl_learners.cli.actors import make_actor, options_of
from mlrl_learners.cli.early_checks import check_episodes_file
from mlrl_learners.cli.parser import at_least, print_json
from mlrl_learners.config.env import with_default_split
from mlrl_learners.config.run import from_mapping
from mlrl_learners.evaluation.collect import TRAINING_SPLIT, CollectionResult, collect
from mlrl_learners.seeding import MOST_SEED

__all__ = ["SECTIONS", "add_arguments", "run"]

SECTIONS: tuple[str, ...] = ("env", "learner")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.epilog = "Options of the environment can follow: --env.max_turns 2 --env.split all"
    parser.add_argument("env", help="id of an environment, see mlrl list")
    parser.add_argument("--actor", required=True, help="the actor, see mlrl list")
    parser.add_argument("--out", type=Path, required=True, help="JSONL file to write")
    parser.add_argument(
        "--filter-reward", type=float, help="keep episodes whose team return is at least this"
    )
    parser.add_argument("--tasks", type=at_least(1), help="play only the first TASKS tasks")
    parser.add_argument("--samples", type=at_least(1), default=1, help="episodes per task")
    parser.add_argument("--seed", type=at_least(0, MOST_SEED), default=0, help="random seed")
    parser.add_argument("--greedy", action="store_true", help="greedy decoding instead of sampling")
    parser.add_argument("--token-ids", action="store_true", help="write token ids as well")
    parser.add_argument("--resume", action="store_true", help="continue after the last full line")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def run(arguments: argparse.Namespace, overrides: Sequence[str]) -> int:
    """Play the split, write the episodes and print their number; 1 if some were left out."""
    check_episodes_file(arguments.out)
    config = from_mapping({"env": {"id": arguments.env}}, overrides)
    options = with_default_split(config.env.location, config.env.options, TRAINING_SPLIT)
    env = mlrl_envs.make(config.env.location, **options)
    agents = list(env.possible_agents)
    env.close()
    given = options_of(config.learner)
    actor = make_actor(arguments.actor, agents, seed=arguments.seed, options=given)
    result = collect(
        env_id=config.env.id,
        actor=actor,
        out=arguments.out,
        actor_name=" ".join([arguments.actor, *(f"{k}={v}" for k, v in given.items())]),
        split=options.pop("split", None),
        env_options=options,
        env_server=config.env.server,
        filter_reward=arguments.filter_reward,
        samples=arguments.samples,
        tasks=arguments.tasks,
        seed=arguments.seed,
        explore=not arguments.greedy,
        token_ids=arguments.token_ids,
        resume=arguments.resume,
        progress=True,
    )
    if arguments.json:
        print_json(
            {
                "path": str(result.path),
                "episodes": result.episodes,
                "played": result.played,
                "kept": result.kept,
                "failures": [failure.message for failure in result.failures],
            }
        )
    else:
        _print(result)
    return 1 if result.failures else 0


def _print(result: CollectionResult) -> None:
    print(f"kept {result.kept} of {result.played} episodes, {result.episodes} in {result.path}")
    if result.failures:
        left_out = f"{len(result.failures)} left out: {result.failures[0].message}"
        print(f"mlrl: {left_out}", file=sys.stderr)
