"""Transcripts of episodes: observations, actions and rewards as readable text."""

from collections.abc import Sequence
from typing import Any

from mlrl_envs.parsing.text import printable
from mlrl_envs.shell.roster import roster_of
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
        for agent in roster_of(family, task, turns[:number]).agents:
            if agent in turn.actions:
                lines += [f"[{agent} reads]", family.observe(task, turns[:number], agent)]
                lines += [f"[{agent} writes]", turn.actions[agent]]
            else:
                lines.append(f"[{agent} waits]")
            lines.append(f"[{agent} earns] {_earned(turn, agent)}")
    roster = roster_of(family, task, turns)
    if roster.agents:
        lines.append(f"--- turn {len(turns) + 1} of {family.max_turns}, to be played")
        for agent in roster.agents:
            if agent in roster.acting:
                lines += [f"[{agent} reads]", family.observe(task, turns, agent)]
            else:
                lines.append(f"[{agent} waits]")
    return printable("\n".join(lines))


def _earned(turn: Turn, agent: AgentID) -> str:
    if agent not in turn.score.components:
        return "0.000"
    parts = ", ".join(f"{k} {v:.3f}" for k, v in turn.score.components[agent].items())
    return f"{turn.score.reward(agent):.3f} ({parts})"
