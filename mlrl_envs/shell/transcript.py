"""Transcripts of episodes: observations, actions and rewards as readable text."""

from collections.abc import Sequence
from typing import Any

from mlrl_envs.parsing.text import printable
from mlrl_envs.types import AgentID, Task, TaskFamily, Turn

__all__ = ["transcript"]


def transcript(env_id: str, family: TaskFamily[Any], task: Task, turns: Sequence[Turn]) -> str:
    """Return the turns played and, if the episode goes on, the next observations.

    Args:
        env_id: Id of the environment, shown in the first line.
        family: The family, which produces the observations.
        task: The task of the episode.
        turns: The turns played so far.
    """
    lines = [f"{env_id}  task {task.task_id}"]
    for number, turn in enumerate(turns):
        lines.append(f"--- turn {number + 1} of {family.max_turns}")
        for agent in family.agents:
            lines += [f"[{agent} reads]", family.observe(task, turns[:number], agent)]
            lines += [f"[{agent} writes]", turn.actions[agent]]
            lines.append(f"[{agent} earns] {_earned(turn, agent)}")
    solved = bool(turns) and turns[-1].score.solved
    if not solved and len(turns) < family.max_turns:
        lines.append(f"--- turn {len(turns) + 1} of {family.max_turns}, to be played")
        for agent in family.agents:
            lines += [f"[{agent} reads]", family.observe(task, turns, agent)]
    return printable("\n".join(lines))


def _earned(turn: Turn, agent: AgentID) -> str:
    parts = ", ".join(f"{k} {v:.3f}" for k, v in turn.score.components[agent].items())
    return f"{turn.score.reward(agent):.3f} ({parts})"
