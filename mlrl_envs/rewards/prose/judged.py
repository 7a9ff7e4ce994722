"""Scores of the texts of many attempts by a text scorer, for `reward="judged"`."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from mlrl_envs.types import AgentID, Attempt, Task, TextScorer, TextToScore

__all__ = ["judge_texts"]

TaskT = TypeVar("TaskT", bound=Task)


def judge_texts(
    attempts: Sequence[Attempt[TaskT]],
    prompts: Sequence[Mapping[AgentID, str]],
    source: Callable[[TaskT], str],
    scorer: TextScorer | None,
) -> list[dict[AgentID, float]]:
    """Score the texts of attempts as one batch.

    Args:
        attempts: The attempts.
        prompts: For each attempt, the prompt of each agent.
        source: Returns what the texts of a task are about.
        scorer: The scorer; without one every text scores 1.

    Returns:
        For each attempt, the score of each agent's text, in [0, 1].

    Raises:
        InfraError: If the scorer fails.
    """
    if scorer is None:
        return [dict.fromkeys(attempt.actions, 1.0) for attempt in attempts]
    batch = [
        TextToScore(
            text=text,
            source=source(attempt.task),
            instruction=told[agent],
            others=tuple(said for other, said in attempt.actions.items() if other != agent),
        )
        for attempt, told in zip(attempts, prompts, strict=True)
        for agent, text in attempt.actions.items()
    ]
    scores = iter(scorer.score_many(batch))
    return [{agent: next(scores) for agent in attempt.actions} for attempt in attempts]
