"""Configurations of runs as tables of options."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from mlrl_envs.errors import MlrlError
from mlrl_learners.config.yaml import parse_yaml
from mlrl_learners.report.html import Html, isolated, scrolled, tag
from mlrl_learners.runs.files import CONFIG_FILE
from mlrl_learners.runs.stored import UNREADABLE

__all__ = ["differing", "draw_options", "options_of", "planned_iterations"]

_MOST = 1000
_MOST_CHARACTERS = 1 << 16  # YAML takes seconds for more


def options_of(text: str) -> dict[str, str]:
    """Return dotted name -> value of every option of a configuration.

    It is empty if the text is unreadable or has more than 65,536 characters.
    """
    if len(text) > _MOST_CHARACTERS:
        return {}
    try:
        found: Any = parse_yaml(text, CONFIG_FILE)
        return _flat(found) if isinstance(found, Mapping) else {}
    except (MlrlError, *UNREADABLE):
        return {}


def planned_iterations(options: Mapping[str, str]) -> int | None:
    """Return the number of iterations that a run is to have; None if it is unknown."""
    planned = options.get("train.iterations", "")
    return int(planned) if planned.isdecimal() and len(planned) < 19 else None


def differing(configs: Sequence[Mapping[str, str]]) -> list[str]:
    """Return the options whose values differ between configurations."""
    names = dict.fromkeys(name for config in configs for name in config)
    return [name for name in names if len({config.get(name) for config in configs}) > 1]


def draw_options(options: Mapping[str, str], first: Sequence[str] = ()) -> Html:
    """Return a table of options and values.

    Args:
        options: Dotted name -> value.
        first: Options that come first and are marked, because other runs differ in them.
    """
    ordered = [name for name in first if name in options]
    ordered += [name for name in options if name not in ordered]
    marked = set(first)
    rows = [
        tag(
            "tr",
            tag("th", isolated(name), scope="row"),
            tag("td", isolated(options[name])),
            class_="differs" if name in marked else None,
        )
        for name in ordered
    ]
    head = tag("tr", tag("th", "option", scope="col"), tag("th", "value", scope="col"))
    table = tag("table", tag("thead", head), tag("tbody", rows), class_="options")
    return scrolled("div", table, class_="wide")


def _flat(config: Mapping[Any, Any]) -> dict[str, str]:
    """Return at most `_MOST` options; an alias in YAML may stand for a document of any size."""
    found: dict[str, str] = {}
    left = [(str(name), value) for name, value in reversed(list(config.items()))]
    while left and len(found) < _MOST and len(left) < _MOST:
        name, value = left.pop()
        if isinstance(value, Mapping) and value:
            left += [(f"{name}.{key}", inner) for key, inner in reversed(list(value.items()))]
        else:
            found[name] = value if isinstance(value, str) else _written(value)
    return found


def _written(value: object) -> str:
    left, count = [value], 0
    while left:
        each = left.pop()
        count += 1
        if isinstance(each, Mapping):
            left += each.values()
        elif isinstance(each, Sequence) and not isinstance(each, str):
            left += each
        if count > _MOST:
            return "(too long to show)"
    return json.dumps(value, default=str)
