"""Episodes as they are published: what was written and what it earned, one JSON line each, gzipped.

What agents read is kept only where the suite says that the data's licence allows it; it follows
from the task and the answers anyway. The same episodes always give the same bytes.
"""

import gzip
import hashlib
import json
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mlrl_learners.bench.run import Played
from mlrl_learners.bench.schemas import check_episode
from mlrl_learners.errors import ConfigError

__all__ = ["pack", "published", "read_episodes", "sha256_of"]

LARGEST = 1 << 28  # bytes that a compressed file may grow to: a small one can hold terabytes

KEPT = (
    *("key", "entry", "suite_seed", "task_id", "task_index", "seed"),
    *("return", "returns", "solved", "seconds"),
)
KEPT_OF_TURNS = ("actions", "tokens", "prompt_tokens", "finish_reasons", "rewards", "components")


def published(played: Sequence[Played]) -> list[dict[str, Any]]:
    """Return the episodes of a run as they are published."""
    return [
        _published(record, show_prompts=each.entry.show_prompts)
        for each in played
        for record in each.episodes
    ]


def pack(episodes: Sequence[Mapping[str, Any]]) -> bytes:
    """Return the bytes of the file: one line an episode, compressed."""
    lines = "".join(json.dumps(episode) + "\n" for episode in episodes)
    return gzip.compress(lines.encode("ascii"), mtime=0)


def sha256_of(data: bytes) -> str:
    """Return the SHA-256 of some bytes."""
    return hashlib.sha256(data).hexdigest()


def read_episodes(path: Path) -> list[dict[str, Any]]:
    """Read episodes from a file, compressed or not; a torn last line is left out.

    Raises:
        ConfigError: If the file cannot be read or grows too large, or a line is no episode.
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
            if number == len(lines):  # nothing, or torn
                break
            raise ConfigError(f"{path}:{number} is not an episode: {error}") from None
        check_episode(record, f"{path}:{number}")
        episodes.append(record)
    return episodes


def _unpacked(path: Path) -> bytes:
    with gzip.open(path) as file:
        data = file.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise ConfigError(f"{path.name} holds more than {LARGEST >> 20} MiB")
    return data


def _published(record: Mapping[str, Any], *, show_prompts: bool) -> dict[str, Any]:
    kept = (*KEPT_OF_TURNS, "observations") if show_prompts else KEPT_OF_TURNS
    turns = [{name: turn[name] for name in kept} for turn in record["turns"]]
    return {**{name: record[name] for name in KEPT if name in record}, "turns": turns}
