"""Evidence of tool calls: which calls show required information.

A lookup is shown by a search that finds the document. A computed number is shown by the result of
any tool, if no call had written it before, and if either the calls so far wrote all numbers that it
is computed from, or the same calls show the twin's number on the twin files.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mlrl_envs.tasks import ToolEvidence, ToolTask
from mlrl_envs.tools.answers import DIGITS, NUMBER, exact
from mlrl_envs.tools.calls import ToolCall
from mlrl_envs.tools.toolbox import Result, arguments_of, in_workspace
from mlrl_envs.types import AgentID, ProgramRunner

if TYPE_CHECKING:
    from mlrl_envs.sandbox import Call

__all__ = ["CHANGING", "EvidenceCase", "MadeCall", "find_evidence"]

CHANGING = ("python", "write_file", "delete_file")  # tools that change the state of a session
MAX_VALUES = 12  # of a longer result the first and the last numbers count; it could list guesses


@dataclass(frozen=True, slots=True)
class MadeCall:
    """A call that was made.

    Attributes:
        agent: The agent that made it.
        call: The call.
        result: Its result.
    """

    agent: AgentID
    call: ToolCall
    result: Result


@dataclass(frozen=True, slots=True)
class EvidenceCase:
    """A joint action with the calls before it.

    Attributes:
        task: The task.
        history: Earlier calls in the sandbox session of the team.
        earlier: Calls of earlier turns.
        made: Calls of this turn.
        shown: Indices of the evidence that earlier turns have shown.
    """

    task: ToolTask
    history: tuple["Call", ...]
    earlier: tuple[MadeCall, ...]
    made: tuple[MadeCall, ...]
    shown: frozenset[int]


def find_evidence(
    cases: Sequence[EvidenceCase], seconds: float, sandbox: ProgramRunner
) -> list[frozenset[int]]:
    """Return the indices of the evidence that each episode has shown so far.

    Args:
        cases: The joint actions.
        seconds: Time limit of one call in seconds.
        sandbox: Runs programs again on the twin files of a task, as one batch.
    """
    found = [set(case.shown) for case in cases]
    on_twins: list[tuple[int, int, int]] = []
    for number, case in enumerate(cases):
        for place, made in enumerate(case.made):
            calls = [one.call for one in (*case.earlier, *case.made[: place + 1])]
            for which, item in enumerate(case.task.evidence):
                if which in found[number] or not _shows(made, item, calls):
                    continue
                written = set().union(*map(_written, calls))
                if item.tool == "search" or written.issuperset(map(exact, item.needs)):
                    found[number].add(which)
                elif item.twin and made.call.name in ("python", "read_file"):
                    on_twins.append((number, place, which))
    replies = _play_on_twins([(cases[n], place) for n, place, _ in on_twins], seconds, sandbox)
    for (number, _, which), text in zip(on_twins, replies, strict=True):
        if _shows_value(text, cases[number].task.evidence[which].twin):
            found[number].add(which)
    return [frozenset(places) for places in found]


def _shows(made: MadeCall, item: ToolEvidence, calls: Sequence[ToolCall]) -> bool:
    """Return whether a result has the item, and no call up to it has written it."""
    if made.result.status != "ok":
        return False
    if item.tool == "search":
        return made.call.name == "search" and f"[{item.shows}]" in made.result.text
    return _shows_value(made.result.text, item.shows) and not any(
        exact(item.shows) in _written(call) for call in calls
    )


def _play_on_twins(
    cases: Sequence[tuple[EvidenceCase, int]], seconds: float, sandbox: ProgramRunner
) -> list[str]:
    """Return what the call of each case and place shows on the twin files."""
    from mlrl_envs.sandbox import Call, Script

    scripts = []
    for case, place in cases:
        files = tuple(Call("write", path, text) for path, text in case.task.twin_files)
        steps = tuple(
            in_workspace(made.agent, made.call)
            for made in (*_changing(case.made[:place]), case.made[place])
        )
        before = (*files, *case.history[len(case.task.files) :], *steps[:-1])
        scripts.append(Script(before, steps[-1:], seconds))
    played = sandbox.play_many(scripts) if scripts else []
    return [reply.text if reply.status == "ok" else "" for (reply,) in played]


def _changing(made: Sequence[MadeCall]) -> list[MadeCall]:
    """Return the calls that may have changed the state of the session."""
    return [m for m in made if m.result.status in ("ok", "error") and m.call.name in CHANGING]


def _shows_value(text: str, wanted: str) -> bool:
    values = NUMBER.findall(text)
    return exact(wanted) in map(exact, values[:MAX_VALUES] + values[-MAX_VALUES:])


def _written(call: ToolCall) -> set[str]:
    """Return the numbers in a call."""
    text = "\n".join(arguments_of(call).values())
    return set(map(exact, DIGITS.findall(text) + NUMBER.findall(text)))
