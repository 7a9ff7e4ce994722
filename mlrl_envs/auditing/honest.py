"""Honest answers to the tasks of an environment: its references, and a corpus of an author.

A corpus is a JSONL file, or a sequence of its lines as mappings:

    {"env_id": "mlrl/story-v1", "split": "train", "task_id": "story/train/0", "style": "plain",
     "turns": [{"setup": "...", "story": "..."}]}

`turns` lists the joint actions in order; `split` and `style` are not read. The version in `env_id`
need not match. Lines of other environments, of other agents and of tasks outside the split are left
out.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mlrl_envs.auditing.playing import Place, start
from mlrl_envs.auditing.scene import JointAction
from mlrl_envs.errors import InvalidArgumentError
from mlrl_envs.types import TextEnv

__all__ = ["Corpus", "HonestAnswer", "read_corpus"]

Corpus = str | Path | Iterable[Mapping[str, Any]]


@dataclass(frozen=True)
class HonestAnswer:
    """An honest answer to one task.

    Attributes:
        task_id: Id of the task.
        place: How the environment is reset to the task.
        turns: Joint actions in order, at least one.
    """

    task_id: str
    place: Place
    turns: Sequence[JointAction]


def read_corpus(env: TextEnv, corpus: Corpus, seed: int) -> list[HonestAnswer]:
    """Return the answers of a corpus to the tasks of an environment.

    Raises:
        InvalidArgumentError: If the file cannot be read, a line does not follow the schema, or no
            line fits the environment.
    """
    found = []
    entries = _lines(Path(corpus)) if isinstance(corpus, str | Path) else list(corpus)
    for number, entry in enumerate(entries, start=1):
        answer = _answer(env, entry, number, seed)
        if answer is not None:
            found.append(answer)
    if not found:
        name = env.metadata.get("name", "this environment")
        raise InvalidArgumentError(
            f"none of the {len(entries)} honest answers is for a task of {name} in its split"
        )
    return found


def _answer(env: TextEnv, entry: Mapping[str, Any], number: int, seed: int) -> HonestAnswer | None:
    try:
        env_id, task_id, turns = entry["env_id"], str(entry["task_id"]), list(entry["turns"])
        is_ours = _unversioned(env_id) == _unversioned(env.metadata.get("name", env_id))
        fits = all(set(turn) == set(env.possible_agents) for turn in turns) and bool(turns)
    except (KeyError, TypeError, AttributeError) as error:
        raise InvalidArgumentError(f"honest answer {number} lacks a field: {error!r}") from error
    if not is_ours or not fits:
        return None
    place = Place(seed, {"task_id": task_id})
    try:
        started, _ = start(env, place)
    except (ValueError, LookupError):  # a task of another split
        return None
    return HonestAnswer(task_id, place, turns) if started == task_id else None


def _lines(path: Path) -> list[Mapping[str, Any]]:
    try:
        lines = path.read_text("utf-8").split("\n")
        return [json.loads(line) for line in lines if line.strip()]
    except (OSError, ValueError) as error:
        raise InvalidArgumentError(
            f"cannot read honest answers from {str(path)!r}: {error}"
        ) from error


def _unversioned(env_id: str) -> str:
    return str(env_id).rpartition("-v")[0] or str(env_id)
