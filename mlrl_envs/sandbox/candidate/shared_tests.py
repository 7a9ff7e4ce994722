"""Tests that run inside the candidate process (`assurance="shared"`).

See `judge/shared_process.py` for the safeguards.
"""

from typing import Any

__all__ = ["SharedTests"]


class SharedTests:
    """Tests loaded into the process of the program that they test.

    Args:
        helpers: Source of the trusted helpers.
        tests: Source of the tests, with decoys.
        found: The entry points of the program.
    """

    def __init__(self, helpers: str, tests: str, found: dict[str, Any]) -> None:
        self._namespace: dict[str, Any] = {"__name__": "tests"}
        exec(compile(helpers, "<helpers>", "exec"), self._namespace)  # noqa: S102
        self._namespace.update(found)
        exec(compile(tests, "<tests>", "exec"), self._namespace)  # noqa: S102

    def run(self, case: str, method: str) -> str:
        """Run a test method; return "" if it passes, else the last line of the failure."""
        import unittest

        test = self._namespace[case](method)
        result = unittest.TestResult()
        unittest.TestSuite([test]).run(result)
        problems = [text for _test, text in (*result.errors, *result.failures)]
        if result.skipped or result.unexpectedSuccesses:
            problems.append("skipped")
        return problems[0].strip().splitlines()[-1] if problems else ""
