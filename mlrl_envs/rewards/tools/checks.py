"""Diagnostics of agents with tools: calls with results, and checks of the message."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from mlrl_envs.rewards.tools.evidence import MadeCall
from mlrl_envs.tasks import Document
from mlrl_envs.tools.calls import Message
from mlrl_envs.types import AgentID, Json

__all__ = ["JointCalls", "ToolRules", "tool_diagnostics"]


@dataclass(frozen=True)
class ToolRules:
    """Options that the rewards depend on.

    Attributes:
        documents: Documents that are searched besides those of the task.
        speaker: The agent whose answer counts.
        max_calls: Maximum number of calls of an agent in a turn.
        max_turns: Maximum number of joint actions in an episode.
        seconds: Time limit of one call in seconds.
    """

    documents: tuple[Document, ...]
    speaker: AgentID
    max_calls: int
    max_turns: int
    seconds: float


@dataclass(frozen=True)
class JointCalls:
    """The parsed messages of a joint action and the calls that were made.

    Attributes:
        messages: The message of each agent.
        made: All calls with their results, in order.
    """

    messages: Mapping[AgentID, Message]
    made: tuple[MadeCall, ...]

    def of(self, agent: AgentID) -> list[MadeCall]:
        """Return the calls of one agent."""
        return [made for made in self.made if made.agent == agent]


def tool_diagnostics(
    played: JointCalls,
    rules: ToolRules,
    right: bool,
    shown: Collection[int] = (),
) -> dict[AgentID, dict[str, Json]]:
    """Return the diagnostics of each agent: its calls with their results, and its checks.

    Args:
        played: The joint action.
        rules: Options that the rewards depend on.
        right: Whether the answer of this turn is right.
        shown: Indices of the evidence shown so far.
    """
    return {
        agent: {
            "calls": [
                {"name": m.call.name[:40], "status": m.result.status, "result": m.result.text}
                for m in played.of(agent)
            ],
            "evidence": sorted(shown),
            "checks": _checks(played, rules, agent, right=right),
        }
        for agent in played.messages
    }


def _checks(played: JointCalls, rules: ToolRules, agent: AgentID, *, right: bool) -> Json:
    made = played.of(agent)
    failed = [m for m in made if m.result.status != "ok"]
    status = "none" if not made else f"{len(made) - len(failed)} of {len(made)} worked"
    checks: list[Json] = [_check("tool calls", not failed, status)]
    read = played.messages[agent]
    if agent != rules.speaker:
        if read.answer is not None or read.answer_error:
            checks.append(_check("answer", False, f"not counted: {rules.speaker} answers"))
        return checks
    if read.answer_error:
        return [*checks, _check("answer", False, f"not counted: {read.answer_error}")]
    if read.answer is None:
        return [*checks, _check("answer", False, "none yet")]
    return [*checks, _check("answer", right, "right" if right else "wrong")]


def _check(name: str, passed: bool, status: str) -> Json:
    return {"name": name, "passed": passed, "status": status, "details": []}
