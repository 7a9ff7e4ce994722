"""Sphinx configuration; the pages in `reference/` are generated from the code before each build."""

import sys
from importlib import metadata
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from reference import write_pages  # noqa: E402 - a module of this folder

project = "mlrl"
author = "The mlrl authors"
release = metadata.version("mlrl")
extensions = ["myst_parser"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = f"mlrl {release}"

write_pages(HERE / "reference")
