"""What an agent's info says: the turn that was scored, in JSON values."""

from collections.abc import Mapping, Sequence
from typing import Any

from mlrl_envs.types import AgentID, Info, Task, Turn

__all__ = ["info_of"]

_ATOMS = frozenset((str, float, bool, int, type(None)))


def info_of(task: Task, turns: Sequence[Turn], agent: AgentID) -> Info:
    """Return the info of `agent` after `turns`; the caller may change it."""
    last = turns[-1].score if turns else None
    return {
        "task_id": task.task_id,
        "turn": len(turns),
        "components": dict(last.components[agent]) if last else {},
        "solved": last.solved if last else False,
        "diagnostics": _copied(last.diagnostics.get(agent, {})) if last else {},
    }


def _copied(value: Any) -> Any:  # noqa: ANN401  any JSON value
    """Copy a JSON value, at a tenth of what `copy.deepcopy` takes to look for cycles."""
    kind = type(value)
    if kind in _ATOMS:
        return value
    if kind is dict or isinstance(value, Mapping):
        copy = dict(value)
        for name, entry in copy.items():
            if type(entry) not in _ATOMS:
                copy[name] = _copied(entry)
        return copy
    if kind is list or isinstance(value, list | tuple):
        return [entry if type(entry) in _ATOMS else _copied(entry) for entry in value]
    return value
