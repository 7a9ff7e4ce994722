"""Paragraphs of observations that quote earlier answers."""

from collections.abc import Sequence

from mlrl_envs.parsing.text import shorten
from mlrl_envs.types import AgentID, Turn

__all__ = ["MAX_QUOTED_CHARS", "OVER", "REVISE", "last_answers", "quote"]

MAX_QUOTED_CHARS = 4000

REVISE = "Revise your answer. Reply in the same format as before, with the whole answer."
OVER = "The episode is over."


def quote(text: str, max_chars: int = MAX_QUOTED_CHARS) -> str:
    """Return an answer as it is quoted in observations: stripped, and shortened in the middle."""
    return shorten(text.strip(), max_chars) or "(nothing)"


def last_answers(turns: Sequence[Turn], agent: AgentID, *, with_teammates: bool) -> list[str]:
    """Return a paragraph with the agent's last answer, and one for each teammate if asked for.

    Args:
        turns: The turns played so far, at least one.
        agent: The agent that reads the observation.
        with_teammates: Whether the answers of teammates are quoted, too.
    """
    actions = turns[-1].actions
    paragraphs = [f"You answered in turn {len(turns)}:\n{quote(actions[agent])}"]
    if with_teammates:
        paragraphs += [
            f"Your teammate {other} answered:\n{quote(action)}"
            for other, action in actions.items()
            if other != agent
        ]
    return paragraphs
