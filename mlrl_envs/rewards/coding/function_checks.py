"""Diagnostics of written functions: what was found, what parses, which public tests passed.

Of the hidden tests only one bit is reported, whether all of them passed, which an agent could infer
from the end of the episode. Error texts come from public tests only; they are shortened, and memory
addresses are removed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mlrl_envs.programs.assembly import FunctionAnswer, JointProgram
from mlrl_envs.programs.usage import Usage, usage_of
from mlrl_envs.rewards.coding.checks import check, clean_error, hidden_tests_check
from mlrl_envs.tasks import CodeTask
from mlrl_envs.types import AgentID, Json

__all__ = ["PublicResult", "code_checks"]


_USAGE: Mapping[Usage, tuple[str, str]] = {
    "missing": ("not called", "there is no main function that could call it."),
    "uncalled": ("not called", "unused: call it and build on what it returns."),
    "ignored": ("called", "misused: it is called, but what it returns is never used."),
    "wrapped": (
        "called",
        "thin wrapper: your function only passes its result on; do part of the work yourself.",
    ),
    "used": ("called", "its result is used."),
}


@dataclass(frozen=True)
class PublicResult:
    """The result of a public test.

    Attributes:
        test: Its source.
        passed: Whether it passed.
        error: Why it failed; empty if it passed.
    """

    test: str
    passed: bool
    error: str = ""


def code_checks(
    task: CodeTask,
    program: JointProgram,
    agent: AgentID,
    *,
    public: Sequence[PublicResult],
    solved: bool,
    error: str,
) -> dict[str, Json]:
    """Return the diagnostics of one agent: a list of checks under the key `checks`.

    Args:
        task: The problem.
        program: The joint program.
        agent: The agent.
        public: Results of the public tests that were run.
        solved: Whether all hidden tests passed.
        error: Why the program does not load; empty if it does.
    """
    answer = program.answers[agent]
    main = next(a for a in program.answers.values() if a.name == task.entry_point)
    checks = [_found(answer), _syntax(answer)]
    if error:
        checks.append(check("program", "does not load", passed=False, details=[clean_error(error)]))
    checks += [_public_tests(task, public), hidden_tests_check(solved=solved)]
    if answer is main:
        helpers = [a for a in program.answers.values() if a is not main]
        checks += [_use(main, helper) for helper in helpers]
    return {"checks": checks}


def _found(answer: FunctionAnswer) -> Json:
    found = answer.function is not None
    details = [] if found else [f"define a function named {answer.name} in one ```python block."]
    if answer.dropped:
        names = ", ".join(answer.dropped)
        details.append(f"left out, because they are not yours to define: {names}.")
    status = "FOUND" if found else "MISSING"
    return check(f"function {answer.name}", status, passed=found, details=details)


def _syntax(answer: FunctionAnswer) -> Json:
    details = [clean_error(answer.error)] if answer.error else []
    status = "wrong" if answer.error else "right"
    return check("syntax", status, passed=not answer.error, details=details)


def _public_tests(task: CodeTask, public: Sequence[PublicResult]) -> Json:
    total = len(task.public_tests)
    passed = sum(result.passed for result in public)
    if total == 0:
        return check("public tests", "this problem has none", passed=True)
    share = {0: "none", total: "all"}.get(passed, str(passed))
    details = [
        f"{result.test}  # {clean_error(result.error) or 'failed'}"
        for result in public
        if not result.passed
    ]
    return check(
        "public tests", f"{share} of {total} passed", passed=passed == total, details=details
    )


def _use(main: FunctionAnswer, helper: FunctionAnswer) -> Json:
    usage = usage_of(main, helper.name)
    status, detail = _USAGE[usage]
    details = [detail]
    if helper.function is None:
        details.append(f"your teammate did not deliver {helper.name}.")
    return check(f"use of {helper.name}", status, passed=usage == "used", details=details)
