"""Pictures of boards of games as SVG, read from the text that an agent saw.

A board is a block of lines of equally many single characters, all separated by spaces or none. What
agents see is not trusted: a text without such a block has no picture.
"""

from collections.abc import Iterator, Sequence

from mlrl_learners.report.html import Html, tag

__all__ = ["board_picture", "find_board"]

_LEAST, _MOST = 3, 16  # rows and columns of a board
_CELL = 24
_DISCS = {"X": "c0", "O": "c1"}
_EMPTY = frozenset(". ")
_WALLS = frozenset("#")


def board_picture(text: str) -> Html | None:
    """Return the picture of the first board in a text; None if there is none."""
    board = find_board(text)
    if board is None:
        return None
    width, height = len(board[0]) * _CELL, len(board) * _CELL
    return tag(
        "svg",
        [shape for y, row in enumerate(board) for x, mark in enumerate(row)
         for shape in _cell(x * _CELL, y * _CELL, mark)],
        viewBox=f"-1 -1 {width + 2} {height + 2}",
        width=width + 2,
        height=height + 2,
        role="img",
        aria_label=f"Board: {' / '.join(''.join(row) for row in board)}",
        class_="board",
    )  # fmt: skip


def find_board(text: str) -> list[list[str]] | None:
    """Return the rows of the first board in a text; None if there is none."""
    block: list[list[str]] = []
    for line in [*text.splitlines(), ""]:
        row = _row(line)
        if row and (not block or len(row) == len(block[0])):
            block.append(row)
        elif _is_board(block):
            return block
        else:
            block = [row] if row else []
    return None


def _row(line: str) -> list[str]:
    """Return the cells of a line; empty if it is no row of a board."""
    parts = line.split(" ")
    if not all(len(part) == 1 for part in parts):
        parts = list(line) if set(line) & _WALLS and " " not in line else []
    return parts if _LEAST <= len(parts) <= _MOST else []


def _is_board(block: Sequence[Sequence[str]]) -> bool:
    return _LEAST <= len(block) <= _MOST


def _cell(x: int, y: int, mark: str) -> Iterator[Html]:
    kind = "wall" if mark in _WALLS else "cell"
    yield tag("rect", x=x, y=y, width=_CELL, height=_CELL, class_=kind)
    middle = {"x": x + _CELL / 2, "y": y + _CELL / 2 + 4}
    if mark in _DISCS:
        yield tag("circle", cx=x + _CELL / 2, cy=y + _CELL / 2, r=_CELL * 0.38,
                  class_=f"disc {_DISCS[mark]}")  # fmt: skip
        yield tag("text", mark, **middle, text_anchor="middle", class_="on-disc")
    elif mark not in _EMPTY | _WALLS:
        yield tag("text", mark, **middle, text_anchor="middle")
