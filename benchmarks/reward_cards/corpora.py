"""Answers of people, of honest authors and of models, and what they earn.

Honest answers are those of `tests/mlrl_envs/honest`. Models' answers are the transcripts of the
benchmark suites (`benchmarks/results`), random and reference answers apart. People's texts are the
TL;DRs in `tldr.jsonl` of MLRL_DATA_DIR, each played as the summary of a pair without an
elaboration. Answers to tasks that are not there (another split's data, tasks of earlier versions)
are left out.
"""

import contextlib
import gzip
import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import mlrl_envs
from mlrl_envs.auditing.honest import read_corpus
from mlrl_envs.auditing.shares import shares_of
from mlrl_envs.errors import DataNotFoundError, InvalidArgumentError
from mlrl_envs.rewards.writing.tldr import RULES

__all__ = ["earned", "honest_lines", "model_lines", "people_shares"]

ROOT = Path(__file__).resolve().parents[2]
CORPORA = ROOT / "tests/mlrl_envs/honest"
RESULTS = ROOT / "benchmarks/results"
MAX_MODELS = 100
NOT_MODELS = ("random", "reference")

Line = Mapping[str, Any]
"""An answer in the format of `mlrl_envs.auditing.honest`, with the options that it was made for."""


def honest_lines(env_id: str) -> list[Line]:
    """Return the honest answers for an environment."""
    lines = (
        json.loads(line)
        for path in sorted(CORPORA.glob("*.jsonl"))
        for line in path.read_text("utf-8").splitlines()
    )
    return [line for line in lines if "turns" in line and _is_version_of(line["env_id"], env_id)]


def model_lines(env_id: str) -> list[Line]:
    """Return answers that models gave in the benchmark suites, at most 100 chosen by a hash."""
    found = []
    for path in sorted(RESULTS.glob("*/*.episodes.jsonl.gz")):
        if path.name.split(".")[0] in NOT_MODELS:
            continue
        with gzip.open(path, "rt", encoding="utf-8") as file:
            episodes = [json.loads(line) for line in file]
        found += [_as_line(each) for each in episodes if _names(each["entry"], env_id)]
    return sorted(found, key=lambda line: _hash(json.dumps(line)))[:MAX_MODELS]


def earned(
    env_id: str, options: Mapping[str, Any], lines: Sequence[Line], seed: int
) -> list[float]:
    """Play answers in the splits that they belong to, and return their shares of the reward range.

    Answers that were made for other options, such as more agents, are left out.

    Raises:
        InfraError: If the infrastructure fails.
    """
    shares: list[float] = []
    for split, tasks, source in sorted({_place(line) for line in lines}):
        data: dict[str, Any] = {"data_path": CORPORA / tasks} if tasks else {}
        data |= {"source": source} if source else {}
        try:
            env: Any = mlrl_envs.make(env_id, **{**options, **data, "split": split})
        except DataNotFoundError:
            continue
        of_split = [line for line in fitting(env, lines) if line["split"] == split]
        with contextlib.suppress(InvalidArgumentError):  # none of the tasks is there
            shares += shares_of(env, [], [], read_corpus(env, of_split, seed)).honest
        env.close()
    return shares


def _place(line: Line) -> tuple[str, str, str]:
    """Return the split, the file and the source of the task that a line answers."""
    source = (line.get("options") or {}).get("source", "")
    return str(line["split"]), str(line.get("tasks", "")), str(source)


def fitting(env: Any, lines: Sequence[Line]) -> list[Line]:  # noqa: ANN401  a built-in one
    """Return the answers made for the tasks and options of an environment, communication apart.

    `tasks` of a line names a file with the tasks that it answers, for `data_path=`.
    """
    config, tasks = env.family.config, {task.task_id for task in env.family.tasks}
    return [
        line
        for line in lines
        if str(line["task_id"]) in tasks
        and ("tasks" not in line or config.path == str(CORPORA / line["tasks"]))
        and all(
            name == "communication" or getattr(config, name) == value
            for name, value in (line.get("options") or {}).items()
        )
    ]


def people_shares(env_id: str, options: Mapping[str, Any], seed: int) -> list[float]:
    """Return what people's TL;DRs earn, as shares of what a summary alone can earn.

    Only the half that was not used to choose thresholds is played. The list is empty for other
    environments, without MLRL_DATA_DIR, and for rewards that pay nothing for one text of two.
    """
    path = Path(os.environ.get("MLRL_DATA_DIR", "")) / "tldr.jsonl"
    is_paid = options.get("reward", "grounded") in ("grounded", "judged")
    if not (env_id.startswith("mlrl/tldr-") and is_paid and path.is_file()):
        return []
    alone = RULES.parts[0].weight / 2
    lines = list(_tldr_lines(path, env_id))
    return [min(share / alone, 1.0) for share in earned(env_id, options, lines, seed)]


def _tldr_lines(path: Path, env_id: str) -> Iterator[Line]:
    for text in path.read_text("utf-8").splitlines():
        row = json.loads(text)
        summary = row["completion"].strip()
        if hashlib.sha256(summary.encode()).digest()[0] % 2:
            yield {
                "env_id": env_id,
                "split": "all",
                "task_id": f"tldr/{_hash(row['prompt'])[:12]}",
                "turns": [{"summary": summary, "elaboration": ""}],
            }


def _as_line(episode: Mapping[str, Any]) -> Line:
    env_id, _, split = str(episode["entry"]).partition(":")
    turns = [turn["actions"] for turn in episode["turns"]]
    return {"env_id": env_id, "split": split, "task_id": episode["task_id"], "turns": turns}


def _names(entry: str, env_id: str) -> bool:
    return _is_version_of(entry.partition(":")[0], env_id)


def _is_version_of(one: str, other: str) -> bool:
    return one.rpartition("-v")[0] == other.rpartition("-v")[0]


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
