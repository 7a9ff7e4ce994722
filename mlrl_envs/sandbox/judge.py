"""The judge's process: trusted tests against a candidate behind a strict border.

It alone owns the verdict: every record goes to the board, which no candidate shares. A judge
that ends before it says so has not passed anything beyond what is recorded.
"""

# ruff: noqa: ANN401  values of any type cross the border

import json
import sys
from types import TracebackType
from typing import Any

from mlrl_envs.sandbox.board import ENDED, FINISHED, TESTING, Board
from mlrl_envs.sandbox.judge_unittest import run_unittest
from mlrl_envs.sandbox.plan import PROBE, Plan
from mlrl_envs.sandbox.proxy import (
    CandidateGoneError,
    LoadFailedError,
    Session,
    describe,
    show,
)
from mlrl_envs.sandbox.shared import run_shared

__all__ = ["run_judge"]

Job = dict[str, Any]


def run_judge(job: Job, plan: Plan, link: int, board: Board) -> None:
    """Load the candidate, run the tests against it, and write the verdict on the board."""
    session = Session(link, (*job["dunders"], *plan.operators))
    sys.stdout = sys.stderr = _Sink()
    namespace: dict[str, Any] = {"__name__": "tests", "__builtins__": __builtins__}
    if not _run_helpers(plan, namespace, board):
        return
    try:
        found = session.load(job["source"], job["entry_points"])
    except LoadFailedError as error:
        status = "memory" if session.memory_error else "load_error"
        board.note("ending", [status, str(error)])
        board.start(ENDED)
        return
    except CandidateGoneError:
        board.note("ending", [session.gone, "while loading"])
        board.start(ENDED)
        return
    namespace.update(zip(job["entry_points"], found, strict=True))
    board.start(TESTING)
    Trial(session, board, plan).run(job, namespace, found[0])


class _Sink:
    """The judge's own standard output: nobody reads it, but tests may patch or flush it."""

    encoding = "utf-8"

    def write(self, text: str) -> int:
        return len(text)

    def flush(self) -> None:
        pass


def _run_helpers(plan: Plan, namespace: dict[str, Any], board: Board) -> bool:
    try:
        exec(plan.helpers, namespace)  # noqa: S102  the caller's own code
    except Exception as error:  # noqa: BLE001  reported as the caller's mistake
        board.note("fault", f"helpers raise {type(error).__name__}: {show(error, str)}")
        return False
    return True


class Trial:
    """One run of the tests, one record at a time."""

    def __init__(self, session: Session, board: Board, plan: Plan) -> None:
        self.session = session
        self.board = board
        self.plan = plan
        self.ran = 0

    def run(self, job: Job, namespace: dict[str, Any], first: object) -> None:
        """Run the tests to their end and say so on the board, or say why not."""
        namespace[PROBE] = [_Probe(self, place) for place in range(len(self.plan.names))]
        try:
            if job["assurance"] == "shared":
                run_shared(self, job)
            else:
                self._run_split(job["style"], namespace, first)
        except CandidateGoneError:
            pass
        except BaseException as error:  # noqa: BLE001  the tests broke off outside an assertion
            self.fail_outside(error)
        self.finish()

    def _run_split(self, style: str, namespace: dict[str, Any], first: Any) -> None:
        exec(self.plan.tests, namespace)  # noqa: S102  trusted tests
        if style == "check":
            namespace["check"](first)
        elif style == "unittest":
            run_unittest(self, namespace)

    def fail_outside(self, error: BaseException) -> None:
        """Note that the tests broke off between two assertions."""
        if not self.session.gone:
            self.board.note("broken", describe(error, self.session))

    def finish(self) -> None:
        """Write how the run ended."""
        if self.session.gone:
            self.board.note("ending", [self.session.gone, ""])
        self.board.note("memory_error", self.session.memory_error)
        self.board.start(FINISHED)

    def record(self, name: str, error: BaseException | None) -> None:
        """Write one verdict: held only if nothing was raised and the candidate played fair."""
        session = self.session
        held = error is None and not session.gone and not session.foul
        text = "" if held else describe(error or AssertionError(), session)
        session.foul = ""
        session.last = ()
        self.board.record(name, held, text)


class _Probe:
    """What each assertion runs under."""

    def __init__(self, trial: Trial, place: int) -> None:
        self._trial = trial
        self._place = place
        self._name = trial.plan.names[place]

    def __enter__(self) -> None:
        self._trial.board.step(self._place)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        self._trial.record(self._name, error)
        if self._trial.session.gone:
            raise CandidateGoneError(self._trial.session.gone)
        return True


def read_job(payload: bytes) -> Job:
    """Return the job a frame holds."""
    job: Job = json.loads(payload)
    return job
