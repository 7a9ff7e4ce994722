"""Agents of an episode: those still in it, those that act next, and those that have left.

A family says who acts and who has left with optional methods, which are pure functions of the task
and the turns (see `mlrl_envs.types.TaskFamily`). Without them all agents act in every turn, and
leave together when the task is solved or the turn limit is reached.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mlrl_envs.errors import ContractError
from mlrl_envs.types import AgentID, Info, Task, TaskFamily, Turn

__all__ = ["NOBODY", "OPTIONAL_METHODS", "Roster", "acting_agents", "deal_task", "roster_of"]

OPTIONAL_METHODS = ("acting", "left", "deal", "reference_at")
"""Methods of a task family that need not exist."""


@dataclass(frozen=True, slots=True)
class Roster:
    """Agents of an episode after some turns, each tuple in the order of the family's agents.

    Attributes:
        told: Agents that get an observation: those that were in the episode before the last turn.
        terminated: Agents among them for which the task ended in the last turn.
        truncated: Agents among them that a limit stopped in the last turn.
        acting: Agents that are asked at the next step.
    """

    told: tuple[AgentID, ...] = ()
    terminated: tuple[AgentID, ...] = ()
    truncated: tuple[AgentID, ...] = ()
    acting: tuple[AgentID, ...] = ()

    @property
    def agents(self) -> tuple[AgentID, ...]:
        """Agents still in the episode."""
        if not self.terminated and not self.truncated:
            return self.told
        gone = {*self.terminated, *self.truncated}
        return tuple(agent for agent in self.told if agent not in gone)


NOBODY = Roster()
"""The roster outside an episode."""


def roster_of(family: TaskFamily[Any], task: Task, turns: Sequence[Turn]) -> Roster:
    """Return the agents of an episode after `turns`.

    Raises:
        ContractError: If nobody acts while the episode goes on, or an agent acts that is not in it.
    """
    before = _left(family, task, turns[:-1]) if turns else {}
    told = tuple(agent for agent in family.agents if agent not in before)
    is_solved = bool(turns) and turns[-1].score.solved
    if is_solved:
        return Roster(told, terminated=told)
    gone = _left(family, task, turns) if turns else {}
    is_cut = len(turns) >= family.max_turns
    terminated = tuple(agent for agent in told if gone.get(agent) == "terminated")
    truncated = tuple(
        agent for agent in told if agent not in terminated and (is_cut or agent in gone)
    )
    there = Roster(told, terminated, truncated)
    if not there.agents:
        return there
    return Roster(told, terminated, truncated, _acting(family, task, turns, there.agents))


def acting_agents(
    agents: Sequence[AgentID], infos: Mapping[AgentID, Mapping[str, Any] | Info]
) -> tuple[AgentID, ...]:
    """Return the agents that are asked at the next step of an environment.

    Args:
        agents: Agents still in the episode.
        infos: What `reset` or `step` returned; an agent without the key `acts` acts.
    """
    return tuple(agent for agent in agents if infos.get(agent, {}).get("acts", True))


def deal_task(family: TaskFamily[Any], task: Task, seed: int) -> Task:
    """Return the task of an episode, with the chance that the family draws from a seed."""
    deal = getattr(family, "deal", None)
    return task if deal is None else deal(task, seed)


def _left(family: TaskFamily[Any], task: Task, turns: Sequence[Turn]) -> Mapping[AgentID, str]:
    rule = getattr(family, "left", None)
    return {} if rule is None else rule(task, turns)


def _acting(
    family: TaskFamily[Any], task: Task, turns: Sequence[Turn], there: tuple[AgentID, ...]
) -> tuple[AgentID, ...]:
    rule = getattr(family, "acting", None)
    if rule is None:
        return there
    named = rule(task, turns)
    if not named or not set(named) <= set(there):
        raise ContractError(
            f"after turn {len(turns)} of task {task.task_id!r} some of {list(there)} must act, "
            f"and acting names {list(named)}"
        )
    return tuple(agent for agent in there if agent in named)
