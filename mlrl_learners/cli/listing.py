"""`mlrl list`: environments, learners, actors, workflows, presets, and the options of a learner."""

import argparse
import inspect
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import mlrl_envs
from mlrl_envs.errors import MlrlError
from mlrl_envs.workflows import SHAPES
from mlrl_learners.cli.actors import SUMMARIES
from mlrl_learners.cli.parser import print_json, print_table
from mlrl_learners.config.groups import Option, OptionGroup, option_groups
from mlrl_learners.config.option_places import has_groups
from mlrl_learners.config.presets import presets
from mlrl_learners.errors import unknown_name
from mlrl_learners.registry import registry

__all__ = ["SECTIONS", "add_arguments", "run"]

SECTIONS: tuple[str, ...] = ()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("name", nargs="?", help="a learner, whose options are shown in groups")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(arguments: argparse.Namespace, _overrides: Sequence[str]) -> int:
    """Print one line for each environment, learner, actor, and so on, or one learner's options.

    Raises:
        UnknownNameError: If there is no learner of the given name.
    """
    if arguments.name is not None:
        return _show(arguments.name, as_json=arguments.json)
    sections = {
        "environments": {env_id: _env_summary(env_id) for env_id in mlrl_envs.registry},
        "learners": {name: spec.summary for name, spec in registry.items()},
        "actors": SUMMARIES,
        "workflows": {name: each.summary for name, each in SHAPES.items()},
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


def _show(name: str, *, as_json: bool) -> int:
    """Print the options of a learner: name, default and description, in groups."""
    if name not in registry:
        raise unknown_name("learner", name, registry)
    summary, groups = registry[name].summary, _groups(name)
    if as_json:
        found = [{**group._asdict(), "options": _as_json(group)} for group in groups]
        print_json({"name": name, "summary": summary, "groups": found})
        return 0
    print(f"{name}: {summary}")
    for group in groups:
        print(f"\n{group.name or 'options'}: {group.summary}")
        rows = [(f"  {each.name}", _text(each.default), each.meaning) for each in group.options]
        print_table(("  option", "default", "meaning"), rows)
    return 0


def _groups(name: str) -> list[OptionGroup]:
    """Return the groups of a built-in learner, or the keywords of another one."""
    if has_groups(name):
        from mlrl_learners.algorithms.learner_configs import default_config

        return list(option_groups(default_config(name)))
    factory = registry[name].load()
    options = [
        Option(each.name, "", None if each.default is each.empty else each.default, "")
        for each in inspect.signature(factory).parameters.values()
        if each.name not in ("agents", "model", "seed")
    ]
    page = (inspect.getdoc(factory) or "").split("\n", 1)[0]
    return [OptionGroup("", page, tuple(options))]


def _as_json(group: OptionGroup) -> list[dict[str, Any]]:
    return [{**each._asdict(), "default": _plain(each.default)} for each in group.options]


def _plain(value: object) -> object:
    """Return a default as a JSON value; infinity becomes text."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return list(value)
    return value if not isinstance(value, float) or math.isfinite(value) else str(value)


def _text(value: object) -> str:
    """Return a default as YAML writes it, on one line."""
    plain = _plain(value)
    return str(plain) if isinstance(plain, str) and plain else json.dumps(plain)


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
