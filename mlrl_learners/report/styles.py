"""Style sheets that report, monitor, leaderboard and docs share."""

import re
from collections.abc import Mapping
from importlib import resources

__all__ = ["colors", "stylesheet"]

_VARIABLE = re.compile(r"--([a-z0-9-]+): (#[0-9a-f]{6})")


def stylesheet() -> str:
    """Return colours and components as one style sheet."""
    return _part("tokens.css") + _part("style.css")


def colors(*, dark: bool) -> Mapping[str, str]:
    """Return name -> `#rrggbb` of every colour of one theme."""
    light_theme, dark_theme = _part("tokens.css").split("@media", 1)
    return dict(_VARIABLE.findall(dark_theme if dark else light_theme))


def _part(name: str) -> str:
    return resources.files("mlrl_learners.report").joinpath(name).read_text("utf-8")
