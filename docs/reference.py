"""Reference pages: environments, learners, configuration, public names and modules.

The pages are generated from docstrings and dataclass fields before each build of the documentation.
"""

import dataclasses
import inspect
from pathlib import Path
from typing import Any, get_type_hints

from reference_environments import environment_pages
from reference_markdown import docstring_as_markdown, fenced, options_table, table
from reference_modules import modules_page

import mlrl_envs
import mlrl_learners
from mlrl_learners.algorithms.learner_configs import default_config
from mlrl_learners.config import run
from mlrl_learners.config.groups import OptionGroup, option_groups

__all__ = ["write_pages"]


def write_pages(folder: Path) -> None:
    """Write all pages into `folder`, and remove those of names that are gone.

    Unchanged pages keep their modification time.
    """
    pages = {
        **environment_pages(),
        "learners.md": learners_page(),
        "configuration.md": configuration_page(),
        "api.md": api_page(),
        "modules.md": modules_page(),
    }
    for name, text in pages.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")
    for path in (folder / "environments").glob("*.md"):
        if path.relative_to(folder).as_posix() not in pages:
            path.unlink()


def learners_page() -> str:
    """Return the page of all registered learners and their options, in groups."""
    rows = [(f"`{name}`", spec.summary) for name, spec in mlrl_learners.registry.items()]
    parts = [
        "# Registered learners",
        table(("name", "method"), rows),
        _NOTE,
    ]
    for title, note, learner in _FAMILIES:
        parts += [f"## {title}", note]
        for group in option_groups(default_config(learner)):
            parts += [f"### {group.name or 'method'}", group.summary, _group_table(group)]
    return "\n\n".join(parts) + "\n"


_NOTE = (
    'Options are in groups: `make("magrpo", ..., optimizer={"lr": 1e-5})`, or '
    "`--learner.optimizer.lr 1e-5`. Learners with a common table differ in their defaults; "
    "`mlrl list NAME` shows those of one learner."
)
_FAMILIES = (
    (
        "Options without a critic",
        "`magrpo` and its family, and `grpo`, `rloo` and `reinforce_pp`.",
        "magrpo",
    ),
    ("Options with a critic", "`ippo`, `mappo`, `iac`, `maac` and `ppo`.", "ippo"),
    ("Options of preference learning", "`madpo` and `dpo`.", "madpo"),
    ("Options of a reward model", "`marlhf` also has the groups of its `method`.", "marlhf"),
    ("Options of supervised learning", "`sft`.", "sft"),
)


def _group_table(group: OptionGroup) -> str:
    prefix = f"{group.name}." if group.name else ""
    rows = [
        (f"`{prefix}{each.name}`", f"`{each.default!r}`", each.meaning) for each in group.options
    ]
    return table(("name", "default", "meaning"), rows)


def configuration_page() -> str:
    """Return the page of all configuration keys."""
    parts = ["# Configuration keys"]
    for section in dataclasses.fields(run.RunConfig):
        kind = get_type_hints(run.RunConfig)[section.name]
        parts += [f"## {section.name}", _summary(kind), options_table(kind, f"{section.name}.")]
    return "\n\n".join(parts) + "\n"


def api_page() -> str:
    """Return the page of all public names."""
    parts = ["# Public names"]
    for module in (mlrl_envs, mlrl_learners):
        parts.append(f"## {module.__name__}")
        for name in sorted(module.__all__):
            item = getattr(module, name)
            if inspect.isclass(item) or inspect.isfunction(item):
                parts += [f"### {module.__name__}.{name}", _signature(name, item)]
                parts.append(docstring_as_markdown(inspect.getdoc(item) or ""))
    return "\n\n".join(parts) + "\n"


def _summary(kind: type) -> str:
    return inspect.cleandoc(kind.__doc__ or "").split("\n", 1)[0]


def _signature(name: str, item: Any) -> str:  # noqa: ANN401 - a class or a function
    parameters = inspect.signature(item).parameters.values()
    shown = ", ".join(_parameter(parameter) for parameter in parameters)
    return fenced(f"{name}({shown})")


def _parameter(parameter: inspect.Parameter) -> str:
    stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
    default = "" if parameter.default is parameter.empty else f"={parameter.default!r}"
    return f"{stars}{parameter.name}{default}"
