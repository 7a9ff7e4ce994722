"""Diagnostics of completed classes: what was found, and which public tests passed.

Of the hidden tests only one bit is reported, whether all of them passed, which an agent could infer
from the end of the episode. Error texts come only from docstring examples, which the skeleton
shows; they are shortened, and memory addresses are removed.
"""

from collections.abc import Mapping, Sequence, Set

from mlrl_envs.programs.splice import ClassAnswer
from mlrl_envs.rewards.coding.checks import check, clean_error, hidden_tests_check
from mlrl_envs.tasks import ClassTask
from mlrl_envs.types import AgentID, Json

__all__ = ["class_checks"]


def class_checks(
    task: ClassTask,
    answers: Mapping[AgentID, ClassAnswer],
    agent: AgentID,
    *,
    public: Sequence[str | None],
    solved: bool,
    error: str,
) -> dict[str, Json]:
    """Return the diagnostics of one agent: a list of checks under the key `checks`.

    Args:
        task: The class.
        answers: The contribution of each coder.
        agent: The agent.
        public: For each public test that was run, why it failed, or None.
        solved: Whether the class is complete and correct.
        error: Why the program does not load; empty if it does.
    """
    answer = answers[agent]
    taken = {name for other in answers.values() for name in other.overridden}
    checks = [_method(answer, name, taken) for name in answer.own]
    checks += [_syntax(answer), *_left_out(answer)]
    checks += [_teammate(other, answers[other]) for other in answers if other != agent]
    if error:
        checks.append(check("program", "does not load", passed=False, details=[clean_error(error)]))
    checks += [_public_tests(task, public), hidden_tests_check(solved=solved)]
    return {"checks": checks}


def _method(answer: ClassAnswer, name: str, taken: Set[str]) -> Json:
    if name in answer.methods:
        return check(f"method {name}", "FOUND", passed=True)
    if name in answer.stubs:
        reason = "its body does not do the work yet"
        if name in taken:
            reason = "a teammate sets this attribute at run time"
        detail = f"{reason}, so it is not used."
        return check(f"method {name}", "STUB", passed=False, details=[detail])
    detail = "write it as a whole `def` with its body."
    return check(f"method {name}", "MISSING", passed=False, details=[detail])


def _syntax(answer: ClassAnswer) -> Json:
    status = "wrong" if answer.errors else "right"
    details = [clean_error(error) for error in answer.errors]
    return check("syntax", status, passed=not answer.errors, details=details)


def _left_out(answer: ClassAnswer) -> list[Json]:
    checks = []
    if answer.strays:
        details = [f"{', '.join(answer.strays)}: not used, and costs reward."]
        checks.append(check("methods of teammates", "written", passed=False, details=details))
    if answer.overridden:
        details = [f"{', '.join(answer.overridden)}: set at run time, so they do not count."]
        checks.append(check("methods of teammates", "set", passed=False, details=details))
    if answer.dropped:
        details = [f"{clean_error('; '.join(answer.dropped))}: not used."]
        checks.append(check("beside your methods", "something else", passed=False, details=details))
    return checks


def _teammate(name: AgentID, answer: ClassAnswer) -> Json:
    missing = [method for method in answer.own if method not in answer.methods]
    details = [f"not delivered: {', '.join(missing)}."] if missing else []
    status = f"{len(answer.own) - len(missing)} of {len(answer.own)} methods delivered"
    return check(f"teammate {name}", status, passed=not missing, details=details)


def _public_tests(task: ClassTask, public: Sequence[str | None]) -> Json:
    name, total = "public tests (docstring examples)", len(task.public_tests)
    if total == 0:
        return check(name, "this class has none", passed=True)
    passed = sum(error is None for error in public)
    share = {0: "none", total: "all"}.get(passed, str(passed))
    details = [
        f"the example of {method} fails: {clean_error(error) or 'wrong result'}"
        for method, error in zip(task.public_tests, public, strict=False)
        if error is not None
    ]
    return check(name, f"{share} of {total} passed", passed=passed == total, details=details)
