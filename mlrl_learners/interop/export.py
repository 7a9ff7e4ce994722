"""Files of episodes as conversations, for other people's tools; nothing is ever loaded whole."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mlrl_learners.errors import ConfigError, RunDirError
from mlrl_learners.interop.conversations import conversations, count_unfinished, episodes_of
from mlrl_learners.progress import progress_bar

__all__ = ["ExportResult", "export"]

EPISODES_FILE = "episodes.jsonl"

_Played = tuple[float, list[dict[str, Any]]]
"""An episode: its team return, and its conversations."""

_Line = tuple[list[_Played], int]
"""The episodes of a line, and how many lines of play are not among them."""


@dataclass(frozen=True, slots=True)
class ExportResult:
    """What an export came to.

    Attributes:
        path: The file that was written.
        episodes: Episodes that are in it.
        conversations: Lines of it, one an agent an episode.
        left_out: Episodes that earned too little.
        unfinished: Lines of play of a run that a chain did not follow to their end; they are no
            episodes, and not in the file.
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
    """Write the conversations of every episode, as `mlrl_learners.interop.conversations` has them.

    The file is complete or not there: it is written beside its place and renamed.

    Args:
        source: A run directory, or a file of `mlrl collect` or `mlrl evaluate --episodes`; a torn
            last line is left out.
        out: The JSONL file.
        filter_reward: Keep only episodes whose team return is at least this; None for all.
        progress: Show a progress bar.

    Raises:
        ConfigError: If the source is missing, or a line is no episode.
        RunDirError: If `out` is there already, or cannot be written.
    """
    path, target = _file_of(Path(source)), Path(out)
    if target.exists():
        raise RunDirError(f"{str(target)!r} is there already; choose another file")
    partial = target.with_name(f".{target.name}.partial")
    episodes = lines = left_out = unfinished = 0
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with partial.open("w", encoding="utf-8") as file:
            for played, not_walked in _read(path, progress=progress):
                unfinished += not_walked
                for earned, found in played:
                    if filter_reward is not None and earned < filter_reward:
                        left_out += 1
                        continue
                    file.writelines(json.dumps(each) + "\n" for each in found)
                    episodes, lines = episodes + 1, lines + len(found)
        partial.replace(target)
    except UnicodeDecodeError as error:
        raise ConfigError(f"{str(path)!r} is no text; unpack it first if it is packed") from error
    except OSError as error:
        raise RunDirError(f"cannot write {str(target)!r}: {error}") from error
    finally:
        partial.unlink(missing_ok=True)
    return ExportResult(target, episodes, lines, left_out, unfinished)


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
            except (ValueError, LookupError, TypeError, AttributeError):
                if not line.endswith("\n"):  # torn
                    return
                raise ConfigError(f"{path}:{number} is no episode of mlrl") from None
            yield found


def _played(line: str, number: int) -> _Line:
    record = json.loads(line)
    episodes = episodes_of(record, _name(record, number))
    played = [(float(each["return"]), conversations(each)) for each in episodes]
    return played, count_unfinished(record)


def _name(record: Mapping[str, Any], number: int) -> str:
    """Tell a line from others: by the rollout of a run, the number in a collection, or its own."""
    if "node" in record:
        return f"{record['iteration']}/{record['rollout']}"
    return str(record.get("number", number - 1))
