"""Reference page of each environment: task, agents, reward, data, options, episode and versions.

The text comes from the docstrings of the environment's module and of the modules that score it,
from the fields of its options, and from an episode on its split `sample`.
"""

import importlib
import inspect
import re
from collections.abc import Iterator, Mapping
from typing import Any

from reference_examples import EXAMPLES
from reference_markdown import docstring_as_markdown, fenced, options_table, table

import mlrl_envs

__all__ = ["environment_page", "environment_pages"]

FIELDS = ("Agents", "Reward", "Data")
MODES = ("grounded", "paper")


def environment_pages() -> dict[str, str]:
    """Return the page of each environment by file name, and the index page."""
    ids = sorted(env_id for env_id in mlrl_envs.registry if env_id.startswith("mlrl/"))
    pages = {f"environments/{_file(env_id)}.md": environment_page(env_id) for env_id in ids}
    rows = [(f"[`{env_id}`](environments/{_file(env_id)}.md)", *_row(env_id)) for env_id in ids]
    toctree = "```{toctree}\n:hidden:\n:glob:\n\nenvironments/*\n```"
    index = ["# Registered environments", table(("id", "task", "agents"), rows), toctree]
    return {"environments.md": "\n\n".join(index) + "\n", **pages}


def environment_page(env_id: str) -> str:
    """Return the page of an environment."""
    intro, fields, history = _split(_docstring(env_id))
    env: Any = mlrl_envs.make(env_id, split="sample", max_turns=2, render_mode="ansi")
    parts = [f"# {env_id}", intro]
    for name in FIELDS:
        parts += [f"## {name}", fields[name][:1].upper() + fields[name][1:]]
        parts += _scoring(env_id, fields[name]) if name == "Reward" else ()
    parts += ["## Options", options_table(type(env.family.config))]
    parts += ["## An episode", "An episode on the split `sample`, with answers written by hand."]
    parts += [fenced(_play(env, EXAMPLES.get(env_id, ())))]
    parts += ["## Version history", history]
    env.close()
    return "\n\n".join(parts) + "\n"


def _docstring(env_id: str) -> str:
    module = inspect.getmodule(mlrl_envs.registry[env_id].load())
    return inspect.getdoc(module) or ""


def _split(docstring: str) -> tuple[str, Mapping[str, str], str]:
    """Return a module's prose, its one-paragraph fields, and its version history as a list."""
    prose, _, history = docstring.partition("\nVersion history:\n")
    found = re.findall(r"^(\w+): (.*(?:\n {4}.*)*)", prose, re.MULTILINE)
    fields = {name: " ".join(text.split()) for name, text in found if name in FIELDS}
    rest = re.sub(r"^(?:Agents|Reward|Data): .*(?:\n {4}.*)*\n?", "", prose, flags=re.MULTILINE)
    versions = [f"- {' '.join(line.split())}" for line in history.strip().splitlines()]
    return rest.strip(), fields, "\n".join(versions)


def _row(env_id: str) -> tuple[str, str]:
    intro, fields, _ = _split(_docstring(env_id))
    return intro.split("\n\n", 1)[0].replace("\n", " "), fields["Agents"]


def _scoring(env_id: str, reward: str) -> Iterator[str]:
    """Yield the rewards of the example episode, and the documentation of the scoring modules."""
    yield "Rewards in the last turn of the example below:"
    yield table(("mode", "lowest and highest", "agent", "components"), _earned(env_id))
    for name in re.findall(r"`(mlrl_envs\.rewards\.[\w.]+)`", reward):
        yield f"### {name}"
        docstring = inspect.getdoc(importlib.import_module(name)) or ""
        yield docstring_as_markdown("\n\n".join(map(_as_formula, docstring.split("\n\n"))))


def _as_formula(paragraph: str) -> str:
    """Fence a paragraph of equations; return other paragraphs unchanged."""
    is_formula = all(re.match(r"\w+ += |\s+\S", line) for line in paragraph.split("\n"))
    return fenced(paragraph) if is_formula and "=" in paragraph else paragraph


def _earned(env_id: str) -> Iterator[tuple[str, str, str, str]]:
    for mode in MODES:
        env: Any = mlrl_envs.make(
            env_id, split="sample", max_turns=2, reward=mode, render_mode="ansi"
        )
        low, high = env.reward_range
        _play(env, EXAMPLES.get(env_id, ()))
        score = env.turns[-1].score
        for agent in env.possible_agents:
            parts = ", ".join(f"{k} {v:.3f}" for k, v in score.components[agent].items())
            yield mode, f"{low:g} to {high:g}", agent, parts
        env.close()


def _play(env: Any, first: tuple[Mapping[str, str], ...]) -> str:  # noqa: ANN401 - ours
    """Play given joint actions, then reference actions if there are any; return the transcript."""
    env.reset(seed=0, options={"task_index": 0})
    for actions in first:
        env.step(actions)
    while env.agents and (actions := env.reference_actions()) is not None:
        env.step(actions)
    if not env.turns:
        raise LookupError(f"add an example of {env.metadata['name']} to reference_examples.py")
    return str(env.render())


def _file(env_id: str) -> str:
    return env_id.split("/", 1)[1]
