"""One agent that acts for a whole team: it reads all observations and writes all answers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import mlrl_envs
from mlrl_envs.shell.roster import roster_of
from mlrl_envs.shell.wrapped import WrappedFamily
from mlrl_envs.types import AgentID, Attempt, ProgramRunner, Score, Task, Turn
from mlrl_learners.figures.means import mean

__all__ = ["AGENT", "ENV_ID", "OneAgentFamily", "answer_of", "observation_of", "one_agent"]

ENV_ID = "benchmarks.teams.one_agent:one_agent"
"""Name of the environment on the command line and in configurations."""
AGENT, SEPARATOR = "team", "|"
_OF_BASE = ("deal", "config", "expert")  # only where the wrapped family has them


def one_agent(team_env: str, **options: Any) -> mlrl_envs.TextParallelEnv:  # noqa: ANN401
    """Make an environment whose only agent acts for all agents of another one.

    Args:
        team_env: Id of the other environment, a `TextParallelEnv`.
        **options: Its options.
    """
    env: Any = mlrl_envs.make(team_env, **options)
    family = OneAgentFamily(env.family)
    return mlrl_envs.TextParallelEnv(family, env_id=env.metadata["name"], sandbox=env.sandbox)


@dataclass(frozen=True, slots=True)
class OneAgentScore(Score):
    """The score of a turn.

    Attributes:
        base: The turn of the wrapped family.
    """

    base: Turn | None = None


@dataclass(frozen=True)
class OneAgentFamily(WrappedFamily):
    """Episodes of another family, with one agent; its reward is the mean of all rewards."""

    @property
    def agents(self) -> tuple[AgentID, ...]:
        """The one agent."""
        return (AGENT,)

    def left(self, task: Task, turns: Sequence[Turn]) -> dict[AgentID, str]:
        """Return that the agent has left when all agents of the wrapped family have."""
        roster = roster_of(self.family, task, _played(turns))
        return {} if roster.agents else {AGENT: "terminated"}

    def observe(self, task: Task, turns: Sequence[Turn], agent: AgentID) -> str:  # noqa: ARG002
        """Return what all agents read, those that wait included."""
        return observation_of(self.family, task, _played(turns))

    def score(self, attempts: Sequence[Attempt[Any]], sandbox: ProgramRunner) -> list[Score]:
        """Score attempts as a batch of the wrapped family.

        Raises:
            InfraError: If the sandbox or a request to a model fails.
        """
        bases = [self._base(attempt) for attempt in attempts]
        scores = self.family.score(bases, sandbox)
        return [self._score(base, score) for base, score in zip(bases, scores, strict=True)]

    def reference(self, task: Task) -> Mapping[str, str] | None:
        """Return the correct answers of all agents in the first turn."""
        return self.reference_at(task, ())

    def reference_at(self, task: Task, turns: Sequence[Turn]) -> dict[str, str] | None:
        """Return the correct answers of all agents that act next."""
        at: Any = getattr(self.family, "reference_at", None)
        found = at(task, _played(turns)) if at else self.family.reference(task)
        if found is None:
            return None
        acting = roster_of(self.family, task, _played(turns)).acting
        return {AGENT: answer_of([found[agent] for agent in acting])}

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - a method or the options
        if name in _OF_BASE:
            return getattr(self.family, name)
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    def _base(self, attempt: Attempt[Any]) -> Attempt[Any]:
        """Return the attempt of the wrapped family; answers that are missing are empty."""
        played = _played(attempt.turns)
        acting = roster_of(self.family, attempt.task, played).acting
        parts = [part.strip() for part in attempt.actions[AGENT].split(SEPARATOR)]
        parts += [""] * len(acting)
        return Attempt(attempt.task, played, dict(zip(acting, parts, strict=False)))

    def _score(self, base: Attempt[Any], score: Score) -> OneAgentScore:
        turn, components = Turn(base.actions, score), {}
        if score.components:
            sums = [sum(score.components.get(agent, {}).values()) for agent in self.family.agents]
            components = {AGENT: {"team": mean(sums)}}
        return OneAgentScore(components, score.solved, base=turn)


def observation_of(family: Any, task: Task, turns: Sequence[Turn]) -> str:  # noqa: ANN401
    """Return the observations of all agents of a family, one after the other."""
    roster = roster_of(family, task, turns)
    shown = [f"[{agent}]\n{family.observe(task, turns, agent)}" for agent in roster.told]
    asked = f"Answer for {', '.join(roster.acting)}, in this order, with {SEPARATOR} in between."
    return "\n\n".join([*shown, asked])


def answer_of(answers: Sequence[str]) -> str:
    """Return the answers of all agents that act, as the one agent writes them."""
    return f" {SEPARATOR} ".join(answers)


def _played(turns: Sequence[Turn]) -> tuple[Turn, ...]:
    """Return the turns of the wrapped family."""
    scores = (turn.score for turn in turns)
    return tuple(s.base for s in scores if isinstance(s, OneAgentScore) and s.base is not None)
