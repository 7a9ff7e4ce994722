"""Tests in `unittest` style, with one record per test method.

`unittest` is imported when the first such tests arrive, because a larger process takes longer to
fork.
"""

# ruff: noqa: ANN401  values of any type cross the border

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from mlrl_envs.sandbox.judge.faults import CandidateGoneError, VerdictError
from mlrl_envs.sandbox.judge.trial import Trial

if TYPE_CHECKING:
    import unittest

    _TestResult = unittest.TestResult
else:
    _TestResult = object  # `_recorder_class` adds the real base class

__all__ = ["run_unittest"]


def run_unittest(trial: Trial, namespace: dict[str, Any]) -> None:
    """Run every `TestCase` that the tests define, in the order of definition."""
    import unittest

    loader = unittest.TestLoader()
    suites = [
        unittest.TestSuite(kind(name) for name in loader.getTestCaseNames(kind))
        for kind in namespace.values()
        if isinstance(kind, type)
        and issubclass(kind, unittest.TestCase)
        and kind.__module__ == namespace["__name__"]
    ]
    trial.board.note("plan", [_name(case) for suite in suites for case in suite])
    result = _recorder_class()(trial)
    for suite in suites:
        suite.run(result)


def _name(case: object) -> str:
    return f"{type(case).__name__}.{getattr(case, '_testMethodName', case)}"


class _Recorder(_TestResult):
    """Writes each verdict to the board. A skipped test fails, because it checked nothing."""

    def __init__(self, trial: Trial) -> None:
        super().__init__()
        self._trial = trial
        self._error: BaseException | None = None
        self._index = -1

    def startTest(self, test: "unittest.TestCase") -> None:  # noqa: N802
        super().startTest(test)
        self._error = None
        self._index += 1
        self._trial.board.step(self._index)

    def stopTest(self, test: "unittest.TestCase") -> None:  # noqa: N802
        super().stopTest(test)
        self._trial.record(_name(test), self._error)
        if self._trial.border.gone:
            raise CandidateGoneError(self._trial.border.gone)

    def addError(self, test: Any, err: Any) -> None:  # noqa: N802
        if hasattr(test, "_testMethodName"):
            self._error = self._error or err[1]
        else:  # `setUpClass` or `setUpModule` failed, so no method of it will run
            self._trial.fail_outside(err[1])

    def addFailure(self, test: Any, err: Any) -> None:  # noqa: N802
        self.addError(test, err)

    def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:  # noqa: ARG002, N802
        if err is not None:
            self.addError(test, err)

    def addSkip(self, test: Any, reason: str) -> None:  # noqa: ARG002, N802
        self._error = self._error or VerdictError("skipped")

    def addUnexpectedSuccess(self, test: Any) -> None:  # noqa: ARG002, N802
        self._error = self._error or VerdictError("unexpected success")

    def addExpectedFailure(self, test: Any, err: Any) -> None:  # noqa: N802
        pass


@lru_cache(maxsize=1)
def _recorder_class() -> Any:
    import unittest

    return type("Recorder", (_Recorder, unittest.TestResult), {})
