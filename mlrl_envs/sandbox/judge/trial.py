"""One run of tests against one candidate: its records, one at a time, and how it ended."""

from types import TracebackType
from typing import Any, TypeAlias

from mlrl_envs.sandbox.judge.board import FINISHED, Board
from mlrl_envs.sandbox.judge.faults import CandidateGoneError
from mlrl_envs.sandbox.judge.plan import Plan
from mlrl_envs.sandbox.judge.proxy import Session, describe

__all__ = ["Job", "Trial"]

Job: TypeAlias = dict[str, Any]  # a `Program`, as it arrives


class Trial:
    """One run of the tests, one record at a time."""

    def __init__(self, session: Session, board: Board, plan: Plan) -> None:
        self.session = session
        self.board = board
        self.plan = plan

    def probes(self) -> list["_Probe"]:
        """Return what the plan's assertions run under, each at its place."""
        return [_Probe(self, place) for place in range(len(self.plan.names))]

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
