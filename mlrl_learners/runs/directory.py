"""The folder of a run: what is written where, and what a resumed run sets aside.

`config.yaml` (resolved), `environment.json` (versions, hardware), `metrics.jsonl`,
`episodes.jsonl` (one line a rollout), `evaluations.jsonl`, `failures.jsonl` (episodes that
infrastructure broke), `checkpoints/`. Lines are only ever appended; what an interrupted run wrote
after its last checkpoint moves to `*.abandoned.jsonl` when it is resumed, and is done again.
With several processes only the first one writes.
"""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mlrl_learners.processes.work_sharing import is_main
from mlrl_learners.errors import RunDirError
from mlrl_learners.loggers import JsonlFile
from mlrl_learners.types import Completion, FailedEpisode, Node, Rollout
from mlrl_learners.config.yaml import dump_yaml, parse_yaml

__all__ = ["RunDir", "rollout_record"]

RECORDS = ("metrics", "episodes", "evaluations", "failures")
MAY_CHANGE = ("train.iterations", "train.checkpoint_every", "train.keep_checkpoints", "logging")


class RunDir:
    """Opens the folder of a new run, or of one that goes on.

    Args:
        path: The folder.
        config: The resolved configuration, JSON values.
        environment: Versions and hardware, JSON values.
        resume: Go on with the run that is there; start one where there is none.
        token_ids: Keep them in `episodes.jsonl`.

    Raises:
        RunDirError: If it cannot be written, holds a run and `resume` is false, or holds a run of
            another configuration.
    """

    def __init__(
        self,
        path: Path,
        *,
        config: Mapping[str, Any],
        environment: Mapping[str, Any],
        resume: bool,
        token_ids: bool = False,
    ) -> None:
        self.path = path
        self._token_ids = token_ids
        self._files: dict[str, JsonlFile] = {}
        if not is_main():
            return
        self._check(config, resume)
        self._write("config.yaml", dump_yaml(json.loads(json.dumps(config))))
        if not (path / "environment.json").exists():
            self._write("environment.json", json.dumps(environment, indent=2) + "\n")
        self._files = {name: JsonlFile(path / f"{name}.jsonl") for name in RECORDS}

    def rewind(self, iteration: int) -> None:
        """Set aside every line that was written after `iteration`."""
        for file in self._files.values():
            file.keep(lambda record: int(str(record["iteration"])) <= iteration)

    def add_metrics(self, iteration: int, metrics: Mapping[str, object]) -> None:
        """Write the line of an iteration."""
        self._append("metrics", {"iteration": iteration, **metrics})

    def add_evaluation(self, iteration: int, found: Mapping[str, object]) -> None:
        """Write the line of an evaluation."""
        self._append("evaluations", {"iteration": iteration, **found})

    def add_rollouts(self, iteration: int, rollouts: Sequence[Rollout]) -> None:
        """Write one line a rollout."""
        for number, rollout in enumerate(rollouts):
            record = rollout_record(rollout, token_ids=self._token_ids)
            self._append("episodes", {"iteration": iteration, "rollout": number, **record})

    def add_failures(self, iteration: int, failures: Sequence[FailedEpisode]) -> None:
        """Write one line an episode that infrastructure broke."""
        for failure in failures:
            self._append("failures", {"iteration": iteration, **dataclasses.asdict(failure)})

    def keep_rollouts(self, iteration: int, rollouts: Sequence[Rollout]) -> Path:
        """Write rollouts with tokens, log-probabilities and nuclei, to look at a failed update."""
        name = f"rollouts_{iteration}.json"
        if is_main():
            records = [dataclasses.asdict(rollout) for rollout in rollouts]
            self._write(name, json.dumps(records, default=lambda array: array.tolist()))
        return self.path / name

    def _append(self, name: str, record: Mapping[str, object]) -> None:
        if name in self._files:
            self._files[name].append(record)

    def _check(self, config: Mapping[str, Any], resume: bool) -> None:
        stored = self.path / "config.yaml"
        if not stored.exists():
            return
        if not resume:
            raise RunDirError(
                f"{str(self.path)!r} holds a run already; resume it or choose another folder"
            )
        changed = _changed_keys(
            parse_yaml(stored.read_text(), str(stored)), json.loads(json.dumps(config))
        )
        if changed:
            raise RunDirError(
                f"{str(self.path)!r} was started with another configuration: {changed[0]}"
            )

    def _write(self, name: str, text: str) -> None:
        partial = self.path / f".{name}.partial"
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            partial.write_text(text)
            partial.replace(self.path / name)
        except OSError as error:
            raise RunDirError(f"cannot write {str(self.path / name)!r}: {error}") from error


def rollout_record(rollout: Rollout, *, token_ids: bool = False) -> dict[str, Any]:
    """Return a rollout as JSON values: texts and verdicts, and token ids on request.

    With them a node has `prompt_ids`, an agent's prompt, and a completion `token_ids` and
    `logprobs`.
    """
    return {
        "env_id": rollout.env_id,
        "task_id": rollout.task_id,
        "seed": rollout.seed,
        "agents": list(rollout.agents),
        "node": _node_record(rollout.root, token_ids=token_ids),
    }


def _node_record(node: Node, *, token_ids: bool) -> dict[str, Any]:
    prompts = {a: list(group[0].prompt_ids) for a, group in node.completions.items()}
    return {
        "turn": node.turn,
        "observations": dict(node.observations),
        **({"prompt_ids": prompts} if token_ids else {}),
        "completions": {
            agent: [_completion_record(each, token_ids=token_ids) for each in completions]
            for agent, completions in node.completions.items()
        },
        "steps": [
            {
                "samples": dict(step.samples),
                "rewards": dict(step.rewards),
                "components": {agent: dict(parts) for agent, parts in step.components.items()},
                "solved": any(bool(info.get("solved")) for info in step.infos.values()),
                "diagnostics": {a: info.get("diagnostics") for a, info in step.infos.items()},
                "terminated": step.terminated,
                "truncated": step.truncated,
                "child": step.child and _node_record(step.child, token_ids=token_ids),
            }
            for step in node.steps
        ],
    }


def _completion_record(completion: Completion, *, token_ids: bool) -> dict[str, Any]:
    ids = {"token_ids": list(completion.token_ids), "logprobs": list(completion.logprobs)}
    return {
        "text": completion.text,
        "tokens": len(completion.token_ids),
        "finish_reason": completion.finish_reason,
        **(ids if token_ids else {}),
    }


def _changed_keys(old: Any, new: Any, name: str = "") -> list[str]:  # noqa: ANN401 - JSON values
    """Describe where two configurations differ in what decides the outcome of a run."""
    if name in MAY_CHANGE or old == new:
        return []
    if not (isinstance(old, dict) and isinstance(new, dict)):
        return [f"{name} was {old!r}, now {new!r}"]
    prefix = f"{name}." if name else ""
    return [
        change
        for key in sorted(old.keys() | new.keys())
        for change in _changed_keys(old.get(key), new.get(key), f"{prefix}{key}")
    ]
