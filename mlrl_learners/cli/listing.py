"""`mlrl list`: list environments, learners, actors and presets."""

import argparse
import inspect
from collections.abc import Sequence

import mlrl_envs
from mlrl_envs.errors import MlrlError
from mlrl_learners.cli.actors import SUMMARIES
from mlrl_learners.cli.parser import print_json, print_table
from mlrl_learners.config.presets import presets
from mlrl_learners.registry import registry

__all__ = ["SECTIONS", "add_arguments", "run"]

SECTIONS: tuple[str, ...] = ()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(arguments: argparse.Namespace, _overrides: Sequence[str]) -> int:
    """Print one line for each environment, learner, actor and preset."""
    sections = {
        "environments": {env_id: _env_summary(env_id) for env_id in mlrl_envs.registry},
        "learners": {name: spec.summary for name, spec in registry.items()},
        "actors": SUMMARIES,
        "presets": presets(),
    }
    if arguments.json:
        print_json(
            {
                section: [{"name": name, "summary": text} for name, text in names.items()]
                for section, names in sections.items()
            }
        )
        return 0
    for section, names in sections.items():
        print_table((section, ""), [(f"  {name}", text) for name, text in names.items()])
        print()
    return 0


def _env_summary(env_id: str) -> str:
    """Return the first line of the docstring of the environment's module."""
    try:
        factory = mlrl_envs.registry[env_id].load()
    except MlrlError as error:  # a broken plug-in must not hide the other entries
        return f"cannot be made: {error}"
    # Entry points of task families are class methods that are inherited from another module.
    module = inspect.getmodule(getattr(factory, "__self__", factory))
    page = inspect.getdoc(module) or inspect.getdoc(factory) or ""
    return page.split("\n", 1)[0]
