"""Pages of the reward cards: writing them, and comparing them with the stored audits."""

import importlib
import sys
from collections.abc import Mapping
from pathlib import Path

__all__ = ["expected_pages", "stale_pages", "write_pages"]

DOCS = Path(__file__).resolve().parents[2] / "docs"
FOLDERS = ("reward_cards", "images/reward_cards")
COMMAND = "python -m benchmarks.reward_cards --cards-only"


def expected_pages() -> Mapping[str, str]:
    """Return the text of each generated file by its path in `docs`."""
    sys.path.insert(0, str(DOCS))
    try:
        return importlib.import_module("reference_cards").card_pages()  # type: ignore[no-any-return]  # a module of the documentation
    finally:
        sys.path.remove(str(DOCS))


def write_pages() -> None:
    """Write the files that differ, and remove those without an audit."""
    expected = expected_pages()
    for path in _existing() - set(expected):
        (DOCS / path).unlink()
    for path, text in expected.items():
        file = DOCS / path
        file.parent.mkdir(parents=True, exist_ok=True)
        if not file.exists() or file.read_text("utf-8") != text:
            file.write_text(text, "utf-8")


def stale_pages() -> list[str]:
    """Return a line for each file that differs from what the stored audits give."""
    expected = expected_pages()
    wrong = {
        path
        for path, text in expected.items()
        if not (DOCS / path).exists() or (DOCS / path).read_text("utf-8") != text
    }
    wrong |= _existing() - set(expected)
    return [f"docs/{path} differs from its audit; run {COMMAND}" for path in sorted(wrong)]


def _existing() -> set[str]:
    return {
        path.relative_to(DOCS).as_posix()
        for folder in FOLDERS
        for path in (DOCS / folder).glob("*")
        if path.is_file()
    }
