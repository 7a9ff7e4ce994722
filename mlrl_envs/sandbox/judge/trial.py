"""Records of one run of the tests against one candidate, and the note on how the run ended."""

from types import TracebackType
from typing import Any, TypeAlias

from mlrl_envs.sandbox.judge.board import FINISHED, Board
from mlrl_envs.sandbox.judge.border import Border, describe
from mlrl_envs.sandbox.judge.faults import CandidateGoneError
from mlrl_envs.sandbox.judge.plan import Plan

__all__ = ["JobFields", "Trial"]

JobFields: TypeAlias = dict[str, Any]  # the fields of a `Program`, decoded from JSON


class Trial:
    """One run of the tests.

    Args:
        border: Connection to the candidate.
        board: Where the records are written.
        plan: The compiled tests.
    """

    def __init__(self, border: Border, board: Board, plan: Plan) -> None:
        self.border = border
        self.board = board
        self.plan = plan

    def contexts(self) -> list["_Context"]:
        """Return a context manager for each assertion of the plan, in the plan's order."""
        return [_Context(self, index) for index in range(len(self.plan.names))]

    def fail_outside(self, error: BaseException) -> None:
        """Note that the tests raised an exception outside an assertion."""
        if not self.border.gone:
            self.board.note("broken", describe(error, self.border))

    def finish(self) -> None:
        """Note how the run ended, and mark it as finished."""
        if self.border.gone:
            self.board.note("ending", [self.border.gone, ""])
        self.board.note("memory_error", self.border.memory_error)
        self.board.start(FINISHED)

    def record(self, name: str, error: BaseException | None) -> None:
        """Write one verdict.

        The test passed only if nothing was raised, the candidate is alive, and it raised no
        forbidden exception during the test.
        """
        border = self.border
        passed = error is None and not border.gone and not border.forbidden
        text = "" if passed else describe(error or AssertionError(), border)
        border.forbidden = ""
        border.last = ()
        self.board.record(name, passed, text)


class _Context:
    """Context manager around one assertion, which records its result."""

    def __init__(self, trial: Trial, index: int) -> None:
        self._trial = trial
        self._index = index
        self._name = trial.plan.names[index]

    def __enter__(self) -> None:
        self._trial.board.step(self._index)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        self._trial.record(self._name, error)
        if self._trial.border.gone:
            raise CandidateGoneError(self._trial.border.gone)
        return True
