"""`mlrl audit`: attack the reward of an environment and compare with honest answers.

Games are audited by seats, see `mlrl_envs.audit_game`.
"""

import argparse
import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import mlrl_envs
from mlrl_learners.cli.early_checks import check_writable
from mlrl_learners.cli.parser import at_least, print_json
from mlrl_learners.config.run import from_mapping
from mlrl_learners.errors import ConfigError, RunDirError
from mlrl_learners.progress import progress_bar
from mlrl_learners.report.audit_chart import audit_chart
from mlrl_learners.report.game_audit_chart import game_audit_chart

__all__ = ["SECTIONS", "add_arguments", "run"]

SECTIONS: tuple[str, ...] = ("env",)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.epilog = "Options of the environment can follow: --env.split eval --env.max_turns 1"
    parser.add_argument("env", help="id of an environment, see mlrl list")
    parser.add_argument("--reward", help="mode of the reward, such as grounded or paper")
    parser.add_argument(
        "--attacks",
        help="names of families, separated by commas; default: all that apply",
    )
    parser.add_argument(
        "--budget", type=at_least(1), default=200, help="tries per task; default: 200"
    )
    parser.add_argument("--honest", type=Path, metavar="FILE", help="JSONL file of honest answers")
    parser.add_argument(
        "--tasks", type=at_least(1), default=8, help="number of attacked tasks; default: 8"
    )
    parser.add_argument("--seed", type=at_least(0), default=0, help="seed of tasks and attacks")
    parser.add_argument("--figure", type=Path, metavar="FILE.svg", help="also draw a figure")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")


def run(arguments: argparse.Namespace, overrides: Sequence[str]) -> int:
    """Audit the reward, print the report, then draw the figure."""
    if arguments.figure is not None:
        _check_figure(arguments.figure)
    config = from_mapping({"env": {"id": arguments.env}}, overrides)
    options = dict(config.env.options)
    if arguments.reward is not None:
        options["reward"] = arguments.reward
    env = mlrl_envs.make(config.env.location, **options)
    with contextlib.closing(env):
        report, draw = _audited(env, arguments)
    if arguments.json:
        print_json({"options": options, **report.to_json()})
    else:
        print(report.table())
    if arguments.figure is not None:
        try:
            arguments.figure.write_text(draw(), "utf-8")
        except OSError as error:
            raise RunDirError(f"cannot write {str(arguments.figure)!r}: {error}") from error
    return 0


def _check_figure(path: Path) -> None:
    """Check the file of the figure before the search, which may take long.

    Raises:
        ConfigError: If it has another suffix, or its folder is missing.
        RunDirError: If files cannot be written into its folder.
    """
    if path.suffix != ".svg":
        raise ConfigError(f"--figure draws NAME.svg, got {str(path)!r}")
    if not path.parent.is_dir():
        raise ConfigError(f"--figure {str(path)!r} needs the folder {str(path.parent)!r}; make it")
    check_writable(path.parent)


def _audited(env: Any, arguments: argparse.Namespace) -> tuple[Any, Callable[[], str]]:  # noqa: ANN401
    """Return the report of an environment, and a function that draws it."""
    with contextlib.ExitStack() as stack:
        bars: list[Any] = []

        def show(tries: int) -> None:
            if not bars:  # mistakes are reported before the bar appears
                known = getattr(env, "num_tasks", None)
                count = min(arguments.tasks, known) if isinstance(known, int) else arguments.tasks
                total = arguments.budget * count
                bars.append(stack.enter_context(progress_bar(total=total, description="audit")))
            bars[0].update(tries)

        common: dict[str, Any] = {
            "attacks": _names(arguments.attacks),
            "budget": arguments.budget,
            "tasks": arguments.tasks,
            "seed": arguments.seed,
            "progress": show,
        }
        if not mlrl_envs.is_game(env):
            report = mlrl_envs.audit(env, honest=arguments.honest, **common)
            return report, lambda: audit_chart(report)
        if arguments.honest is not None:
            raise ConfigError("--honest does not apply to games: their best script plays honestly")
        found = mlrl_envs.audit_game(env, **common)
        return found, lambda: game_audit_chart(found)


def _names(attacks: str | None) -> list[str] | None:
    return None if attacks is None else [name.strip() for name in attacks.split(",")]
