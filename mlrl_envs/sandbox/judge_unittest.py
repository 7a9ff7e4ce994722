"""The `unittest` style: every test method is one record."""

import unittest
from typing import TYPE_CHECKING, Any

from mlrl_envs.sandbox.proxy import CandidateGoneError

if TYPE_CHECKING:
    from mlrl_envs.sandbox.judge import Trial

__all__ = ["method_names", "run_unittest"]


def run_unittest(trial: "Trial", namespace: dict[str, Any]) -> None:
    """Run every `TestCase` the tests define, in the order of their definition."""
    suites = [
        unittest.TestSuite(kind(name) for name in unittest.TestLoader().getTestCaseNames(kind))
        for kind in _cases(namespace)
    ]
    names = [_name(case) for suite in suites for case in suite]
    trial.board.note("plan", names)
    result = _Recorder(trial)
    for suite in suites:
        suite.run(result)


def _cases(namespace: dict[str, Any]) -> list[type[unittest.TestCase]]:
    return [
        value
        for value in namespace.values()
        if isinstance(value, type)
        and issubclass(value, unittest.TestCase)
        and value.__module__ == namespace["__name__"]
    ]


def _name(case: object) -> str:
    return f"{type(case).__name__}.{getattr(case, '_testMethodName', case)}"


class _Recorder(unittest.TestResult):
    """Writes each method's verdict to the board. A skip is no pass: nobody checked anything."""

    def __init__(self, trial: "Trial") -> None:
        super().__init__()
        self._trial = trial
        self._error: BaseException | None = None
        self._place = -1

    def startTest(self, test: unittest.TestCase) -> None:
        super().startTest(test)
        self._error = None
        self._place += 1
        self._trial.board.step(self._place)

    def stopTest(self, test: unittest.TestCase) -> None:
        super().stopTest(test)
        self._trial.record(_name(test), self._error)
        if self._trial.session.gone:
            raise CandidateGoneError(self._trial.session.gone)

    def addError(self, test: unittest.TestCase, err: Any) -> None:
        if hasattr(test, "_testMethodName"):
            self._error = self._error or err[1]
        else:  # setUpClass or setUpModule: none of its methods will run
            self._trial.fail_outside(err[1])

    def addFailure(self, test: unittest.TestCase, err: Any) -> None:
        self.addError(test, err)

    def addSubTest(self, test: unittest.TestCase, subtest: Any, err: Any) -> None:
        if err is not None:
            self.addError(test, err)

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:
        self._error = self._error or AssertionError("skipped")

    def addUnexpectedSuccess(self, test: unittest.TestCase) -> None:
        self._error = self._error or AssertionError("unexpected success")

    def addExpectedFailure(self, test: unittest.TestCase, err: Any) -> None:
        pass
