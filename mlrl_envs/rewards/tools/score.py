"""Rewards of agents with tools: `paper` and `grounded`.

Paper, per turn: +0.3 for each call of a tool that the task requires, -0.1 for each of another tool,
-0.2 for each of an unknown tool, -0.1 for each malformed call, for a message with neither call nor
answer, and for an empty message if the team does nothing. An answer adds 0.5 c + 0.3 |required and
used| / |required| + 0.2 (1 - turn / max_turns) c, with c = 1 if it is right and turns counted from
1. Calls above the limit of a turn are not made and do not count. Repeated calls are paid again.

Grounded, in [0, 1]: economy * (0.2 e + 0.2 c g + 0.6 c g e).

- c is 1 if the answer of this turn is right; g falls to a quarter with every earlier wrong answer.
- e is the share of the task's evidence that calls have shown so far, see `evidence`.
- Economy falls by 0.05 for each call that fails and by 0.02 for each other call beyond the number
  of items shown, down to 0.4.

Text of agents about results does not count. See `mlrl_envs.rewards.turn_gain` for several turns.
"""

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from mlrl_envs.rewards.tools.checks import JointCalls, ToolRules, tool_diagnostics
from mlrl_envs.rewards.tools.evidence import (
    CHANGING,
    EvidenceCase,
    MadeCall,
    find_evidence,
)
from mlrl_envs.rewards.turn_gain import pay_gain
from mlrl_envs.tasks import Document, ToolTask
from mlrl_envs.tools.answers import is_right
from mlrl_envs.tools.calls import Message, ToolCall, read_message
from mlrl_envs.tools.search import Index
from mlrl_envs.tools.toolbox import Request, Result, in_workspace, run_requests
from mlrl_envs.types import AgentID, Attempt, ProgramRunner, Score, Turn

if TYPE_CHECKING:
    from mlrl_envs.sandbox import Call

__all__ = ["made_calls", "score_grounded", "score_paper"]

ANSWER, GROUNDS, EVIDENCE = 0.2, 0.6, 0.2
TRUST = 0.25  # after a wrong answer; trying four names in turn earns less than half of a solution
IDLE_COST, FAULT_COST, LEAST_ECONOMY = 0.02, 0.05, 0.4
REQUIRED, OTHER, UNKNOWN, MALFORMED = 0.3, -0.1, -0.2, -0.1
REFUSED = Result("refused", "not made: over the number of calls of a turn")
NOT_MADE = ("malformed", "unknown", "refused")


def score_grounded(
    attempts: Sequence[Attempt[ToolTask]], rules: ToolRules, sandbox: ProgramRunner
) -> list[Score]:
    """Score attempts by the grounded formula, with all calls as one batch.

    Raises:
        InfraError: If the sandbox fails.
    """
    played = _play(attempts, rules, sandbox)
    shown = find_evidence(
        [
            EvidenceCase(a.task, _history(a), _calls_before(a), play.made, _shown_before(a))
            for a, play in zip(attempts, played, strict=True)
        ],
        rules.seconds,
        sandbox,
    )
    return [
        _grounded(attempt, play, evidence, rules)
        for attempt, play, evidence in zip(attempts, played, shown, strict=True)
    ]


def score_paper(
    attempts: Sequence[Attempt[ToolTask]], rules: ToolRules, sandbox: ProgramRunner
) -> list[Score]:
    """Score attempts by the published formula, with all calls as one batch."""
    return [
        _paper(attempt, played, rules)
        for attempt, played in zip(attempts, _play(attempts, rules, sandbox), strict=True)
    ]


def made_calls(turn: Turn) -> list[MadeCall]:
    """Return the calls of a played turn, in the order in which they were made."""
    made: list[MadeCall] = []
    for agent, action in turn.actions.items():
        noted = turn.score.diagnostics[agent]["calls"]
        assert isinstance(noted, list)  # noqa: S101  written by this module
        for call, note in zip(read_message(action).calls, noted, strict=True):
            made.append(MadeCall(agent, call, Result(note["status"], note["result"])))
    return made


def _play(
    attempts: Sequence[Attempt[ToolTask]], rules: ToolRules, sandbox: ProgramRunner
) -> list[JointCalls]:
    messages = [
        {agent: read_message(action) for agent, action in attempt.actions.items()}
        for attempt in attempts
    ]
    requests = [
        Request(
            _history(attempt),
            _admitted(read, rules.max_calls),
            _index((*attempt.task.documents, *rules.documents)),
            rules.seconds,
        )
        for attempt, read in zip(attempts, messages, strict=True)
    ]
    results = run_requests(requests, sandbox)
    return [
        JointCalls(read, _with_refused(read, row, rules.max_calls))
        for read, row in zip(messages, results, strict=True)
    ]


@lru_cache(maxsize=256)
def _index(documents: tuple[Document, ...]) -> Index:
    return Index(documents)


def _admitted(
    messages: Mapping[AgentID, Message], most: int
) -> tuple[tuple[AgentID, ToolCall], ...]:
    return tuple((agent, call) for agent, read in messages.items() for call in read.calls[:most])


def _with_refused(
    messages: Mapping[AgentID, Message], results: Sequence[Result], most: int
) -> tuple[MadeCall, ...]:
    made = iter(results)
    return tuple(
        MadeCall(agent, call, next(made) if place < most else REFUSED)
        for agent, read in messages.items()
        for place, call in enumerate(read.calls)
    )


def _history(attempt: Attempt[ToolTask]) -> tuple["Call", ...]:
    """Return the earlier calls in the sandbox session of the team."""
    from mlrl_envs.sandbox import Call, Reply, remembered

    history = [Call("write", path, text) for path, text in attempt.task.files]
    for made in _calls_before(attempt):
        if made.call.name in CHANGING and made.result.status not in NOT_MADE:
            reply = Reply(made.result.status, "")  # type: ignore[arg-type]  # a status of the sandbox
            history += remembered(in_workspace(made.agent, made.call), reply)
    return tuple(history)


def _calls_before(attempt: Attempt[ToolTask]) -> tuple[MadeCall, ...]:
    return tuple(made for turn in attempt.turns for made in made_calls(turn))


def _shown_before(attempt: Attempt[ToolTask]) -> frozenset[int]:
    """Return the indices of the evidence that earlier turns have shown."""
    if not attempt.turns:
        return frozenset()
    diagnostics = next(iter(attempt.turns[-1].score.diagnostics.values()))
    shown = diagnostics["evidence"]
    assert isinstance(shown, list)  # noqa: S101  written by this module
    return frozenset(int(place) for place in shown)


def _grounded(
    attempt: Attempt[ToolTask], played: JointCalls, shown: frozenset[int], rules: ToolRules
) -> Score:
    right = is_right(played.messages[rules.speaker].answer, attempt.task)
    share = len(shown) / len(attempt.task.evidence)
    trust = TRUST ** _wrong_before(attempt, rules)
    economy = _economy((*_calls_before(attempt), *played.made), len(shown))
    parts = {
        "answer": ANSWER * right * trust * economy,
        "grounds": GROUNDS * right * trust * share * economy,
        "evidence": EVIDENCE * share * economy,
    }
    paid = {agent: pay_gain(parts, attempt.turns, agent) for agent in attempt.actions}
    return Score(paid, right, tool_diagnostics(played, rules, right, shown))


def _wrong_before(attempt: Attempt[ToolTask], rules: ToolRules) -> int:
    return sum(
        (read := read_message(turn.actions[rules.speaker])).answer is not None
        or bool(read.answer_error)
        for turn in attempt.turns
    )


def _economy(made: Sequence[MadeCall], shown: int) -> float:
    failed = sum(one.result.status != "ok" for one in made)
    idle = max(0, len(made) - failed - shown)
    return max(LEAST_ECONOMY, 1.0 - FAULT_COST * failed - IDLE_COST * idle)


def _paper(attempt: Attempt[ToolTask], played: JointCalls, rules: ToolRules) -> Score:
    required = set(attempt.task.required_tools)
    answer = played.messages[rules.speaker].answer
    right = is_right(answer, attempt.task)
    made = (*_calls_before(attempt), *played.made)
    used = {one.call.name for one in made if one.result.status not in NOT_MADE}
    parts = {
        "calls": math.fsum(_paper_call(one, required) for one in played.made),
        "format": MALFORMED * _count_bad_messages(attempt, played, rules),
    }
    if answer is not None:
        turn = len(attempt.turns) + 1
        parts["answer"] = 0.5 * right
        parts["required_tools"] = 0.3 * len(required & used) / len(required)
        parts["early"] = 0.2 * (1 - turn / rules.max_turns) * right
    paid = dict.fromkeys(attempt.actions, parts)
    return Score(paid, right, tool_diagnostics(played, rules, right))


def _count_bad_messages(attempt: Attempt[ToolTask], played: JointCalls, rules: ToolRules) -> int:
    # An agent may be silent while its teammate acts.
    acts = any(one.result.status not in NOT_MADE for one in played.made)
    is_idle = not acts and played.messages[rules.speaker].answer is None
    return sum(
        not read.calls and read.answer is None and (is_idle or bool(attempt.actions[agent].strip()))
        for agent, read in played.messages.items()
    )


def _paper_call(made: MadeCall, required: set[str]) -> float:
    status = made.result.status
    if status == "refused":
        return 0.0
    if status in ("unknown", "malformed"):
        return UNKNOWN if status == "unknown" else MALFORMED
    return REQUIRED if made.call.name in required else OTHER
