"""Evidence of tool calls: which calls show required information, and whether an answer is right.

A lookup is shown by a search that finds the document. A computed number is shown by the result of
any tool, if no call had written it before, and if either the calls so far wrote all numbers that it
is computed from, or the same calls show the twin's number on the twin files.
"""

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mlrl_envs.parsing.numbers import find_answer, read_number, same_answer
from mlrl_envs.parsing.text import parse_code
from mlrl_envs.tasks import ToolEvidence, ToolTask
from mlrl_envs.tools.calls import ToolCall
from mlrl_envs.tools.toolbox import Result, arguments_of, in_workspace
from mlrl_envs.types import AgentID, ProgramRunner

if TYPE_CHECKING:
    from mlrl_envs.sandbox import Call

__all__ = ["CHANGING", "EvidenceCase", "MadeCall", "find_evidence", "is_right"]

CHANGING = ("python", "write_file", "delete_file")  # tools that change the state of a session
MAX_ANSWER_CHARS = 200
MAX_VALUES = 12  # of a longer result the first and the last numbers count; it could list guesses
_NUMBER = re.compile(r"(?<![\w.])-?(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?")
_WRITTEN = re.compile(r"\d+(?:\.\d+)?")
_THOUSANDS = re.compile(r"(?<=\d)[ \u00a0\u202f'\u2019](?=\d{3}(?!\d))")
_WORD = re.compile(r"[^\W_]+")
_CHOICE = re.compile(r"(?i)\b(?:or|either|maybe|perhaps)\b|\|")


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


def is_right(answer: str | None, task: ToolTask) -> bool:
    """Return whether an answer gives the wanted number, or the wanted name before any other.

    Numbers that the task tells, or that the answer is computed from, may stand beside it.
    """
    if answer is None or len(answer) > MAX_ANSWER_CHARS:
        return False
    if not task.answer.lstrip("-")[:1].isdigit():
        return _is_named(answer, task)
    wanted = read_number(task.answer)
    assert wanted is not None  # noqa: S101  it starts with a digit
    told = " ".join([task.question, *dict(task.briefs).values()])
    needs = [number for item in task.evidence for number in item.needs]
    known = set(map(_token, _WRITTEN.findall(told) + needs))
    plain = _THOUSANDS.sub("", answer)
    rest = _NUMBER.sub(lambda found: "" if _token(found[0]) in known else found[0], plain)
    return any(same_answer(find_answer(text), wanted) for text in (answer, rest))


def _is_named(answer: str, task: ToolTask) -> bool:
    """Return whether the first name in an answer is the right one, and no list of names follows."""
    said = _words(answer)
    places = {name: said.find(_words(name)) for name in (task.answer, *task.rivals)}
    given = sorted((name for name in places if places[name] >= 0), key=places.__getitem__)
    if given[:1] != [task.answer] or _CHOICE.search(answer):
        return False
    between = said[places[given[0]] + len(_words(given[0])) : places[given[-1]]].split()
    return len(given) == 1 or bool(set(between) - {"and", *_words(" ".join(given)).split()})


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
                if item.tool == "search" or _is_built(item, calls):
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
        _token(item.shows) in _written(call) for call in calls
    )


def _is_built(item: ToolEvidence, calls: Sequence[ToolCall]) -> bool:
    """Return whether the calls wrote all numbers that the item is computed from."""
    return set(map(_token, item.needs)) <= set().union(*map(_written, calls))


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
    values = _NUMBER.findall(text)
    return _token(wanted) in map(_token, values[:MAX_VALUES] + values[-MAX_VALUES:])


def _written(call: ToolCall) -> set[str]:
    """Return the numbers in a call; comments of programs do not count."""
    text = "\n".join(arguments_of(call).values())
    tree = parse_code(text).tree if call.name == "python" else None
    text = ast.unparse(tree) if tree else text
    return set(map(_token, _WRITTEN.findall(text) + _NUMBER.findall(text)))


def _token(number: str) -> str:
    try:
        return f"{float(number.replace(',', '')):.9g}"
    except ValueError:
        return number


def _words(text: str) -> str:
    """Return the words of a text, each between two spaces, without case and punctuation."""
    return f" {' '.join(_WORD.findall(text.casefold()))} "
