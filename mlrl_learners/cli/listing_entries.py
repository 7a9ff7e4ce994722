"""Entries of `mlrl list NAME`: what a name stands for, and its options in groups."""

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, fields
from typing import Any, NamedTuple

import mlrl_envs
from mlrl_envs.errors import MlrlError
from mlrl_envs.models import Endpoint
from mlrl_envs.naming import config_of, scripts_of
from mlrl_envs.references import import_reference, is_reference
from mlrl_envs.workflows import SHAPES
from mlrl_learners.bench.suite import load_suite, suite_files
from mlrl_learners.cli.actors import SCRIPT, SERVED, SUMMARIES
from mlrl_learners.config.groups import (
    Option,
    OptionGroup,
    described,
    described_signature,
    field_docs,
    option_groups,
    summary_of,
)
from mlrl_learners.config.option_places import has_groups
from mlrl_learners.config.presets import presets, read_source
from mlrl_learners.config.run import SECTIONS
from mlrl_learners.errors import unknown_name
from mlrl_learners.loggers import LOGGERS
from mlrl_learners.registry import registry

__all__ = ["Entry", "entry_of", "env_summary", "listing"]

GIVEN = ("self", "agents", "model", "seed")


class Entry(NamedTuple):
    """What a name stands for.

    Attributes:
        name: The name.
        summary: One line about it.
        groups: Its options, in groups.
    """

    name: str
    summary: str
    groups: list[OptionGroup]


def listing() -> dict[str, dict[str, str]]:
    """Return all names with a line about each, by kind."""
    scripts: dict[str, list[str]] = {}
    for env_id in mlrl_envs.registry:
        for script in _scripts(env_id):
            scripts.setdefault(f"{SCRIPT}:{script}", []).append(env_id)
    return {
        "environments": {env_id: env_summary(env_id) for env_id in mlrl_envs.registry},
        "learners": {name: spec.summary for name, spec in registry.items()},
        "actors": SUMMARIES,
        "scripts": {name: f"plays {', '.join(env_ids)}" for name, env_ids in scripts.items()},
        "opponents": {
            "latest": "the learner's current weights",
            "snapshots": "past weights of the learner; mlrl list opponents",
            "ACTOR": "any actor",
        },
        "workflows": {name: shape.summary for name, shape in SHAPES.items()},
        "suites": {name: load_suite(name).summary for name in suite_files()},
        "loggers": {**dict.fromkeys(LOGGERS, "mlrl list logging"), "MODULE:FUNCTION": "your own"},
        "sections": {name: summary_of(kind) for name, kind in SECTIONS.items()},
        "presets": presets(),
    }


def entry_of(name: str) -> Entry:
    """Return what a name of `mlrl list`, or a reference, stands for.

    Raises:
        UnknownNameError: If there is no such name.
    """
    prefixes = {word.partition(":")[0] for word in SUMMARIES if ":" in word}
    if name.partition(":")[0] in prefixes:
        return _actor(name)
    if is_reference(name):
        return _learner(name) if _makes_learner(import_reference(name)) else _env(name)
    finders: list[tuple[Mapping[str, Any], Callable[[str], Entry]]] = [
        (registry, _learner),
        (mlrl_envs.registry, _env),
        (SHAPES, _workflow),
        (suite_files(), _suite),
        (presets(), _preset),
        (SECTIONS, _section),
        (dict.fromkeys((*LOGGERS, "loggers")), lambda _: _section("logging")),
        (SUMMARIES, _actor),
    ]
    for names, make in finders:
        if name in names:
            return make(name)
    raise unknown_name("name", name, {each for names, _ in finders for each in names})


def env_summary(env_id: str) -> str:
    """Return the first line of the docstring of the environment's module."""
    try:
        factory = mlrl_envs.registry[env_id].load()
    except MlrlError as error:  # a broken plug-in must not hide the other entries
        return f"cannot be made: {error}"
    # Entry points of task families are class methods that are inherited from another module.
    module = inspect.getmodule(getattr(factory, "__self__", factory))
    page = inspect.getdoc(module) or inspect.getdoc(factory) or ""
    return page.split("\n", 1)[0]


def _scripts(env_id: str) -> list[str]:
    try:
        return scripts_of(env_id)
    except MlrlError:
        return []


def _makes_learner(found: object) -> bool:
    return hasattr(found, "update") or (
        not hasattr(found, "step") and "agents" in inspect.signature(found).parameters  # type: ignore[arg-type]
    )


def _learner(name: str) -> Entry:
    spec = registry[name]
    if not has_groups(name):
        group = described_signature(spec.load(), GIVEN)
        return Entry(name, spec.summary or group.summary, [group])
    spec.load()  # says which package is missing
    from mlrl_learners.algorithms.learner_configs import default_config

    return Entry(name, spec.summary, list(option_groups(default_config(name))))


def _env(env_id: str) -> Entry:
    config = config_of(env_id)
    if config is None:
        group = described_signature(mlrl_envs.registry[env_id].load())
    else:
        group = described(config)
    groups = [group]
    if scripts := _scripts(env_id):
        rows = [Option(f"{SCRIPT}:{each}", "", "", "") for each in scripts]
        groups.append(OptionGroup("scripts", "scripted players, for --actor", tuple(rows)))
    return Entry(env_id, env_summary(env_id), groups)


def _workflow(name: str) -> Entry:
    shape = SHAPES[name]
    rows = [Option(option, "", default, "") for option, default in shape.options.items()]
    group = OptionGroup("workflow", "options of the graph: --env.workflow.OPTION", tuple(rows))
    return Entry(name, shape.summary, [group])


def _suite(name: str) -> Entry:
    suite = load_suite(name)
    rows = []
    for each in suite.entries:
        budget = ", ".join(f"{k} {v}" for k, v in asdict(each.budget).items() if v is not None)
        tasks = "all tasks" if each.tasks is None else f"{each.tasks} tasks"
        rows.append(Option(each.name, "", tasks, ", ".join([budget, *_pairs(each.options)])))
    seeds = ", ".join(map(str, suite.seeds))
    group = OptionGroup("entries", f"each with the seeds {seeds}", tuple(rows))
    return Entry(name, f"{suite.summary} (version {suite.version})", [group])


def _preset(name: str) -> Entry:
    rows = [Option(key, "", value, "") for key, value in _flat(read_source(name))]
    return Entry(name, presets()[name], [OptionGroup("values", "of its keys", tuple(rows))])


def _section(name: str) -> Entry:
    kind = SECTIONS[name]
    group = described(kind)
    meanings, known = field_docs(kind), {option.name for option in group.options}
    required = [each.name for each in fields(kind) if each.name not in known]
    rows = [Option(each, "", "required", meanings[each]) for each in required]
    return Entry(name, group.summary, [group._replace(options=(*rows, *group.options))])


def _actor(word: str) -> Entry:
    known = next(each for each in SUMMARIES if each.partition(":")[0] == word.partition(":")[0])
    groups = [described(Endpoint)] if word.startswith(SERVED) else []
    if word.startswith(SCRIPT):
        rows = [Option(n, "", "", text) for n, text in listing()["scripts"].items()]
        groups = [OptionGroup("scripts", "of games", tuple(rows))]
    return Entry(known, SUMMARIES[known], groups)


def _pairs(options: Mapping[str, object]) -> Iterator[str]:
    return (f"{key} {value}" for key, value in options.items())


def _flat(value: object, name: str = "") -> Iterator[tuple[str, object]]:
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            yield from _flat(inner, f"{name}.{key}" if name else str(key))
    else:
        yield name, value
