"""Sphinx configuration; the pages in `reference/` are generated from the code before each build."""

import sys
from importlib import metadata
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from reference import write_pages  # noqa: E402 - a module of this folder

from mlrl_learners.report.styles import colors  # noqa: E402

project = "mlrl"
author = "The mlrl authors"
release = metadata.version("mlrl")
extensions = ["myst_parser"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]
html_theme = "furo"


def furo_colors(*, dark: bool) -> dict[str, str]:
    """Return the theme's variables in the colours of monitor, report and leaderboard."""
    found = colors(dark=dark)
    return {
        "color-brand-primary": found["c0"],
        "color-brand-content": found["c0"],
        "color-brand-visited": found["c3"],
        "color-background-primary": found["page"],
        "color-background-secondary": found["card"],
        "color-background-border": found["line"],
        "color-foreground-primary": found["ink"],
        "color-foreground-secondary": found["quiet"],
        "color-foreground-muted": found["quiet"],
    }


html_theme_options = {
    "light_css_variables": furo_colors(dark=False),
    "dark_css_variables": furo_colors(dark=True),
}
html_static_path = ["_static"]
html_css_files = ["landing.css"]
html_favicon = "_static/favicon.svg"
html_title = f"mlrl {release}"

write_pages(HERE / "reference")
