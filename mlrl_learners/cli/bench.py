"""`mlrl bench`: play a suite, list suites, compare results, play actors against each other."""

import argparse
import contextlib
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mlrl_learners.bench.compare import compare
from mlrl_learners.bench.measures import SuiteMeasures, measure_suite
from mlrl_learners.bench.results import read_result, write_result
from mlrl_learners.bench.reuse import reuse_episodes
from mlrl_learners.bench.suite import Suite, load_suite, suite_files
from mlrl_learners.bench.suite_folder import SuiteFolder
from mlrl_learners.bench.suite_run import RunSettings, play_suite
from mlrl_learners.cli import bench_crossplay
from mlrl_learners.cli.bench_actors import NamedActor
from mlrl_learners.cli.bench_checks import check_bench, default_folder
from mlrl_learners.cli.parser import at_least, print_json, print_table, printable
from mlrl_learners.config.option_places import merge_options
from mlrl_learners.config.overrides import split_overrides
from mlrl_learners.config.run import from_mapping
from mlrl_learners.config.yaml import parse_value
from mlrl_learners.errors import ConfigError
from mlrl_learners.figures.comparisons import check_statistics
from mlrl_learners.runs.files import RESULT_FILE
from mlrl_learners.types import Actor

__all__ = ["SECTIONS", "add_arguments", "run"]

SECTIONS: tuple[str, ...] = ("env", "learner", "ray")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    _add_run(actions)
    bench_crossplay.add_arguments(actions)
    listing = actions.add_parser("list", help="list the suites", description="list the suites")
    listing.add_argument("--json", action="store_true", help="print JSON")
    listing.set_defaults(action=_list)
    pair = actions.add_parser("compare", help="compare two results on their common tasks")
    pair.add_argument("first", type=Path, help="a result file of bench run")
    pair.add_argument("second", type=Path, help="another one")
    pair.add_argument("--allow-unequal", action="store_true", help="allow unequal budgets")
    pair.add_argument("--json", action="store_true", help="print JSON")
    pair.set_defaults(action=_compare)


def _add_run(actions: Any) -> None:  # noqa: ANN401 - the type is private to argparse
    runs = actions.add_parser("run", help="play a suite, or resume it")
    runs.epilog = "Options of the model can follow: --learner.sampling.temperature 0.7"
    runs.add_argument("--suite", required=True, help="name of a suite, or path of a suite file")
    runs.add_argument(
        "--actor",
        required=True,
        help="the actor, see mlrl list; {seed} is replaced by each seed, {env} by each environment",
    )
    runs.add_argument("--only", nargs="+", metavar="ENTRY", help="only these entries or ids")
    runs.add_argument("--name", help="name of the actor in the result")
    runs.add_argument("--note", default="", help="one line about the actor, for the leaderboard")
    runs.add_argument("--run-dir", type=Path, help="folder of the run; runs/bench/… by default")
    runs.add_argument("--out", type=Path, help="result file; RUN_DIR/result.json by default")
    runs.add_argument(
        "--reuse",
        type=Path,
        metavar="RESULT",
        help="take over the episodes of equal entries from a result of the same actor",
    )
    runs.add_argument("--greedy", action="store_true", help="greedy decoding instead of sampling")
    runs.add_argument("--batch-size", type=at_least(1), default=32, help="episodes per batch")
    runs.add_argument(
        "--attempts",
        type=at_least(1),
        default=3,
        help="attempts per episode if infrastructure fails",
    )
    runs.add_argument(
        "--measures",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="ask for moves in small games, and play games against a script",
    )
    runs.add_argument(
        "--engine",
        choices=("torch", "ray"),
        default="torch",
        help="who samples: this process, or processes of Ray (--ray.samplers 4)",
    )
    runs.add_argument("--json", action="store_true", help="print the result as JSON")
    runs.set_defaults(action=_run)


def run(arguments: argparse.Namespace, overrides: Sequence[str]) -> int:
    """Run the chosen action."""
    status: int = arguments.action(arguments, overrides)
    return status


def _run(arguments: argparse.Namespace, overrides: Sequence[str]) -> int:
    check_statistics()  # before anything is played
    suite = load_suite(arguments.suite)
    if arguments.only:
        suite = suite.only(arguments.only)
    with contextlib.ExitStack() as stack:
        prepare = _samplers(arguments.engine, overrides, stack)
        actor = NamedActor(arguments.actor, _options(overrides), arguments.name, prepare)
        return _run_suite(suite, actor, arguments)


def _run_suite(suite: Suite, actor: NamedActor, arguments: argparse.Namespace) -> int:
    settings = RunSettings(
        explore=not arguments.greedy,
        batch_size=arguments.batch_size,
        attempts=arguments.attempts,
        progress=True,
    )
    folder = arguments.run_dir or default_folder(suite, actor.name)
    path = arguments.out or folder / RESULT_FILE
    check_bench(path, [actor], suite)
    env_ids = [entry.env for entry in suite.entries]
    described = {**actor.describe(suite.seeds, env_ids), "note": arguments.note}
    with SuiteFolder(folder) as held:
        if arguments.reuse:
            added = reuse_episodes(arguments.reuse, suite, actor, described, held, settings)
            print(f"mlrl: {added} episodes of {arguments.reuse} are reused", file=sys.stderr)
        played = play_suite(suite, actor, held, settings)
        measures = None
        if arguments.measures:
            measures = measure_suite(suite, actor, played, folder, settings)
        result = write_result(path, suite, described, played, settings, measures=measures)
    if "token_budget" in described:
        print(
            f"mlrl: the learner of {actor.name} takes no max_new_tokens: its answers are not "
            "limited to the tokens of the suite",
            file=sys.stderr,
        )
    if arguments.json:
        print_json(result)
    else:
        _print(result, path)
    if result["complete"]:
        return 0
    print(f"mlrl: {_missing(result, measures)}; run the same command again", file=sys.stderr)
    return 1


def _missing(result: Mapping[str, Any], measures: SuiteMeasures | None) -> str:
    """Return what an incomplete result lacks, and why."""
    episodes = sum(entry["missing"] for entry in result["entries"])
    lacking = [f"{episodes} episodes"] if episodes else []
    if measures is not None and measures.failures:
        lacking.append(f"measures of {', '.join(measures.failures)}")
    cause = f": {result['failures'][0]['message']}" if result["failures"] else ""
    return f"{' and '.join(lacking)} are missing{cause}"


def _samplers(
    engine: str, overrides: Sequence[str], stack: contextlib.ExitStack
) -> Callable[[Actor], object] | None:
    """Return what lets Ray sample for an actor until the stack ends; None for this process.

    Raises:
        ConfigError: If an option of Ray is wrong, or has no effect.
    """
    given = [(key, text) for key, text in split_overrides(overrides) if key.startswith("ray.")]
    enabled = [("ray.enabled", "true")] if engine == "ray" else []
    words = [f"--{key}={text}" for key, text in (*given, *enabled)]
    config = from_mapping({"env": {"id": ""}}, words).ray
    config.check_read()
    if not config.enabled:
        return None
    if config.lag:
        raise ConfigError(f"ray.lag is of training, got {config.lag}: leave it out")
    from mlrl_learners.cluster.suite_samplers import SuiteSamplers

    return stack.enter_context(SuiteSamplers(config)).attach


def _options(overrides: Sequence[str]) -> dict[str, Any]:
    """Return the options of `--learner.NAME VALUE` overrides.

    Raises:
        ConfigError: If an option is one of the environment, which the suite sets, or names the
            learner or its model, which the actor does.
    """
    for key, _ in split_overrides(overrides):
        if key.startswith("env."):
            raise ConfigError(f"--{key} is set by the suite; change it there")
        if key.split(".")[:2] in (["learner", "name"], ["learner", "model"]):
            raise ConfigError(f"the actor is given: leave --{key} out")
    options: dict[str, Any] = {}
    for key, text in split_overrides(overrides):
        if key.startswith("ray."):
            continue
        group, _, field = key.split(".", 1)[1].removeprefix("options.").rpartition(".")
        value = {field: parse_value(text, key)}
        options = merge_options(options, {group: value} if group else value)
    return options


def _print(result: Mapping[str, Any], path: Path) -> None:
    rows = [
        (
            entry["name"],
            _with_interval(entry["mean"], entry["interval"]),
            _with_interval(entry["iqm"], entry["iqm_interval"]),
            _number(entry.get("solved_rate"), 2),
            entry["episodes"],
            entry["tokens"],
        )
        for entry in [*result["entries"], {"name": "all", **result["overall"]}]
    ]
    print_table(("entry", "mean return", "interquartile", "solved", "episodes", "tokens"), rows)
    _print_measures(result)
    left_out = sum(entry["left_out"] for entry in result["entries"])
    if left_out:
        print(f"{left_out} episodes left out: their tasks have no reference")
    print(f"{result['actor']['name']} on {result['suite']['name']}: {path}")


def _print_measures(result: Mapping[str, Any]) -> None:
    rows = [
        (entry["name"], name, f"{value:.3f}", _asked(entry["measures"], name))
        for entry in result["entries"]
        for name, value in entry.get("measures", {"figures": {}})["figures"].items()
    ]
    if rows:
        print()
        print_table(("game", "measure", "value", "estimated from"), rows)
        print()


def _asked(measures: Mapping[str, Any], name: str) -> str:
    is_policy = name.startswith(("nash_conv", "optimal", "vs_")) and "samples" in measures
    return f"{measures['samples']} answers for each information set" if is_policy else "episodes"


def _with_interval(value: float | None, interval: Sequence[float] | None) -> str:
    if value is None:
        return "none"
    if interval is None:
        return f"{value:.3f} [none]"
    return f"{value:.3f} [{interval[0]:.3f}, {interval[1]:.3f}]"


def _number(value: float | None, digits: int) -> str:
    return "none" if value is None else f"{value:.{digits}f}"


def _list(arguments: argparse.Namespace, _overrides: Sequence[str]) -> int:
    suites = {name: load_suite(name) for name in suite_files()}
    if arguments.json:
        print_json({name: {**each.as_dict(), "hash": each.hash} for name, each in suites.items()})
        return 0
    rows = [
        (f"{name} v{each.version}", len(each.entries), len(each.seeds), each.summary)
        for name, each in suites.items()
    ]
    print_table(("suite", "entries", "seeds", ""), rows)
    return 0


def _compare(arguments: argparse.Namespace, _overrides: Sequence[str]) -> int:
    found = compare(
        read_result(arguments.first),
        read_result(arguments.second),
        allow_unequal=arguments.allow_unequal,
    )
    if arguments.json:
        print_json(found)
        return 0
    rows = [
        (
            row.get("entry", "all"),
            row["tasks"],
            _number(row["first_mean"], 3),
            _number(row["second_mean"], 3),
            _with_interval(row["difference"], row["difference_interval"]),
            _with_interval(row["probability_of_improvement"], row["probability_interval"]),
            _number(row["p_value"], 4),
        )
        for row in [*found["entries"], found["overall"]]
    ]
    head = ("entry", "tasks", found["first"], found["second"], "difference", "P(better)", "p")
    print_table(head, rows)
    measures = [
        (row["entry"], name, f"{first:.3f}", f"{second:.3f}")
        for row in found["entries"]
        for name, (first, second) in row.get("measures", {}).items()
    ]
    if measures:
        print()
        print_table(("game", "measure", found["first"], found["second"]), measures)
    for warning in found["warnings"]:
        print(f"mlrl: {printable(warning)}", file=sys.stderr)
    return 0
