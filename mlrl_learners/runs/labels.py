"""Labels of episode records: origin, suite entry, publication and new scores.

Labels are the keys of an episode's record that say where it comes from (`keys.LABELS`). Functions
that change a record return a new one and keep the keys that they do not name.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mlrl_learners.errors import ConfigError
from mlrl_learners.runs.keys import OPPONENTS, PUBLISHED_EPISODE, PUBLISHED_TURN
from mlrl_learners.runs.stored import Record
from mlrl_learners.runs.tree import is_tree
from mlrl_learners.types import AgentID, FailedEpisode

__all__ = [
    "TurnScore",
    "attempt_record",
    "collection_of",
    "entry_of",
    "key_of",
    "missing_labels",
    "name_of",
    "origin_of",
    "place_of",
    "published_record",
    "rescored_record",
    "suite_labels",
    "with_origin",
    "with_scorer",
]


@dataclass(frozen=True, slots=True)
class TurnScore:
    """The outcome of one turn, as an environment returned it.

    Attributes:
        rewards: Agent -> reward.
        components: Agent -> named parts of the reward.
        diagnostics: Agent -> JSON values.
        solved: Whether this turn solved the task.
    """

    rewards: Mapping[AgentID, float]
    components: Mapping[AgentID, Mapping[str, float]]
    diagnostics: Mapping[AgentID, object]
    solved: bool


def suite_labels(
    key: str, entry: str, suite_seed: int, *, task_index: object, **labels: object
) -> dict[str, Any]:
    """Return the labels of an episode of a suite, in the order of the file."""
    named = {"key": key, "entry": entry, "suite_seed": suite_seed, **labels}
    return {**named, "task_index": task_index}


def attempt_record(failure: FailedEpisode, tries: int, **labels: object) -> dict[str, Any]:
    """Encode a failed attempt at an episode of a suite; `labels` are written first."""
    return {**labels, "tries": tries, "error": failure.error, "message": failure.message}


def key_of(record: Record) -> str:
    """Return the content hash that identifies an episode or a failure of a suite."""
    return str(record["key"])


def entry_of(record: Record) -> str:
    """Return the entry of a suite that an episode belongs to."""
    return str(record["entry"])


def place_of(record: Record) -> tuple[object, object, object]:
    """Return the seed of the suite, the index of the task and the seed of an episode of a suite."""
    return record["suite_seed"], record["task_index"], record["seed"]


def missing_labels(record: Record) -> list[str]:
    """Return the labels that an episode of a suite must have and this record lacks."""
    return sorted({"entry", "suite_seed"} - record.keys())


def name_of(record: Record, default: int) -> str:
    """Return what distinguishes a line of a file from the others.

    It is iteration and rollout for a rollout of training, the number of an episode of a collection,
    and otherwise `default`.
    """
    if is_tree(record):
        return f"{record['iteration']}/{record['rollout']}"
    return str(record.get("number", default))


def collection_of(record: Record) -> tuple[object, int]:
    """Return the description of the collection that an episode is part of, and its number there.

    Raises:
        KeyError: If it has a description and no number.
    """
    source = record.get("source")
    return source, int(str(record["number"])) if isinstance(source, dict) else 0


def origin_of(record: Record) -> tuple[str, dict[str, Any]] | None:
    """Return environment id and options, split included; None if the record does not say.

    Raises:
        ConfigError: If the source of the episode or the options in it are no object.
    """
    source = record if record.get("source") is None else _object(record, "source")
    if "env_id" not in source:
        return None
    options = dict(_object(source, "env_options"))
    if source.get("split") is not None:
        options["split"] = source["split"]
    return source["env_id"], options


def with_origin(record: Record, env_id: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record that names an environment and options, such as those of new scores.

    A record with other options loses its key, because it is no longer the episode of its suite.
    """
    if origin_of(record) == (env_id, dict(options)):
        return dict(record)
    source = {**_object(record, "source"), "env_id": env_id, "env_options": dict(options)}
    source.pop("split", None)  # it is one of the options
    kept = {name: value for name, value in record.items() if name != "key"}
    split = {"split": options["split"]} if "split" in record and "split" in options else {}
    return {**kept, **split, "source": source}


def published_record(record: Record, *, show_prompts: bool) -> dict[str, Any]:
    """Return an episode with the keys that are published.

    Args:
        record: The episode.
        show_prompts: Keep the observations of every turn.
    """
    kept = (*PUBLISHED_TURN, "observations") if show_prompts else PUBLISHED_TURN
    turns = [{name: turn[name] for name in kept} for turn in record["turns"]]
    return {**{name: record[name] for name in PUBLISHED_EPISODE if name in record}, "turns": turns}


def rescored_record(record: Record, scores: Sequence[TurnScore]) -> dict[str, Any]:
    """Return an episode with new scores; turns without one are dropped.

    Args:
        record: The episode.
        scores: For each of its first turns the new score, at least one.
    """
    returns = {
        agent: sum(score.rewards[agent] for score in scores if agent in score.rewards)
        for agent in scores[0].rewards  # some may leave before the others
    }
    opponents = record.get(OPPONENTS) or {}
    own = [value for agent, value in returns.items() if agent not in opponents]
    return {
        **record,
        "return": sum(own) / len(own),
        "returns": returns,
        "solved": scores[-1].solved,
        "turns": [
            _rescored_turn(turn, score)
            for turn, score in zip(record["turns"], scores, strict=False)
        ],
    }


def with_scorer(record: Record, scorer: str) -> dict[str, Any]:
    """Return a record with another fingerprint of the scoring code, if it has one at all."""
    return {**record, "scorer": scorer} if "scorer" in record else dict(record)


def _object(record: Record, name: str) -> Record:
    value = record.get(name)
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise ConfigError(f"{name} of an episode must be a JSON object, got {repr(value)[:80]}")
    return value


def _rescored_turn(turn: Record, score: TurnScore) -> dict[str, Any]:
    new = {
        **turn,
        "rewards": dict(score.rewards),
        "components": {agent: dict(named) for agent, named in score.components.items()},
    }
    if "diagnostics" in turn:
        new["diagnostics"] = dict(score.diagnostics)
    return new
