"""Reading a run directory, whatever state it is in: empty, half written, still growing.

A line that is torn or of another shape is counted and left out; it never stops the report.
"""

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

__all__ = [
    "Episode",
    "Evaluation",
    "Iteration",
    "Run",
    "Turn",
    "branch_turn",
    "played_turn",
    "read_run",
]

RecordT = TypeVar("RecordT")

_KEPT_EPISODES = 8
_HEAD = re.compile(r'\{"iteration": (\d+), "rollout": (\d+), ')


@dataclass(frozen=True, slots=True)
class Turn:
    """One joint action: what each agent read, wrote and earned."""

    observations: Mapping[str, str]
    actions: Mapping[str, str]
    rewards: Mapping[str, float]
    components: Mapping[str, Mapping[str, float]]
    diagnostics: Mapping[str, object]
    tokens: Mapping[str, float] = field(default_factory=dict)
    finish_reasons: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Episode:
    """One episode as it was played."""

    task_id: str
    seed: int
    total: float
    solved: bool
    turns: tuple[Turn, ...]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """One evaluation after `iteration` iterations of training."""

    iteration: int
    env_id: str
    split: str
    seed: int | None
    mean_return: float
    interval: tuple[float, float]
    solved_rate: float
    components: Mapping[str, float]
    episodes: tuple[Episode, ...]


@dataclass(frozen=True, slots=True)
class Iteration:
    """The finite metrics of one iteration of training."""

    iteration: int
    seconds: float
    metrics: Mapping[str, float]


@dataclass(frozen=True)
class Run:
    """Everything a report is made of.

    Attributes:
        name: The folder's name.
        config: `config.yaml` as text, empty where there is none.
        environment: `environment.json` as text: versions, commit, hardware.
        iterations: By number; of an iteration written twice the later line counts.
        evaluations: In the order they were made.
        first_episodes: Some episodes of the first iteration of training.
        last_episodes: Some episodes of the last one.
        unreadable: How many lines were left out.
    """

    name: str
    config: str = ""
    environment: str = ""
    iterations: tuple[Iteration, ...] = ()
    evaluations: tuple[Evaluation, ...] = ()
    first_episodes: tuple[Episode, ...] = ()
    last_episodes: tuple[Episode, ...] = ()
    unreadable: int = 0


def read_run(run_dir: Path) -> Run:
    """Read what is there."""
    lost = _Lost()
    iterations = {
        row.iteration: row for row in lost.keep(run_dir / "metrics.jsonl", _iteration)
    }  # a resumed run may have written its last iteration twice
    evaluations = lost.keep(run_dir / "evaluations.jsonl", _evaluation)
    first, last = _first_and_last(_training_episodes(run_dir / "episodes.jsonl", lost))
    return Run(
        name=run_dir.resolve().name,
        config=_text(run_dir / "config.yaml"),
        environment=_text(run_dir / "environment.json"),
        iterations=tuple(iterations[number] for number in sorted(iterations)),
        evaluations=tuple(evaluations),
        first_episodes=first,
        last_episodes=last,
        unreadable=lost.lines,
    )


def _text(path: Path) -> str:
    return path.read_text("utf-8", "replace") if path.is_file() else ""


@dataclass
class _Lost:
    """Counts the lines that could not be read."""

    lines: int = field(default=0)

    def keep(
        self,
        path: Path,
        parse: Callable[[dict[str, Any]], RecordT],
        wanted: Callable[[str], bool] = bool,
    ) -> Iterator[RecordT]:
        """Yield what every whole line of the file that is wanted parses to."""
        for line in filter(wanted, _lines(path)):
            record = self._parse(line, parse)
            if record is not None:
                yield record

    def _parse(self, line: str, parse: Callable[[dict[str, Any]], RecordT]) -> RecordT | None:
        try:
            return parse(json.loads(line))
        except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError):
            self.lines += 1
            return None


def _iteration(row: dict[str, Any]) -> Iteration:
    metrics = {
        str(name): float(value)
        for name, value in row.items()
        if isinstance(value, int | float) and math.isfinite(value) and name != "iteration"
    }
    return Iteration(int(row["iteration"]), metrics.pop("seconds", 0.0), metrics)


def _evaluation(row: dict[str, Any]) -> Evaluation:
    mean = float(row["mean_return"])
    low, high = row.get("interval") or (mean, mean)
    return Evaluation(
        iteration=int(row["iteration"]),
        env_id=str(row["env_id"]),
        split=str(row.get("split") or ""),
        seed=None if row.get("seed") is None else int(row["seed"]),
        mean_return=mean,
        interval=(float(low), float(high)),
        solved_rate=float(row.get("solved_rate") or 0.0),
        components={str(name): float(v) for name, v in (row.get("components") or {}).items()},
        episodes=tuple(_played_episode(episode) for episode in row.get("episodes") or ()),
    )


def _played_episode(row: dict[str, Any]) -> Episode:
    return Episode(
        task_id=str(row["task_id"]),
        seed=int(row.get("seed") or 0),
        total=float(row["return"]),
        solved=bool(row.get("solved")),
        turns=tuple(played_turn(turn) for turn in row.get("turns") or ()),
    )


def played_turn(turn: dict[str, Any]) -> Turn:
    """Return a turn of a single line, as evaluations have them."""
    return Turn(
        observations=_texts(turn.get("observations")),
        actions=_texts(turn.get("actions")),
        rewards=_floats(turn.get("rewards")),
        components={a: _floats(c) for a, c in (turn.get("components") or {}).items()},
        diagnostics=dict(turn.get("diagnostics") or {}),
        tokens=_floats(turn.get("tokens")),
        finish_reasons=_texts(turn.get("finish_reasons")),
    )


def branch_turn(node: dict[str, Any], step: dict[str, Any]) -> Turn:
    """Return the turn in which one of a node's joint actions was played."""
    said = {
        agent: node["completions"][agent][index]
        for agent, index in (step.get("samples") or {}).items()
    }
    return Turn(
        observations=_texts(node.get("observations")),
        actions={agent: str(completion["text"]) for agent, completion in said.items()},
        rewards=_floats(step.get("rewards")),
        components={a: _floats(c) for a, c in (step.get("components") or {}).items()},
        diagnostics=dict(step.get("diagnostics") or {}),
        tokens={agent: float(c.get("tokens") or 0) for agent, c in said.items()},
        finish_reasons={agent: str(c.get("finish_reason") or "") for agent, c in said.items()},
    )


def _training_episodes(path: Path, lost: _Lost) -> Iterator[tuple[int, Episode]]:
    """Yield some episodes of the first and the last iteration.

    Which these are is read off the heads of lines: parsing all of a long run takes too long.
    """
    whole = (line for line in _lines(path) if line.endswith("\n"))
    numbers = {int(head[1]) for head in map(_HEAD.match, whole) if head}
    ends = {min(numbers), max(numbers)} if numbers else numbers

    def is_wanted(line: str) -> bool:
        head = _HEAD.match(line)
        return head is None or (int(head[1]) in ends and int(head[2]) < _KEPT_EPISODES)

    return lost.keep(path, _training_episode, is_wanted)


def _lines(path: Path) -> Iterator[str]:
    if path.is_file():
        with path.open(encoding="utf-8", errors="replace") as lines:
            yield from lines


def _training_episode(row: dict[str, Any]) -> tuple[int, Episode]:
    turns = tuple(_first_branch(row["node"]))
    last_step = _first_leaf(row["node"])
    team = [math.fsum(turn.rewards.values()) / max(len(turn.rewards), 1) for turn in turns]
    return int(row["iteration"]), Episode(
        task_id=str(row["task_id"]),
        seed=int(row.get("seed") or 0),
        total=math.fsum(team),
        solved=bool(last_step.get("solved")),
        turns=turns,
    )


def _first_branch(node: dict[str, Any]) -> Iterator[Turn]:
    """Walk the first joint action that goes on, or the first one where none does."""
    at: dict[str, Any] | None = node
    while at:
        step = _first_step(at)
        yield branch_turn(at, step)
        at = step.get("child")


def _first_leaf(node: dict[str, Any]) -> dict[str, Any]:
    step = _first_step(node)
    while step.get("child"):
        step = _first_step(step["child"])
    return step


def _first_step(node: dict[str, Any]) -> dict[str, Any]:
    steps: list[dict[str, Any]] = node["steps"]
    return next((step for step in steps if step.get("child")), steps[0] if steps else {})


def _first_and_last(
    episodes: Iterator[tuple[int, Episode]],
) -> tuple[tuple[Episode, ...], tuple[Episode, ...]]:
    """Keep some of the earliest and latest iteration without holding the whole file."""
    kept: dict[int, list[Episode]] = {}
    for iteration, episode in episodes:
        rows = kept.setdefault(iteration, [])
        if len(rows) < _KEPT_EPISODES:
            rows.append(episode)
        while len(kept) > 2:
            del kept[sorted(kept)[1]]
    if not kept:
        return (), ()
    return tuple(kept[min(kept)]), tuple(kept[max(kept)]) if len(kept) > 1 else ()


def _texts(values: Mapping[str, Any] | None) -> dict[str, str]:
    return {str(agent): str(text) for agent, text in (values or {}).items()}


def _floats(values: Mapping[str, Any] | None) -> dict[str, float]:
    return {str(name): float(value) for name, value in (values or {}).items()}
