"""`mlrl bench crossplay`: play every actor against every other, in every seat."""

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mlrl_envs.workflows import with_graph
from mlrl_learners.bench.crossplay import crossplay, crossplay_suite
from mlrl_learners.bench.results import write_json
from mlrl_learners.bench.suite import Budget, Entry
from mlrl_learners.bench.suite_run import RunSettings
from mlrl_learners.cli.actors import options_of, unwrapped
from mlrl_learners.cli.bench_actors import NamedActor, short_name, takes_options
from mlrl_learners.cli.bench_checks import check_bench
from mlrl_learners.cli.parser import at_least, print_json, print_table
from mlrl_learners.config.ray import RayConfig
from mlrl_learners.config.run import from_mapping
from mlrl_learners.errors import ConfigError
from mlrl_learners.runs.files import CROSSPLAY_FILE
from mlrl_learners.seeding import MOST_SEED

__all__ = ["add_arguments"]


def add_arguments(actions: Any) -> None:  # noqa: ANN401 - the type is private to argparse
    """Add the action and its options."""
    cross = actions.add_parser("crossplay", help="play all actors against each other, or resume it")
    cross.epilog = "Options can follow: --env.num_piles 2 --learner.sampling.temperature 0.7"
    cross.add_argument("env", help="id of an environment with at least 2 agents, see mlrl list")
    cross.add_argument(
        "--actors", nargs="+", required=True, metavar="ACTOR", help="the actors, see mlrl list"
    )
    cross.add_argument("--split", default="eval", help="split to play; default: eval")
    cross.add_argument("--tasks", type=at_least(1), default=50, help="tasks of a match; default 50")
    cross.add_argument("--samples", type=at_least(1), default=1, help="episodes per task and seed")
    cross.add_argument(
        "--seeds", type=at_least(0, MOST_SEED), nargs="+", default=[0], help="random seeds"
    )
    cross.add_argument("--tokens", type=at_least(1), default=32, help="longest answer in tokens")
    cross.add_argument("--run-dir", type=Path, help="folder; runs/crossplay/ENV by default")
    cross.add_argument("--out", type=Path, help="result file; RUN_DIR/crossplay.json by default")
    cross.add_argument("--greedy", action="store_true", help="greedy decoding instead of sampling")
    cross.add_argument("--batch-size", type=at_least(1), default=32, help="episodes per batch")
    cross.add_argument(
        "--attempts", type=at_least(1), default=3, help="attempts per episode if it fails"
    )
    cross.add_argument("--json", action="store_true", help="print the result as JSON")
    cross.set_defaults(action=_crossplay)


def _crossplay(arguments: argparse.Namespace, overrides: Sequence[str]) -> int:
    config = from_mapping({"env": {"id": arguments.env}}, overrides)
    if config.ray != RayConfig():
        raise ConfigError("bench crossplay samples in this process: leave the options of ray out")
    options = with_graph(config.env.options)
    split = str(options.pop("split", arguments.split))
    turns = options.pop("max_turns", None)
    budget = Budget(turns, arguments.tokens, arguments.samples)
    entry = Entry(arguments.env, split, arguments.tasks, options, budget)
    sources = _sources(arguments.actors, options_of(config.learner))
    settings = RunSettings(
        explore=not arguments.greedy,
        batch_size=arguments.batch_size,
        attempts=arguments.attempts,
        progress=False,
    )
    slug = arguments.env.rpartition("/")[2]
    folder = arguments.run_dir or Path("runs") / "crossplay" / slug
    suite = crossplay_suite(entry, arguments.seeds)
    path = arguments.out or folder / CROSSPLAY_FILE
    check_bench(path, sources, suite)
    result = crossplay(suite, sources, folder, settings)
    write_json(path, result)
    if arguments.json:
        print_json(result)
    else:
        _print(result)
        print(f"{len(sources)} actors on {arguments.env}: {path}")
    if result["complete"]:
        return 0
    missing = sum(match["missing"] for match in result["matches"])
    causes = [cause for match in result["matches"] for cause in match["failures"]]
    cause = f": {causes[0]}" if causes else ""
    print(
        f"mlrl: {missing} episodes are missing{cause}; run the same command again to play them",
        file=sys.stderr,
    )
    return 1


def _sources(words: Sequence[str], options: Mapping[str, Any]) -> list[NamedActor]:
    """Return the actors; where short names are equal, their words are the names."""
    given = [(word, options if takes_options(unwrapped(word)[1]) else {}) for word in words]
    short = [NamedActor(word, own).name for word, own in given]
    return [
        NamedActor(word, own, short_name(word) if short.count(name) > 1 else None)
        for (word, own), name in zip(given, short, strict=True)
    ]


def _print(result: Mapping[str, Any]) -> None:
    names, matrix, elo = result["actors"], result["matrix"], result["elo"]
    if matrix is None:
        return
    header = ("mean return against", *names, "Elo", "NashConv")
    rows = []
    for row, name in enumerate(names):
        cells = [_cell(matrix, ".3f", row, column) for column in range(len(names))]
        exact = result["nash_conv"][name]
        shown = "none" if exact is None else f"{exact:.4f}"
        rows.append((name, *cells, _cell(elo, ".0f", row), shown))
    print_table(header, rows)


def _cell(table: Mapping[str, Any], form: str, *place: int) -> str:
    def at(values: Any) -> float:  # noqa: ANN401 - nested lists of numbers
        for index in place:
            values = values[index]
        return float(values)

    mean = format(at(table["mean"]), form)
    if table["low"] is None:
        return mean
    return f"{mean} [{at(table['low']):{form}}, {at(table['high']):{form}}]"
