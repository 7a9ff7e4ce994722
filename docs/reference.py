"""Writes the reference pages: environments, learners, configuration, public names.

Everything on them comes from docstrings and dataclass fields, so that no page can be older than
the code. Google-style sections of a docstring become lists.
"""

import dataclasses
import inspect
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, get_type_hints

import mlrl_envs
import mlrl_learners
from mlrl_envs.errors import DataNotFoundError
from mlrl_learners import config
from mlrl_learners.algorithms.magrpo import MagrpoConfig

__all__ = ["docstring_as_markdown", "write_pages"]

SECTIONS = ("Args", "Attributes", "Returns", "Raises", "Yields", "Version history")


def write_pages(folder: Path) -> None:
    """Write every page into `folder`; a page that has not changed is left alone."""
    pages = {
        "environments.md": environments_page(),
        "learners.md": learners_page(),
        "configuration.md": configuration_page(),
        "api.md": api_page(),
    }
    folder.mkdir(exist_ok=True)
    for name, text in pages.items():
        path = folder / name
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")


def environments_page() -> str:
    """Return the page of all registered environments."""
    parts = ["# Registered environments", "Options, and what agents read first."]
    for env_id in sorted(mlrl_envs.registry):
        parts += [f"## {env_id}", *_environment(env_id)]
    return "\n\n".join(parts) + "\n"


def learners_page() -> str:
    """Return the page of all registered learners and of their options."""
    rows = [(f"`{name}`", spec.summary) for name, spec in mlrl_learners.registry.items()]
    return (
        "\n\n".join(
            [
                "# Registered learners",
                _table(("name", "what it is"), rows),
                "## Options",
                "All of them share these options; they differ in the `baseline` they start from.",
                _options_table(MagrpoConfig),
            ]
        )
        + "\n"
    )


def configuration_page() -> str:
    """Return the page of all configuration keys."""
    parts = ["# Configuration keys"]
    for section in dataclasses.fields(config.RunConfig):
        kind = get_type_hints(config.RunConfig)[section.name]
        parts += [f"## {section.name}", _summary(kind), _options_table(kind, f"{section.name}.")]
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


def docstring_as_markdown(docstring: str) -> str:
    """Turn the sections of a Google-style docstring into lists; the rest is Markdown already."""
    lines: list[str] = []
    section = ""
    for line in docstring.splitlines():
        heading = line.strip().removesuffix(":")
        if line.endswith(":") and not line.startswith(" ") and heading in SECTIONS:
            section = heading
            lines += ["", f"**{section}**", ""]
        elif section and line.strip():
            lines.append(_section_line(line))
        else:
            section = section if line.startswith(" ") else ""
            lines.append(line)
    return "\n".join(lines).strip()


def _section_line(line: str) -> str:
    item = re.match(r" {4}([\w*.]+|None)(?: \(.*\))?: (.*)", line)
    if item:
        return f"- `{item[1]}`: {item[2]}"
    return "  " + line.strip() if line.startswith(" " * 8) else line.strip()


def _environment(env_id: str) -> Iterator[str]:
    module = inspect.getmodule(mlrl_envs.registry[env_id].load())
    yield docstring_as_markdown(inspect.getdoc(module) or "")
    try:
        env: Any = mlrl_envs.make(env_id)
    except DataNotFoundError:
        yield "*Its data set was not found when this page was written.*"
        return
    low, high = env.reward_range
    agents = ", ".join(f"`{agent}`" for agent in env.possible_agents)
    yield f"Agents: {agents}. Rewards of a turn: {low:g} to {high:g}. Tasks: {env.num_tasks}."
    yield "**Options**"
    yield _options_table(type(env.family.config))
    observations, _ = env.reset(seed=0)
    for agent, text in observations.items():
        yield f"What `{agent}` reads first, for example:"
        yield _fenced(text)
    env.close()


def _options_table(kind: type, prefix: str = "") -> str:
    meanings = _attribute_docs(kind)
    rows = []
    for item in dataclasses.fields(kind):
        default = _default(item)
        rows.append((f"`{prefix}{item.name}`", default, meanings.get(item.name, "")))
    return _table(("name", "default", "meaning"), rows)


def _default(item: "dataclasses.Field[Any]") -> str:
    if item.default is not dataclasses.MISSING:
        return f"`{item.default!r}`"
    if item.default_factory is not dataclasses.MISSING:
        return f"`{item.default_factory()!r}`"
    return "required"


def _attribute_docs(kind: type) -> Mapping[str, str]:
    """Collect the `Attributes:` sections of a class and its bases."""
    docs: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        text = inspect.cleandoc(base.__doc__ or "")
        _, _, attributes = text.partition("Attributes:\n")
        for name, meaning in re.findall(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", attributes, re.MULTILINE):
            docs[name] = " ".join(meaning.split())
    return docs


def _summary(kind: type) -> str:
    return inspect.cleandoc(kind.__doc__ or "").split("\n", 1)[0]


def _signature(name: str, item: Any) -> str:  # noqa: ANN401 - a class or a function
    parameters = inspect.signature(item).parameters.values()
    shown = ", ".join(_parameter(parameter) for parameter in parameters)
    return _fenced(f"{name}({shown})")


def _parameter(parameter: inspect.Parameter) -> str:
    stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
    default = "" if parameter.default is parameter.empty else f"={parameter.default!r}"
    return f"{stars}{parameter.name}{default}"


def _table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    lines = [list(header)]
    lines.append(["---"] * len(lines[0]))
    lines += [[cell.replace("|", "\\|") for cell in row] for row in rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _fenced(text: str) -> str:
    """Quote text whatever fences are in it."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{text}\n{fence}"
