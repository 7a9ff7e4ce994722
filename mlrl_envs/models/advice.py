"""Task families whose scores carry the suggestions of an expert model.

The expert is asked once for each agent that acted while a joint action is scored, and only if
another turn follows. Its answer is stored in the diagnostics of the score, so that observations
stay pure functions of the turns. The prompt contains only what the agent itself may read: its
observation, its answer and the public diagnostics. All requests of a batch are sent in parallel.
The feedback mode `expert_edits` shows the stored answer.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from mlrl_envs.feedback import diagnostics
from mlrl_envs.feedback.expert_edits import EXPERT
from mlrl_envs.parsing.text import shorten
from mlrl_envs.shell.roster import OPTIONAL_METHODS
from mlrl_envs.shell.wrapped import WrappedFamily
from mlrl_envs.types import (
    AgentID,
    Attempt,
    ChatModel,
    Messages,
    ProgramRunner,
    Score,
    Turn,
)

__all__ = ["AdvisedFamily"]

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


@dataclass(frozen=True)
class AdvisedFamily(WrappedFamily):
    """A wrapper that adds an expert's suggestions to the diagnostics of each score.

    Attributes:
        family: The wrapped family.
        expert: The model that is asked.
    """

    expert: ChatModel

    def score(self, attempts: Sequence[Attempt[Any]], sandbox: ProgramRunner) -> list[Score]:
        """Score attempts with the wrapped family, then ask the expert about unfinished episodes.

        Raises:
            EndpointError: If the expert cannot be asked.
            InfraError: If the sandbox fails.
        """
        scores = self.family.score(attempts, sandbox)
        asked = [
            (index, agent)
            for index, (attempt, score) in enumerate(zip(attempts, scores, strict=True))
            if not score.solved and len(attempt.turns) + 1 < self.max_turns
            for agent in attempt.actions
        ]
        answers = self.expert.chat_many(
            [self._conversation(attempts[index], scores[index], agent) for index, agent in asked]
        )
        for (index, agent), answer in zip(asked, answers, strict=True):
            scores[index] = _with_advice(scores[index], agent, answer)
        return scores

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  a method
        if name in OPTIONAL_METHODS:
            return getattr(self.family, name)
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    def _conversation(self, attempt: Attempt[Any], score: Score, agent: AgentID) -> Messages:
        turn = Turn(attempt.actions, score)
        question = _QUESTION.format(
            agent=agent,
            observation=self.observe(attempt.task, attempt.turns, agent),
            answer=shorten(attempt.actions[agent].strip(), MAX_CHARS) or "(nothing)",
            found=diagnostics.feedback(attempt.task, [turn], agent) or "(nothing)",
        )
        return [{"role": "system", "content": _SYSTEM}, {"role": "user", "content": question}]


def _with_advice(score: Score, agent: AgentID, advice: str) -> Score:
    own = {**score.diagnostics.get(agent, {}), EXPERT: shorten(advice.strip(), MAX_CHARS)}
    return replace(score, diagnostics={**score.diagnostics, agent: own})
