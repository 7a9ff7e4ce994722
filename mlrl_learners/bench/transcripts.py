"""Published episodes: gzipped JSON lines with actions, rewards and token counts.

Observations are included only if the suite says that the licence of the data allows it; they follow
from the task and the actions. Equal episodes give equal bytes.
"""

import gzip
import hashlib
import json
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mlrl_learners.bench.schemas import check_episode
from mlrl_learners.bench.suite_run import PlayedEntry
from mlrl_learners.errors import ConfigError
from mlrl_learners.runs.labels import published_record
from mlrl_learners.runs.stored import UNREADABLE, Record, decode_episode
from mlrl_learners.runs.tree import is_tree

__all__ = ["pack", "published", "read_episodes", "sha256_of"]

LARGEST = 1 << 28
"""Most bytes that a compressed file may expand to; a small file can expand to terabytes."""


def published(played: Sequence[PlayedEntry]) -> list[dict[str, Any]]:
    """Return the records of a run's episodes with the keys that are published."""
    return [
        published_record(record, show_prompts=each.entry.show_prompts)
        for each in played
        for record in each.episodes
    ]


def pack(episodes: Sequence[Record]) -> bytes:
    """Return the bytes of the compressed file: one line per episode."""
    lines = "".join(json.dumps(episode) + "\n" for episode in episodes)
    return gzip.compress(lines.encode("ascii"), mtime=0)


def sha256_of(data: bytes) -> str:
    """Return the SHA-256 digest of `data` in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def read_episodes(path: Path) -> list[dict[str, Any]]:
    """Read the records of a file, compressed or not; a torn last line is left out.

    Raises:
        ConfigError: If the file cannot be read or expands to more than `LARGEST` bytes, or a line
            is not an episode.
    """
    try:
        data = path.read_bytes()
        text = (_unpacked(path) if data[:2] == b"\x1f\x8b" else data).decode("utf-8")
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        raise ConfigError(f"cannot read episodes from {str(path)!r}: {error}") from error
    lines = text.split("\n")
    episodes = []
    for number, line in enumerate(lines, start=1):
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            if number == len(lines):  # empty or torn
                break
            raise ConfigError(f"{path}:{number} is not an episode: {error}") from None
        _check(record, f"{path}:{number}")
        episodes.append(record)
    return episodes


def _unpacked(path: Path) -> bytes:
    with gzip.open(path) as file:
        data = file.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise ConfigError(f"{path.name} holds more than {LARGEST >> 20} MiB")
    return data


def _check(record: Any, source: str) -> None:  # noqa: ANN401 - JSON values
    if isinstance(record, dict) and is_tree(record):
        raise ConfigError(
            f"{source} is a rollout of training, which is not scored again; `mlrl evaluate RUN "
            "--episodes FILE` and `mlrl collect` write episodes that are"
        )
    check_episode(record, source)
    try:
        decode_episode(record)
    except UNREADABLE as error:
        raise ConfigError(f"{source} is not an episode: {error!r}") from None
