"""Run of the trusted tests of one program against its candidate process.

The judge alone decides the verdict. It writes every record to the board, to which no candidate
has access. If the judge dies early, only the tests recorded until then count as passed.
"""

# ruff: noqa: ANN401  values of any type cross the border

import sys
from typing import Any

from mlrl_envs.sandbox.judge.board import ENDED, TESTING, Board
from mlrl_envs.sandbox.judge.border import Border
from mlrl_envs.sandbox.judge.faults import CandidateGoneError, LoadFailedError, show
from mlrl_envs.sandbox.judge.plan import CONTEXTS, Plan
from mlrl_envs.sandbox.judge.shared_process import run_shared
from mlrl_envs.sandbox.judge.trial import JobFields, Trial
from mlrl_envs.sandbox.judge.unittest_methods import run_unittest

__all__ = ["run_judge"]


def run_judge(job: JobFields, plan: Plan, link: int, board: Board) -> None:
    """Load the candidate, run the tests against it, and write the verdict on the board."""
    border = Border(link, (*job["dunders"], *plan.operators))
    sys.stdout = sys.stderr = _Sink()
    namespace: dict[str, Any] = {"__name__": "tests", "__builtins__": __builtins__}
    if not _run_helpers(plan, namespace, board):
        return
    try:
        found = border.load(job["source"], job["entry_points"])
    except LoadFailedError as error:
        status = "memory" if border.memory_error else "load_error"
        board.note("ending", [status, str(error)])
        board.start(ENDED)
        return
    except CandidateGoneError:
        board.note("ending", [border.gone, "while loading"])
        board.start(ENDED)
        return
    namespace.update(zip(job["entry_points"], found, strict=True))
    board.start(TESTING)
    _run_tests(Trial(border, board, plan), job, namespace, found[0])


class _Sink:
    """Standard output of the judge: discarded, but tests may patch or flush it."""

    encoding = "utf-8"

    def write(self, text: str) -> int:
        return len(text)

    def flush(self) -> None:
        pass


def _run_helpers(plan: Plan, namespace: dict[str, Any], board: Board) -> bool:
    try:
        exec(plan.helpers, namespace)  # noqa: S102  trusted code of the caller
    except Exception as error:  # noqa: BLE001  reported as the caller's mistake
        board.note("fault", f"helpers raise {type(error).__name__}: {show(error, str)}")
        return False
    return True


def _run_tests(trial: Trial, job: JobFields, namespace: dict[str, Any], first: object) -> None:
    """Run the tests and note on the board whether they came to their end."""
    namespace[CONTEXTS] = trial.contexts()
    try:
        if job["assurance"] == "shared":
            run_shared(trial, job)
        else:
            _run_split(trial, job["style"], namespace, first)
    except CandidateGoneError:
        pass
    except BaseException as error:  # noqa: BLE001  raised outside an assertion
        trial.fail_outside(error)
    trial.finish()


def _run_split(trial: Trial, style: str, namespace: dict[str, Any], first: Any) -> None:
    exec(trial.plan.tests, namespace)  # noqa: S102  trusted tests
    if style == "check":
        namespace["check"](first)
    elif style == "unittest":
        run_unittest(trial, namespace)
