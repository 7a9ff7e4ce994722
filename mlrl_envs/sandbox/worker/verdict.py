"""Verdict on a program, computed from the board and the exit records of judge and candidate.

No other code decides a status. Precedence: a forbidden system call of
the candidate, an expired deadline, the ending that the judge noted, the test records. The status
`passed` requires that the judge itself wrote on the board that the tests came to their end.
"""

import os
import signal
from collections import Counter
from typing import Any, NamedTuple

from mlrl_envs.sandbox.judge.board import FINISHED, Board, Record
from mlrl_envs.sandbox.wire.printable import clean_output
from mlrl_envs.sandbox.worker.job_header import JobLimits

__all__ = ["RunEnding", "verdict_of"]

NO_CREDIT = ("hostile", "protocol_violation")
BROKEN = "the tests run to their end"
TEXTS = {
    "hostile": "the program made a forbidden system call",
    "protocol_violation": "the program broke the protocol",
    "died": "the program died",
    "cpu_limit": "the program used up its processor time",
    "memory": "the program ran out of memory",
}


class RunEnding(NamedTuple):
    """Facts about the end of one run.

    Attributes:
        expired: Name of the limit that expired, or "".
        judge: Wait status, processor seconds and peak resident KiB of the judge.
        candidate: The same values of the candidate.
        output: The candidate's standard output.
        seconds: Wall time of the run.
        waited: Seconds that it waited for a processor.
        allowed: Limits of the program.
    """

    expired: str
    judge: tuple[int, float, int]
    candidate: tuple[int, float, int]
    output: bytes
    seconds: float
    waited: float
    allowed: JobLimits


def verdict_of(board: Board, ended: RunEnding) -> dict[str, Any]:
    """Return the fields of an outcome.

    Returns:
        The fields; or only the key `infra` if a process could not be forked, or only the key
        `fault` if the caller's helpers raised an exception.
    """
    if -1 in (ended.judge[0], ended.candidate[0]):
        return {"infra": "a process could not be forked"}
    phase, count, passed, records, notes = board.read()
    if "fault" in notes:
        return {"fault": notes["fault"]}
    finished = phase == FINISHED
    status, error = _ending(ended, finished=finished, notes=notes)
    names = _strings(notes.get("names"))
    interrupted = "" if finished else _interrupted(board.current, names, notes)
    if interrupted:
        records.append((interrupted, False, error or TEXTS["died"]))
        count += 1
    records += _unreached(records, notes.get("plan"), error or str(notes.get("broken", "")))
    total = _total(count, len(records), notes, finished=finished)
    if "broken" in notes and passed == total:  # raised outside an assertion
        records.append((BROKEN, False, str(notes["broken"])))
        total += 1
    if not status:
        status, error = _result(notes, passed=finished and passed == total and total > 0)
    if status in NO_CREDIT:
        passed, records = 0, [(name, False, TEXTS[status]) for name, _passed, _error in records]
    return {
        "status": status,
        "passed": passed,
        "total": total,
        "tests": records,
        "stdout": clean_output(ended.output, ended.allowed.output_bytes),
        "seconds": ended.seconds,
        "waited_seconds": ended.waited,
        "cpu_seconds": ended.candidate[1],
        "memory_mib": ended.candidate[2] / 1024,
        "error": error,
    }


def _strings(noted: object) -> list[str]:
    return [str(item) for item in noted] if isinstance(noted, list) else []


def _ending(ended: RunEnding, *, finished: bool, notes: dict[str, Any]) -> tuple[str, str]:
    """Return a status that overrides the records and its text; two empty strings if none does."""
    killed = os.WTERMSIG(ended.candidate[0]) if os.WIFSIGNALED(ended.candidate[0]) else 0
    if killed == signal.SIGSYS:
        return "hostile", TEXTS["hostile"]
    if ended.expired:
        limit = getattr(ended.allowed, ended.expired)
        return "timeout", f"no answer within {limit:g} s"
    noted = notes.get("ending")
    if noted is None:
        return ("", "") if finished else ("died", "the tests broke off")
    status, error = str(noted[0]), str(noted[1])
    if status == "died":
        status = _cause_of_death(ended, killed)
    return status, error if status == "load_error" else TEXTS.get(status, error)


def _cause_of_death(ended: RunEnding, killed: int) -> str:
    _status, seconds, _resident = ended.candidate
    if killed == signal.SIGXCPU:
        return "cpu_limit"
    if killed == signal.SIGKILL and seconds >= ended.allowed.cpu_seconds:
        return "cpu_limit"
    return "died"


def _result(notes: dict[str, Any], *, passed: bool) -> tuple[str, str]:
    """Return the status of a run that came to its end, and its text."""
    if passed:
        return "passed", str(notes.get("broken", ""))
    if notes.get("memory_error"):
        return "memory", TEXTS["memory"]
    return "failed", str(notes.get("broken", ""))


def _interrupted(index: int, names: list[str], notes: dict[str, Any]) -> str:
    """Return the name of the test that was running when the judge was stopped."""
    known = names or _strings(notes.get("plan"))
    return known[index] if 0 <= index < len(known) else ""


def _unreached(records: list[Record], plan: Any, error: str) -> list[Record]:  # noqa: ANN401
    """Return a failed record for each planned test that never ran."""
    if plan is None:
        return []
    ran = Counter(name for name, _passed, _error in records)
    reason = f"not reached; {error}" if error else "not reached"
    missing: list[Record] = []
    for name in plan:
        if ran[name] > 0:
            ran[name] -= 1
        else:
            missing.append((name, False, reason))
    return missing


def _total(count: int, listed: int, notes: dict[str, Any], *, finished: bool) -> int:
    """Return the number of tests.

    It is the planned number if there is a plan; otherwise the number of tests that ran, plus one
    if the tests broke off.
    """
    if notes.get("plan") is not None:
        return max(count, len(notes["plan"]))
    complete = finished and "ending" not in notes
    return max(count, listed) if complete else max(count, listed) + 1
