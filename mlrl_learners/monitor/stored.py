"""One stored episode: its figures, its texts, and the way through its tree.

A rollout of training is a tree of joint actions; an episode of an evaluation is a tree without
branches. Rows are JSON values as the run directory has them; a row of another shape raises one of
`UNREADABLE`.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from mlrl_learners.runs.reader import Turn, branch_turn, played_turn

__all__ = [
    "UNREADABLE",
    "Branch",
    "Level",
    "Row",
    "Summary",
    "levels",
    "summarise",
    "written",
]

Row: TypeAlias = Mapping[str, Any]

UNREADABLE = (
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    IndexError,
    OverflowError,
    RecursionError,
)


@dataclass(frozen=True, slots=True)
class Summary:
    """The figures of an episode that it is searched by.

    Attributes:
        task_id: Which task was played.
        mean: Team return: mean over the joint actions of the first turn.
        best: The highest of those.
        solved: Share of played lines that ended solved.
        turns: Turns of the longest line.
        branches: Lines that were played.
    """

    task_id: str
    mean: float
    best: float
    solved: float
    turns: int
    branches: int


@dataclass(frozen=True, slots=True)
class Branch:
    """One joint action among those played at a node.

    Attributes:
        value: Team return from here on: its reward, and the mean of what followed.
        solved: Whether this joint action solved the task.
        samples: Which answer of each agent it is made of.
        goes_on: Whether it was walked further.
    """

    value: float
    solved: bool
    samples: Mapping[str, int]
    goes_on: bool


@dataclass(frozen=True, slots=True)
class Level:
    """One turn on the way through a tree: what could have been chosen, and what was."""

    turn: Turn
    branches: Sequence[Branch]
    chosen: int
    reward: float


def summarise(row: Row) -> Summary:
    """Return the figures of a rollout, or of an episode of an evaluation."""
    if "node" not in row:
        total = float(row["return"])
        turns = len(row.get("turns") or ())
        return Summary(str(row["task_id"]), total, total, float(bool(row.get("solved"))), turns, 1)
    values = _values(row["node"])
    ends = list(_ends(row["node"], 1))
    return Summary(
        task_id=str(row["task_id"]),
        mean=_mean(values),
        best=max(values, default=0.0),
        solved=_mean([float(solved) for _, solved in ends]),
        turns=max((turns for turns, _ in ends), default=0),
        branches=len(ends),
    )


def written(row: Row) -> Iterator[str]:
    """Yield every text that an agent wrote."""
    if "node" in row:
        yield from _written_below(row["node"])
    for turn in row.get("turns") or ():
        yield from map(str, (turn.get("actions") or {}).values())


def levels(row: Row, path: Sequence[int]) -> list[Level]:
    """Walk down a tree.

    Args:
        row: A rollout, or an episode of an evaluation.
        path: Which joint action to take at each turn; where it ends or leads nowhere, the one of
            the highest return is taken, rather one that was walked further.
    """
    if "node" not in row:
        return [_only_level(turn) for turn in row.get("turns") or ()]
    found: list[Level] = []
    node = row["node"]
    while node:
        branches = _branches(node)
        if not branches:
            break
        wanted = path[len(found)] if len(found) < len(path) else -1
        chosen = wanted if 0 <= wanted < len(branches) else _most_promising(branches)
        step = node["steps"][chosen]
        found.append(Level(branch_turn(node, step), branches, chosen, _team(step)))
        node = step.get("child")
    return found


def _branches(node: Row) -> list[Branch]:
    return [
        Branch(value, bool(step.get("solved")), step.get("samples") or {}, bool(step.get("child")))
        for value, step in zip(_values(node), node["steps"], strict=True)
    ]


def _most_promising(branches: Sequence[Branch]) -> int:
    return max(range(len(branches)), key=lambda i: (branches[i].goes_on, branches[i].value))


def _only_level(row: Row) -> Level:
    turn = played_turn(dict(row))
    reward = _mean(list(turn.rewards.values()))
    return Level(turn, [Branch(reward, solved=False, samples={}, goes_on=True)], 0, reward)


def _values(node: Row) -> list[float]:
    """Return the team return of each joint action, as `train/return` counts it.

    Where the episode went on but only a sibling was walked further, that one stands in.
    """
    steps = node["steps"]
    followed = [_mean(_values(step["child"])) if step.get("child") else None for step in steps]
    walked = [value for value in followed if value is not None]
    expected = _mean(walked)
    return [
        _team(step) + (_expected(step, expected) if value is None else value)
        for step, value in zip(steps, followed, strict=True)
    ]


def _expected(step: Row, expected: float) -> float:
    return 0.0 if step.get("terminated") or step.get("truncated") else expected


def _team(step: Row) -> float:
    return _mean([float(reward) for reward in (step.get("rewards") or {}).values()])


def _ends(node: Row, depth: int) -> Iterator[tuple[int, bool]]:
    for step in node["steps"]:
        if step.get("child"):
            yield from _ends(step["child"], depth + 1)
        else:
            yield depth, bool(step.get("solved"))


def _written_below(node: Row) -> Iterator[str]:
    for completions in (node.get("completions") or {}).values():
        for completion in completions:
            yield str(completion["text"])
    for step in node["steps"]:
        if step.get("child"):
            yield from _written_below(step["child"])


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if values else 0.0
