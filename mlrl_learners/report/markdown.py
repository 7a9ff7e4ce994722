"""An episode as Markdown."""

import re
from collections.abc import Sequence

from mlrl_learners.report.chart_scales import return_text
from mlrl_learners.report.html import without_overrides
from mlrl_learners.runs.stored import StoredTurn

__all__ = ["episode_markdown"]

_MARKUP = re.compile(r"([\\`*\[\]<>&])")
_FENCES = re.compile("`{3,}")


def episode_markdown(title: str, facts: Sequence[str], turns: Sequence[StoredTurn]) -> str:
    """Return an episode as Markdown; texts of agents stand in fences that they cannot close.

    Args:
        title: Heading.
        facts: One line each.
        turns: In order.
    """
    parts = [f"# {_line(title)}", "\n".join(f"- {_line(fact)}" for fact in facts)]
    for number, turn in enumerate(turns, 1):
        parts.append(f"## Turn {number}")
        for agent in dict.fromkeys([*turn.observations, *turn.actions]):
            if agent in turn.observations:
                parts += [f"### {_line(agent)} reads", _fenced(turn.observations[agent])]
            if agent in turn.actions:
                reward = turn.rewards.get(agent)
                said = "" if reward is None else f" (reward {return_text(reward)})"
                parts += [f"### {_line(agent)} writes{said}", _fenced(turn.actions[agent])]
    return "\n\n".join(parts) + "\n"


def _fenced(text: str) -> str:
    longest = max(map(len, _FENCES.findall(text)), default=2)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{text}\n{fence}"


def _line(text: str) -> str:
    """Return a name or a fact as text of one line: no markup, no change of direction."""
    return _MARKUP.sub(r"\\\1", without_overrides(" ".join(text.split())))
