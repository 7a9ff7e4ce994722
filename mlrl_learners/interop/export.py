"""Export of stored episodes as conversations, in JSONL."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from mlrl_learners.errors import ConfigError, RunDirError
from mlrl_learners.interop.conversations import conversations
from mlrl_learners.progress import progress_bar
from mlrl_learners.runs.files import EPISODES_FILE
from mlrl_learners.runs.labels import name_of
from mlrl_learners.runs.stored import UNREADABLE
from mlrl_learners.runs.tree import complete_episodes, count_unfinished, is_tree

__all__ = ["ExportResult", "export"]

_Played = tuple[float, list[dict[str, Any]]]
"""Team return and conversations of an episode."""

_Line = tuple[list[_Played], int]
"""Complete episodes of a line, and the number of its paths that are incomplete."""


@dataclass(frozen=True, slots=True)
class ExportResult:
    """Outcome of an export.

    Attributes:
        path: The file that was written.
        episodes: Number of episodes in it.
        conversations: Number of its lines, one per episode and agent without an opponent.
        left_out: Number of episodes whose team return was below the filter.
        unfinished: Number of paths through the trees of a run that stop before the end of the
            episode (`branching: chain`); they are not in the file.
    """

    path: Path
    episodes: int
    conversations: int
    left_out: int
    unfinished: int


def export(
    source: str | Path,
    out: str | Path,
    *,
    filter_reward: float | None = None,
    progress: bool = False,
) -> ExportResult:
    """Write the conversations of every episode, see `mlrl_learners.interop.conversations`.

    The file is written under a temporary name and renamed, so that it is never incomplete.

    Args:
        source: A run directory, or a file of `mlrl collect` or `mlrl evaluate --episodes`; an
            incomplete last line is skipped.
        out: The JSONL file.
        filter_reward: Write only episodes whose team return is at least this; None for all.
        progress: Show a progress bar.

    Raises:
        ConfigError: If the source is missing, or a line is not an episode.
        RunDirError: If `out` exists, or cannot be written.
    """
    path, target = _file_of(Path(source)), Path(out)
    if target.exists():
        raise RunDirError(f"{str(target)!r} is there already; choose another file")
    partial = target.with_name(f".{target.name}.partial")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with partial.open("w", encoding="utf-8") as file:
            lines = _read(path, progress=progress)
            result = _write(target, file, lines, filter_reward)
        partial.replace(target)
    except UnicodeDecodeError as error:
        raise ConfigError(f"{str(path)!r} is no text; unpack it first if it is packed") from error
    except OSError as error:
        raise RunDirError(f"cannot write {str(target)!r}: {error}") from error
    finally:
        partial.unlink(missing_ok=True)
    return result


def _write(
    target: Path, file: TextIO, lines: Iterator[_Line], filter_reward: float | None
) -> ExportResult:
    episodes = written = left_out = unfinished = 0
    for played, stopped in lines:
        unfinished += stopped
        for team_return, found in played:
            if filter_reward is not None and team_return < filter_reward:
                left_out += 1
                continue
            file.writelines(json.dumps(each) + "\n" for each in found)
            episodes, written = episodes + 1, written + len(found)
    return ExportResult(target, episodes, written, left_out, unfinished)


def _file_of(source: Path) -> Path:
    path = source / EPISODES_FILE if source.is_dir() else source
    if not path.is_file():
        fix = "name a run directory, or a file that mlrl collect wrote"
        raise ConfigError(f"there are no episodes in {str(source)!r}; {fix}")
    return path


def _read(path: Path, *, progress: bool) -> Iterator[_Line]:
    bar = progress_bar(total=path.stat().st_size, description=path.name, enabled=progress)
    with path.open(encoding="utf-8") as lines, bar:
        for number, line in enumerate(lines, start=1):
            bar.update(len(line))
            try:
                found = _played(line, number)
            except UNREADABLE:
                if not line.endswith("\n"):  # the process was ended while it wrote the line
                    return
                raise ConfigError(f"{path}:{number} is no episode of mlrl") from None
            yield found


def _played(line: str, number: int) -> _Line:
    record = json.loads(line)
    name = name_of(record, default=number - 1)
    played = [
        (
            float(episode.team_return),
            conversations(episode, f"{name}/{i}" if is_tree(record) else name),
        )
        for i, episode in enumerate(complete_episodes(record))
    ]
    return played, count_unfinished(record)
