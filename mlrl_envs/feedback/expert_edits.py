"""`expert_edits`: a language model reads what an agent answered and suggests edits.

The expert is asked while a joint action is scored, once, and its words are kept in the score's
diagnostics; from then on they are facts like any other, and observing never asks again. It reads
only what agents may read: the observation, the answer, and the public diagnostics. One question an
agent keeps teammates blind to each other; all questions of a batch are asked side by side.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mlrl_envs.feedback import diagnostics
from mlrl_envs.models.endpoint import Endpoint, Messages
from mlrl_envs.parsing.text import shorten
from mlrl_envs.types import AgentID, Attempt, ProgramRunner, Score, Task, TaskFamily, Turn

__all__ = ["AdvisedFamily", "feedback"]

EXPERT = "expert"
MAX_CHARS = 4000

_SYSTEM = (
    "You are an expert who helps the members of a team to improve their answers. "
    "Name what is wrong with the answer you are shown and say exactly what to write instead, "
    "in at most five short points. Do not write the whole answer anew."
)
_QUESTION = """The team member {agent} was asked:

{observation}

{agent} answered:

{answer}

Automatic checks of the joint answer found:

{found}

Suggest edits to the answer of {agent}."""


def feedback(task: Task, turns: Sequence[Turn], agent: AgentID) -> str:  # noqa: ARG001  one interface
    """Return what the expert said of the agent's last answer."""
    words = turns[-1].score.diagnostics.get(agent, {}).get(EXPERT, "") if turns else ""
    return f"An expert suggests these edits:\n{words}" if words else ""


@dataclass(frozen=True)
class AdvisedFamily:
    """A family whose scores carry an expert's words.

    Attributes:
        family: Says everything else.
        expert: Who is asked, unless the episode ends and nobody would read the answer.
    """

    family: TaskFamily[Any]
    expert: Endpoint

    @property
    def agents(self) -> tuple[AgentID, ...]:
        """Those of the family."""
        return self.family.agents

    @property
    def tasks(self) -> Sequence[Any]:
        """Those of the family."""
        return self.family.tasks

    @property
    def max_turns(self) -> int:
        """That of the family."""
        return self.family.max_turns

    @property
    def reward_range(self) -> tuple[float, float]:
        """That of the family."""
        return self.family.reward_range

    def observe(self, task: Task, turns: Sequence[Turn], agent: AgentID) -> str:
        """Return what the family lets `agent` read."""
        return self.family.observe(task, turns, agent)

    def score(self, attempts: Sequence[Attempt[Any]], sandbox: ProgramRunner) -> list[Score]:
        """Score attempts as the family does, then ask the expert about all that go on.

        Raises:
            EndpointError: If the expert cannot be asked.
            InfraError: If the sandbox fails.
        """
        scores = self.family.score(attempts, sandbox)
        asked = [
            (index, agent)
            for index, (attempt, score) in enumerate(zip(attempts, scores, strict=True))
            if not score.solved and len(attempt.turns) + 1 < self.max_turns
            for agent in self.agents
        ]
        said = self.expert.chat_many(
            [self._question(attempts[index], scores[index], agent) for index, agent in asked]
        )
        for (index, agent), words in zip(asked, said, strict=True):
            scores[index] = _with_words(scores[index], agent, words)
        return scores

    def reference(self, task: Task) -> Mapping[AgentID, str] | None:
        """Return the family's right joint action."""
        return self.family.reference(task)

    def _question(self, attempt: Attempt[Any], score: Score, agent: AgentID) -> Messages:
        turn = Turn(attempt.actions, score)
        question = _QUESTION.format(
            agent=agent,
            observation=self.observe(attempt.task, attempt.turns, agent),
            answer=shorten(attempt.actions[agent].strip(), MAX_CHARS) or "(nothing)",
            found=diagnostics.feedback(attempt.task, [turn], agent) or "(nothing)",
        )
        return [{"role": "system", "content": _SYSTEM}, {"role": "user", "content": question}]


def _with_words(score: Score, agent: AgentID, words: str) -> Score:
    own = {**score.diagnostics.get(agent, {}), EXPERT: shorten(words.strip(), MAX_CHARS)}
    return replace(score, diagnostics={**score.diagnostics, agent: own})
