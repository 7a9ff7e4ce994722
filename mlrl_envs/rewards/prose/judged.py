"""Scores of the texts of many attempts by a text scorer, for `reward="judged"`."""

import random
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from mlrl_envs.types import AgentID, Attempt, Task, TextScorer, TextToScore

__all__ = ["judge_texts"]

TaskT = TypeVar("TaskT", bound=Task)
OTHERS = 2  # sources of other tasks that a scorer may compare with


def judge_texts(
    attempts: Sequence[Attempt[TaskT]],
    tasks: Sequence[TaskT],
    prompts: Callable[[TaskT], Mapping[AgentID, str]],
    source: Callable[[TaskT], str],
    scorer: TextScorer | None,
) -> list[dict[AgentID, float]]:
    """Score the texts of attempts as one batch.

    Args:
        attempts: The attempts.
        tasks: The tasks of the split; sources of two others go with each text.
        prompts: Returns the prompt of each agent.
        source: Returns what the texts of a task are about.
        scorer: The scorer; without one every text scores 1.

    Returns:
        For each attempt, the score of each agent's text, in [0, 1].

    Raises:
        InfraError: If the scorer fails.
    """
    if scorer is None:
        return [dict.fromkeys(attempt.actions, 1.0) for attempt in attempts]
    sources = sorted({source(task) for task in tasks})
    batch = []
    for attempt in attempts:
        own, told = source(attempt.task), prompts(attempt.task)
        others = [other for other in sources if other != own]
        drawn = random.Random(own).sample(others, min(OTHERS, len(others)))  # noqa: S311  fixed
        for agent, text in attempt.actions.items():
            batch.append(TextToScore(text, own, told[agent], tuple(drawn)))
    scores = iter(scorer.score_many(batch))
    return [{agent: next(scores) for agent in attempt.actions} for attempt in attempts]
