"""Houses to build: ten published ones, and houses made from a seed.

Train and eval share no house.
"""

from functools import lru_cache
from typing import Any

from mlrl_envs.datasets.building import read_published, split_rows
from mlrl_envs.datasets.draws import Draws
from mlrl_envs.datasets.house_shapes import SIZE, draw_house, draw_plan
from mlrl_envs.datasets.made_splits import SIZES, in_eval, parts_of
from mlrl_envs.datasets.sources import SAMPLE
from mlrl_envs.errors import InvalidDataError
from mlrl_envs.tasks import HouseTask

__all__ = ["FILE", "load_houses", "make_houses"]

FILE = "housebuild.json"
NUM_SAMPLES = 4
AIR, AIR_LETTER = "air", "."


def load_houses(split: str, path: str | None = None) -> tuple[HouseTask, ...]:
    """Return the published houses of a split: eight, two, or all ten; `sample` has four others.

    Raises:
        UnknownNameError: If there is no such split.
        DataNotFoundError: If the file is not found.
        InvalidDataError: If its content does not follow the schema.
    """
    parts_of(split)
    if split == SAMPLE:
        return make_houses(SAMPLE, seed=0)
    return split_rows(split, read_published(FILE, path, _parse))


@lru_cache(maxsize=16)
def make_houses(split: str, *, seed: int, num_tasks: int | None = None) -> tuple[HouseTask, ...]:
    """Return houses made from a seed.

    Args:
        split: `"train"` (500), `"eval"` (100), `"all"` or `"sample"`, which has four fixed houses.
        seed: Seed of the houses.
        num_tasks: Number of houses of each part, instead of the numbers above.

    Raises:
        UnknownNameError: If there is no such split.
    """
    if split == SAMPLE:
        return tuple(_make_part(SAMPLE, NUM_SAMPLES, 0))
    return tuple(
        task
        for part in parts_of(split)
        for task in _make_part(part, num_tasks or SIZES[part], seed)
    )


def _make_part(part: str, size: int, seed: int) -> list[HouseTask]:
    found: dict[str, HouseTask] = {}
    number = 0
    while len(found) < size:
        name = f"{SAMPLE}/housebuild" if part == SAMPLE else f"housebuild/{part}/{seed}"
        task = _make(f"{name}/{len(found)}", Draws(f"housebuild/{part}/{seed}/{number}"))
        content = repr((task.legend, task.layers))
        if part == SAMPLE or in_eval(content) == (part == "eval"):
            found.setdefault(content, task)
        number += 1
    return list(found.values())


def _make(task_id: str, draws: Draws) -> HouseTask:
    plan = draw_plan(draws)
    cells = draw_house(plan)
    width, height, depth = SIZE
    layers = tuple(
        tuple("".join(cells.get((x, y, z), AIR_LETTER) for x in range(width)) for z in range(depth))
        for y in range(height)
    )
    used = set(cells.values())
    legend = tuple(each for each in plan.materials if each[0] in used)
    return HouseTask(task_id, (*legend, (AIR_LETTER, AIR)), layers)


def _parse(content: Any) -> list[HouseTask]:  # noqa: ANN401  JSON
    return [_parse_row(row) for row in content]


def _parse_row(row: Any) -> HouseTask:  # noqa: ANN401  JSON
    name = str(row["task_id"])
    legend = tuple((str(letter), str(block)) for letter, block in row["inventory"].items())
    spec = row["target_spec"]
    ordered = sorted(spec["layers"], key=lambda layer: int(layer["y"]))
    layers = tuple(tuple(map(str, layer["rows"])) for layer in ordered)
    width, height, depth = spec["size"]
    sizes = {(len(line), len(rows)) for rows in layers for line in rows}
    if len(layers) != height or sizes != {(width, depth)}:
        raise InvalidDataError(f"{name} of {FILE}: layers are not {width} x {height} x {depth}")
    letters = {letter for rows in layers for line in rows for letter in line}
    unknown = letters - {letter for letter, _ in legend}
    if unknown:
        raise InvalidDataError(f"{name} of {FILE}: unknown letters {sorted(unknown)}")
    has_air = any(block == AIR for _, block in legend)
    return HouseTask(name, legend if has_air else (*legend, (AIR_LETTER, AIR)), layers)
