"""Reading of a whole run directory, which may be empty, torn or still growing.

A line that cannot be read is counted and left out. A last line without its newline is not counted:
it is still being written, or a killed run left it.
"""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from mlrl_learners.runs.episode_files import decode_single, evaluations_of
from mlrl_learners.runs.evaluations import (
    StoredEvaluation,
    StoredIteration,
    decode_evaluation,
    decode_iteration,
)
from mlrl_learners.runs.files import (
    CONFIG_FILE,
    ENVIRONMENT_FILE,
    EPISODES_FILE,
    EVALUATIONS_FILE,
    METRICS_FILE,
)
from mlrl_learners.runs.regular import read_lines, read_text
from mlrl_learners.runs.stored import UNREADABLE, Record, StoredEpisode, whole_number
from mlrl_learners.runs.tree import first_episode

__all__ = ["StoredRun", "read_run"]

DecodedT = TypeVar("DecodedT")

_KEPT_EPISODES = 8
_HEAD = re.compile(r'\{"iteration": (\d{1,18}), "rollout": (\d{1,18}), ')


@dataclass(frozen=True)
class StoredRun:
    """Contents of a run directory, as far as a report shows them.

    Attributes:
        name: Name of the folder.
        config: `config.yaml` as text, empty if it is missing.
        environment: `environment.json` as text, empty if it is missing.
        iterations: By number; of an iteration written twice the later line counts.
        evaluations: In the order of the file.
        first_episodes: Some episodes of the first iteration of training.
        last_episodes: Some episodes of the last one, empty if there is only one.
        unreadable: Number of lines that were left out, apart from unfinished last lines.
    """

    name: str
    config: str = ""
    environment: str = ""
    iterations: tuple[StoredIteration, ...] = ()
    evaluations: tuple[StoredEvaluation, ...] = ()
    first_episodes: tuple[StoredEpisode, ...] = ()
    last_episodes: tuple[StoredEpisode, ...] = ()
    unreadable: int = 0


def read_run(run_dir: Path) -> StoredRun:
    """Read a run directory, the folder of a suite, or a file of episodes."""
    lines = _LineReader()
    file = run_dir if run_dir.is_file() else run_dir / EPISODES_FILE
    if run_dir.is_file() or _holds_single_episodes(run_dir):
        found = evaluations_of(lines.decode(file, decode_single))
        name = run_dir.resolve().name
        return StoredRun(name=name, evaluations=tuple(found), unreadable=lines.unreadable)
    iterations = {
        each.iteration: each for each in lines.decode(run_dir / METRICS_FILE, decode_iteration)
    }
    evaluations = lines.decode(run_dir / EVALUATIONS_FILE, decode_evaluation)
    first, last = _first_and_last(_training_episodes(run_dir / EPISODES_FILE, lines))
    return StoredRun(
        name=run_dir.resolve().name,
        config=read_text(run_dir / CONFIG_FILE),
        environment=read_text(run_dir / ENVIRONMENT_FILE),
        iterations=tuple(iterations[number] for number in sorted(iterations)),
        evaluations=tuple(evaluations),
        first_episodes=first,
        last_episodes=last,
        unreadable=lines.unreadable,
    )


def _holds_single_episodes(run_dir: Path) -> bool:
    """Return whether a folder holds episodes of a suite instead of a training run."""
    if (run_dir / METRICS_FILE).exists() or (run_dir / CONFIG_FILE).exists():
        return False
    first = next(iter(read_lines(run_dir / EPISODES_FILE)), "")
    return bool(first) and _HEAD.match(first) is None


@dataclass
class _LineReader:
    """Decodes lines and counts the finished ones that cannot be read."""

    unreadable: int = field(default=0)

    def decode(
        self,
        path: Path,
        decode: Callable[[Record], DecodedT],
        is_wanted: Callable[[str], bool] = bool,
    ) -> Iterator[DecodedT]:
        """Yield the decoded records of the wanted lines of a file."""
        for line in filter(is_wanted, read_lines(path)):
            try:
                yield decode(json.loads(line))
            except UNREADABLE:
                self.unreadable += line.endswith("\n")


def _training_episodes(path: Path, lines: _LineReader) -> Iterator[tuple[int, StoredEpisode]]:
    """Yield some episodes of the first and the last iteration, each with its iteration.

    A first pass reads the iteration from the head of each line, because parsing every line of a
    long run takes too long.
    """
    whole = (line for line in read_lines(path) if line.endswith("\n"))
    numbers = {int(head[1]) for head in map(_HEAD.match, whole) if head}
    ends = {min(numbers), max(numbers)} if numbers else numbers

    def is_wanted(line: str) -> bool:
        head = _HEAD.match(line)
        return head is None or (int(head[1]) in ends and int(head[2]) < _KEPT_EPISODES)

    return lines.decode(path, _training_episode, is_wanted)


def _training_episode(record: Record) -> tuple[int, StoredEpisode]:
    return whole_number(record["iteration"]), first_episode(record)


def _first_and_last(
    episodes: Iterator[tuple[int, StoredEpisode]],
) -> tuple[tuple[StoredEpisode, ...], tuple[StoredEpisode, ...]]:
    """Keep some episodes of the earliest and of the latest iteration, and never the whole file."""
    kept: dict[int, list[StoredEpisode]] = {}
    for iteration, episode in episodes:
        found = kept.setdefault(iteration, [])
        if len(found) < _KEPT_EPISODES:
            found.append(episode)
        while len(kept) > 2:
            del kept[sorted(kept)[1]]
    if not kept:
        return (), ()
    return tuple(kept[min(kept)]), tuple(kept[max(kept)]) if len(kept) > 1 else ()
