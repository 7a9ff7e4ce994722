"""The candidate's side of tests that cannot be split: it holds them and runs them itself."""

from typing import Any

__all__ = ["SharedTests"]


class SharedTests:
    """Tests loaded beside the source they test."""

    def __init__(self, helpers: str, tests: str, found: dict[str, Any]) -> None:
        self._space: dict[str, Any] = {"__name__": "tests"}
        exec(compile(helpers, "<helpers>", "exec"), self._space)  # noqa: S102
        self._space.update(found)
        exec(compile(tests, "<tests>", "exec"), self._space)  # noqa: S102

    def run(self, case: str, method: str) -> str:
        """Return "" if a test method holds, else what went wrong."""
        import unittest

        test = self._space[case](method)
        result = unittest.TestResult()
        unittest.TestSuite([test]).run(result)
        problems = [text for _test, text in (*result.errors, *result.failures)]
        if result.skipped or result.unexpectedSuccesses:
            problems.append("skipped")
        return problems[0].strip().splitlines()[-1] if problems else ""
