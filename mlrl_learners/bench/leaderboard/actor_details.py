"""Descriptions of actors in rows of the leaderboard."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

__all__ = ["bound_of", "counted", "detail_of", "runs_of"]


def runs_of(actor: Mapping[str, Any], *envs: str) -> Sequence[Mapping[str, Any]]:
    """Return the training runs that play some environments."""
    trained: Sequence[Mapping[str, Any]] = actor.get("trained") or ()
    # Results of older versions do not say what a run plays: what it was trained on, or anything.
    found = [run for run in trained if {*run.get("plays", (run["env"],))} & {*envs}]
    return found or trained


def bound_of(actor: Mapping[str, Any]) -> str:
    """Return `reference` or `random` for these actors; empty for any other."""
    base = str(actor["base"])
    return base if actor["way"] == "plain" and base in ("reference", "random") else ""


def detail_of(actor: Mapping[str, Any], runs: Sequence[Mapping[str, Any]]) -> str:
    """Return the way of playing of an actor, or the training runs that it is of, and its note."""
    parts = [actor["base"] if actor["way"] == "plain" else f"{actor['way']} of {actor['base']}"]
    if runs:
        parts = _training(runs)
    if actor.get("note"):
        parts.append(str(actor["note"]))
    return " · ".join(parts)


def _training(runs: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the models of training runs, and how these trained; unequal numbers are a range."""
    place = _each(f"{run['env']} ({run['options'].get('split', 'train')})" for run in runs)
    iterations, tasks = (
        _count_range([run[key] for run in runs], noun)
        for key, noun in (("iterations", "iteration"), ("tasks_per_iteration", "task"))
    )
    learner, number = _each(run["learner"] for run in runs), counted(len(runs), "run")
    training = f"trained by {learner} on {place}, {iterations} of {tasks}, {number}"
    return [_each(run["model"] for run in runs), training]


def _each(values: Iterable[object]) -> str:
    """Return the distinct values, in order."""
    return " and ".join(dict.fromkeys(map(str, values)))


def _count_range(numbers: Sequence[int], noun: str) -> str:
    low, high = min(numbers), max(numbers)
    return counted(high, noun) if low == high else f"{low} to {high} {noun}s"


def counted(number: int, noun: str) -> str:
    """Return a number with a noun, such as "3 runs"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
