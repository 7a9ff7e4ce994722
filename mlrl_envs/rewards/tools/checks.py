"""What a joint action with tools is, what came of it, and the public facts that feedback reads."""

from collections.abc import Mapping
from dataclasses import dataclass

from mlrl_envs.rewards.tools.evidence import MadeCall, ShownEvidence
from mlrl_envs.tools.calls import Message
from mlrl_envs.tools.search import Index
from mlrl_envs.types import AgentID, Json

__all__ = ["JointCalls", "ToolRules", "tool_diagnostics"]


@dataclass(frozen=True)
class ToolRules:
    """What a family lays down for every episode.

    Attributes:
        index: The archive.
        speaker: Whose answer counts.
        max_calls: Calls that an agent may make in a turn.
        max_turns: Joint actions an episode may have.
        seconds: Time limit of one call.
    """

    index: Index
    speaker: AgentID
    max_calls: int
    max_turns: int
    seconds: float


@dataclass(frozen=True)
class JointCalls:
    """A joint action with what came of its calls."""

    messages: Mapping[AgentID, Message]
    made: tuple[MadeCall, ...]

    def of(self, agent: AgentID) -> list[MadeCall]:
        """Return one agent's calls."""
        return [made for made in self.made if made.agent == agent]


def tool_diagnostics(
    played: JointCalls,
    rules: ToolRules,
    right: bool,
    *,
    shown: ShownEvidence | None = None,
    cost: float = 0.0,
) -> dict[AgentID, dict[str, Json]]:
    """Return for each agent its calls with their results, and the checks of its message.

    Args:
        played: The joint action.
        rules: Of the family.
        right: Whether the answer of this turn is right.
        shown: Evidence shown so far, where it is paid.
        cost: What calls have taken from the economy so far.
    """
    return {
        agent: {
            "calls": [
                {"name": m.call.name[:40], "status": m.result.status, "result": m.result.text}
                for m in played.of(agent)
            ],
            "evidence": sorted(shown.places) if shown else [],
            "cost": cost,
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
