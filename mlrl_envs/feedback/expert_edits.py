"""Feedback mode `expert_edits`: the edits that an expert model suggested for the last answer.

The suggestions are read from the diagnostics of the score, where
`mlrl_envs.models.AdvisedFamily` stores them; this module does not ask a model.
"""

from collections.abc import Sequence

from mlrl_envs.types import AgentID, Task, Turn

__all__ = ["EXPERT", "feedback"]

EXPERT = "expert"  # key of the suggestions in an agent's diagnostics


def feedback(task: Task, turns: Sequence[Turn], agent: AgentID) -> str:  # noqa: ARG001  common signature of feedback modes
    """Return the expert's suggestions for the agent's last answer; empty if there are none."""
    advice = turns[-1].score.diagnostics.get(agent, {}).get(EXPERT, "") if turns else ""
    return f"An expert suggests these edits:\n{advice}" if advice else ""
