"""Evidence of tool calls: which calls show required information, and whether an answer is right.

A call counts by its parameters and its result. Whether an agent knew the result before is not
determined.
"""

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mlrl_envs.parsing.numbers import find_answer, read_number, same_answer
from mlrl_envs.parsing.text import parse_code
from mlrl_envs.tasks import ToolEvidence, ToolTask
from mlrl_envs.tools.calls import ToolCall
from mlrl_envs.tools.toolbox import Result, arguments_of, in_workspace
from mlrl_envs.types import AgentID, ProgramRunner

if TYPE_CHECKING:
    from mlrl_envs.sandbox import Call

__all__ = [
    "CHANGING",
    "EvidenceCase",
    "MadeCall",
    "ShownEvidence",
    "find_evidence",
    "is_right",
    "shows",
]

CHANGING = ("python", "write_file", "delete_file")  # tools that change the state of a session
MAX_ANSWER_CHARS = 200
MAX_VALUES = 5  # a program that prints more values lists guesses
_NUMBER = re.compile(r"(?<![\w.])-?\d[\d,]*(?:\.\d+)?(?![\w.]*\w)")
_ARTICLE = re.compile(r"\b(?:the|a|an)\b")


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


@dataclass
class ShownEvidence:
    """The evidence shown in an episode up to and including a turn.

    Attributes:
        places: Indices of the task's evidence.
        by_call: Indices of this turn's calls that showed an item for the first time.
    """

    places: set[int] = field(default_factory=set)
    by_call: set[int] = field(default_factory=set)


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


def is_right(answer: str | None, wanted: str) -> bool:
    """Return whether an answer is the wanted number, or the wanted name regardless of case."""
    if answer is None or len(answer) > MAX_ANSWER_CHARS:
        return False
    number = read_number(wanted) if wanted[:1].isdigit() or wanted[:1] == "-" else None
    if number is not None:
        return same_answer(find_answer(answer), number)
    return _plain(answer) == _plain(wanted)


def find_evidence(
    cases: Sequence[EvidenceCase], seconds: float, sandbox: ProgramRunner
) -> list[ShownEvidence]:
    """Return the evidence that each joint action shows.

    Args:
        cases: The joint actions.
        seconds: Time limit of one call in seconds.
        sandbox: Runs programs again on the twin files of a task, as one batch.
    """
    found = [ShownEvidence(set(case.shown)) for case in cases]
    pending: list[tuple[int, int, int]] = []
    for number, case in enumerate(cases):
        for place, made in enumerate(case.made):
            earlier = (*case.earlier, *case.made[:place])
            for which, item in enumerate(case.task.evidence):
                if which in found[number].places or not shows(made, item, earlier):
                    continue
                if item.twin:
                    pending.append((number, place, which))
                else:
                    _take(found[number], place, which)
    for (number, place, which), holds in zip(
        pending, _on_twins(cases, pending, seconds, sandbox), strict=True
    ):
        if holds and which not in found[number].places:
            _take(found[number], place, which)
    return found


def shows(made: MadeCall, item: ToolEvidence, earlier: Sequence[MadeCall] = ()) -> bool:
    """Return whether a call shows an item of evidence, without regard to twin files.

    Args:
        made: The call.
        item: The item.
        earlier: Calls before it; a result may be computed in several steps.
    """
    if made.result.status != "ok" or made.call.name != item.tool:
        return False
    steps = [one.call for one in (*earlier, made) if one.call.name == item.tool]
    if not set(map(_token, item.needs)) <= set().union(*map(_mentioned, steps)):
        return False
    if not item.shows:
        return True
    if item.tool == "search":
        return f"[{item.shows}]" in made.result.text
    if _token(item.shows) in _mentioned(made.call):
        return False  # a literal result was not computed
    return _shows_value(made.result.text, item.shows)


def _take(shown: ShownEvidence, place: int, which: int) -> None:
    shown.places.add(which)
    shown.by_call.add(place)


def _on_twins(
    cases: Sequence[EvidenceCase],
    pending: Sequence[tuple[int, int, int]],
    seconds: float,
    sandbox: ProgramRunner,
) -> list[bool]:
    """Return for each such call whether it shows the twin's value on the twin files."""
    from mlrl_envs.sandbox import Call, Script

    scripts = []
    for number, place, _ in pending:
        case = cases[number]
        files = tuple(Call("write", path, text) for path, text in case.task.twin_files)
        steps = tuple(
            in_workspace(made.agent, made.call)
            for made in case.made[: place + 1]
            if made.result.status in ("ok", "error") and made.call.name in CHANGING
        )
        before = (*files, *case.history[len(case.task.files) :], *steps[:-1])
        scripts.append(Script(before, steps[-1:], seconds))
    played = sandbox.play_many(scripts) if scripts else []
    return [
        reply.status == "ok" and _shows_value(reply.text, cases[number].task.evidence[which].twin)
        for (number, _, which), (reply,) in zip(pending, played, strict=True)
    ]


def _shows_value(text: str, wanted: str) -> bool:
    values = _NUMBER.findall(text)
    return len(values) <= MAX_VALUES and _token(wanted) in map(_token, values)


def _mentioned(call: ToolCall) -> set[str]:
    """Return the numbers and names in a call; comments of programs do not count."""
    text = " ".join(arguments_of(call).values())
    if call.name != "python":
        return set(map(_token, re.findall(r"\d+(?:\.\d+)?|[A-Za-z_][\w.-]*", text)))
    tree = parse_code(text).tree
    constants = (
        [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)] if tree else []
    )
    return {_token(str(value)) for value in constants}


def _token(text: str) -> str:
    plain = text.replace(",", "")
    try:
        return f"{float(plain):.9g}"
    except ValueError:
        return text.casefold()


def _plain(text: str) -> str:
    words = re.findall(r"[\w-]+", _ARTICLE.sub(" ", text.casefold()))
    return " ".join(words)
