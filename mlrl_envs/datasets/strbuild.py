"""Strings to write with blocks: ten published ones, and strings made from a seed.

Made strings have two, three or four letters (level 1, 2 or 3) of the font of this project. Strings
are left out if over 70 % of their cells have the same colour on a chessboard, because builders
divide them that way. Train and eval share no string, and none of them is published.
"""

from functools import lru_cache
from typing import Any

from mlrl_envs.datasets.building import read_published, split_rows
from mlrl_envs.datasets.draws import Draws
from mlrl_envs.datasets.lettering import FONT, LETTER_SIZE, wall_of
from mlrl_envs.datasets.made_splits import SIZES, in_eval, parts_of
from mlrl_envs.datasets.sources import SAMPLE
from mlrl_envs.errors import InvalidDataError
from mlrl_envs.tasks import StringTask

__all__ = ["FILE", "LEVELS", "PUBLISHED", "load_strings", "make_strings"]

FILE = "strbuild.json"
LEVELS = (1, 2, 3)
PUBLISHED = ("I", "C", "M", "L", "MC", "CM", "LI", "LLM", "ICML", "CLIM")
MIN_SHARE = 0.3  # of the cells of one colour of the chessboard
_SAMPLE = ("HI", "UP", "OK", "SUN", "MAP", "WORD")


def load_strings(split: str, path: str | None = None) -> tuple[StringTask, ...]:
    """Return the published strings of a split: eight, two, or all ten; `sample` has six others.

    Raises:
        UnknownNameError: If there is no such split.
        DataNotFoundError: If the file is not found.
        InvalidDataError: If its content does not follow the schema.
    """
    if split == SAMPLE:
        return tuple(_task(f"sample/strbuild/{n}", text) for n, text in enumerate(_SAMPLE))
    parts_of(split)
    return split_rows(split, read_published(FILE, path, _parse))


@lru_cache(maxsize=16)
def make_strings(
    split: str, *, seed: int, levels: tuple[int, ...], num_tasks: int | None = None
) -> tuple[StringTask, ...]:
    """Return strings made from a seed.

    Args:
        split: `"train"` (500), `"eval"` (100), `"all"` or `"sample"`, which has six fixed strings.
        seed: Seed of the strings.
        levels: Some of `LEVELS`, used in turn.
        num_tasks: Number of strings of each part, instead of the numbers above.

    Raises:
        UnknownNameError: If there is no such split.
        InvalidDataError: If there are not as many strings of these levels.
    """
    if split == SAMPLE:
        return load_strings(SAMPLE)
    return tuple(
        task
        for part in parts_of(split)
        for task in _make_part(part, num_tasks or SIZES[part], seed, levels)
    )


def _make_part(part: str, size: int, seed: int, levels: tuple[int, ...]) -> list[StringTask]:
    found: dict[str, None] = {}
    number = 0
    while len(found) < size:
        draws = Draws(f"strbuild/{part}/{seed}/{number}")
        length = 1 + levels[len(found) % len(levels)]
        text = "".join(draws.pick(list(FONT)) for _ in range(length))
        is_here = in_eval(text) == (part == "eval") and text not in PUBLISHED
        if is_here and _is_divisible(text):
            found.setdefault(text)
        number += 1
        if number > 100 * size + 10_000:
            raise InvalidDataError(f"levels {levels} have fewer than {size} strings in {part!r}")
    return [_task(f"strbuild/{part}/{text}", text) for text in found]


def _is_divisible(text: str) -> bool:
    rows = wall_of(text)
    cells = [x + y for y, row in enumerate(rows) for x, mark in enumerate(row) if mark == "#"]
    odd = sum(number % 2 for number in cells) / len(cells)
    return MIN_SHARE <= odd <= 1.0 - MIN_SHARE


def _task(task_id: str, text: str) -> StringTask:
    return StringTask(task_id, text, wall_of(text))


def _parse(content: Any) -> list[StringTask]:  # noqa: ANN401  JSON
    marks = str.maketrans("10", "#.")
    font = {
        letter: [row.translate(marks) for row in rows]
        for letter, rows in content["font_5x5"].items()
    }
    for letter, rows in font.items():
        if [len(row) for row in rows] != [LETTER_SIZE] * LETTER_SIZE:
            raise InvalidDataError(f"letter {letter!r} of {FILE} is not five by five")
    return [
        StringTask(f"str_build_{number:04d}", text, wall_of(text, font))
        for number, text in enumerate(content["strings"], start=1)
    ]
