"""Sections of the docstrings of environments, and the formulas of their rewards."""

import importlib
import inspect
import re
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

from reference_markdown import docstring_as_markdown, fenced

import mlrl_envs

__all__ = ["docstring_sections", "formulas"]

_SECTION = re.compile(r"^([A-Z][a-z]+(?: [a-z]+)*):\n((?: {4}.*\n|\n)+)", re.MULTILINE)


def docstring_sections(env_id: str) -> tuple[str, Mapping[str, str]]:
    """Return the introduction and the sections of an environment's docstring, without indents."""
    env: Any = mlrl_envs.make(env_id, split="sample")
    bases = [base for base in type(env.family).__mro__ if base.__module__ != "builtins"]
    texts = [inspect.getdoc(inspect.getmodule(base)) or "" for base in bases]
    sections: dict[str, str] = {}
    for text in reversed(texts):
        sections |= {name: textwrap.dedent(body).strip() for name, body in _found(text)}
    return _SECTION.sub("", texts[0] + "\n").strip(), sections


def formulas(reward: str) -> Iterator[str]:
    """Yield the docstrings of the modules that the section on the reward names."""
    for name in re.findall(r"`(mlrl_envs\.rewards\.[\w.]+)`", reward):
        yield f"### {name}"
        docstring = inspect.getdoc(importlib.import_module(name)) or ""
        yield docstring_as_markdown("\n\n".join(map(_as_formula, docstring.split("\n\n"))))


def _found(text: str) -> list[tuple[str, str]]:
    return [(match[1], match[2]) for match in _SECTION.finditer(text + "\n")]


def _as_formula(paragraph: str) -> str:
    """Fence a paragraph of equations; return any other unchanged."""
    is_formula = all(re.match(r"\w+ += |\s+\S", line) for line in paragraph.split("\n"))
    return fenced(paragraph) if is_formula and "=" in paragraph else paragraph
