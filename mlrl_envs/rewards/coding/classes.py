"""Rewards of class completion: `paper` and `grounded`.

Paper (0 to 6): 2 x assigned methods that parse / incomplete methods + 4 x tests passed / tests run
- methods written by more than one coder / methods. A program that does not load scores 0, as does a
joint action without any method. With two coders the sum is never negative; with more it is bounded
below by 0.

Grounded, in [0, 1]: tests x (0.9 + 0.1 x methods delivered / methods) - 0.5 x overlap, at least 0.
With k of n test methods passed, of which the unchanged skeleton passes k0, tests = (k - k0) /
(n - k0), so that tests that pass without any work are not paid; at most 0.1 + methods delivered /
methods, so that a class which one coder completes at run time is not paid in full. A stub is
neither delivered nor run; it is a body that does nothing, or the same for all arguments, although
the reference does more, or that calls a helper which only a teammate wrote, or a method that the
code of a teammate sets as an attribute, which could replace it at run time. Overlap is the share of
the methods that were written by a coder to whom they were not assigned; a repeated signature
without a body is no overlap.

k of n counts the test methods of the data set; docstring examples run first in the same program and
are used for feedback only. `solved` requires all tests and all methods. Not detected: a body that
hides that it is constant, which earns the tests that expect this constant.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from mlrl_envs.programs.splice import MergedClass, merge, splice
from mlrl_envs.rewards.coding.class_checks import class_checks
from mlrl_envs.rewards.turn_gain import pay_gain
from mlrl_envs.tasks import ClassTask
from mlrl_envs.types import AgentID, Attempt, Json, ProgramRunner, Score

if TYPE_CHECKING:
    from mlrl_envs.sandbox import Outcome, Program

__all__ = ["Owners", "score_grounded", "score_paper"]

Owners = Mapping[AgentID, Sequence[str]]
TESTS, DELIVERED, OVERLAP = 0.9, 0.1, 0.5
SLACK = 0.1
PARSED, PASSED = 2.0, 4.0
PATIENCE = 30.0  # time limit in seconds if the reference needs several for one test


@dataclass(frozen=True)
class ClassRun:
    """The result of running a joint action.

    Attributes:
        merged: The merged class.
        loaded: Whether the sandbox could load it.
        passed: Number of hidden test methods that passed, k.
        total: Number of hidden test methods, n.
        public: For each public test that was run, why it failed, or None.
        error: Why it cannot be unparsed or loaded; empty if it can.
    """

    merged: MergedClass
    loaded: bool = False
    passed: int = 0
    total: int = 1
    public: tuple[str | None, ...] = ()
    error: str = ""


def score_grounded(
    attempts: Sequence[Attempt[ClassTask]], owners: Sequence[Owners], sandbox: ProgramRunner
) -> list[Score]:
    """Score attempts by the grounded formula.

    Args:
        attempts: The attempts.
        owners: For each attempt, the methods of each coder.
        sandbox: Runs the programs, and the unchanged skeletons of those that pass some test.

    Raises:
        InfraError: If the sandbox fails.
    """
    runs = _run_all(attempts, owners, sandbox, with_stubs=False)
    free = _passed_untouched(
        [a.task for a, r in zip(attempts, runs, strict=True) if r.passed], sandbox
    )
    return [
        _grounded(attempt, run, free.get(attempt.task.task_id, 0))
        for attempt, run in zip(attempts, runs, strict=True)
    ]


def score_paper(
    attempts: Sequence[Attempt[ClassTask]], owners: Sequence[Owners], sandbox: ProgramRunner
) -> list[Score]:
    """Score attempts by the published formula; see `score_grounded` for arguments."""
    runs = _run_all(attempts, owners, sandbox, with_stubs=True)
    return [
        _score(attempt, run, dict.fromkeys(run.merged.answers, _paper(attempt.task, run)))
        for attempt, run in zip(attempts, runs, strict=True)
    ]


def _run_all(
    attempts: Sequence[Attempt[ClassTask]],
    owners: Sequence[Owners],
    sandbox: ProgramRunner,
    *,
    with_stubs: bool,
) -> list[ClassRun]:
    merged = [
        merge(attempt.task, share, attempt.actions, with_stubs=with_stubs)
        for attempt, share in zip(attempts, owners, strict=True)
    ]
    runs = [ClassRun(program, error=program.error) for program in merged]
    runnable = [index for index, program in enumerate(merged) if program.source is not None]
    programs = [_to_run(attempts[index].task, merged[index].source or "") for index in runnable]
    outcomes = sandbox.run_many(programs) if programs else []
    for index, outcome in zip(runnable, outcomes, strict=True):
        runs[index] = _read_outcome(attempts[index].task, merged[index], outcome)
    return runs


def _passed_untouched(tasks: Sequence[ClassTask], sandbox: ProgramRunner) -> dict[str, int]:
    """Return the number of hidden tests that each unchanged skeleton passes."""
    unique = {task.task_id: task for task in tasks}
    programs = [
        _to_run(task, _untouched(task.skeleton, task.class_name)) for task in unique.values()
    ]
    outcomes = sandbox.run_many(programs) if programs else []
    nothing = MergedClass({}, None)
    return {
        name: _read_outcome(task, nothing, outcome).passed
        for (name, task), outcome in zip(unique.items(), outcomes, strict=True)
    }


@lru_cache(maxsize=1024)
def _untouched(skeleton: str, class_name: str) -> str:
    return splice(skeleton, class_name, {}) or ""


def _to_run(task: ClassTask, source: str) -> "Program":
    from mlrl_envs.sandbox import Limits, Program

    patient = Limits(wall_seconds=PATIENCE, test_seconds=PATIENCE, cpu_seconds=PATIENCE)
    return Program(
        source=source,
        tests=task.tests,
        style="unittest",
        entry_points=(task.class_name,),
        helpers=task.helpers,
        dunders=task.dunders,
        assurance="shared" if task.shared else "split",
        limits=patient if task.patient else None,
    )


def _read_outcome(task: ClassTask, merged: MergedClass, outcome: "Outcome") -> ClassRun:
    num_public = len(task.public_tests)
    loaded = outcome.status != "load_error" and any(
        not record.error.startswith("not reached") for record in outcome.tests
    )
    return ClassRun(
        merged,
        loaded=loaded,
        passed=sum(record.passed for record in outcome.tests[num_public:]),
        total=max(task.num_hidden_tests, 1),
        public=tuple(
            None if record.passed else record.error for record in outcome.tests[:num_public]
        ),
        # Errors after loading come from hidden tests and must not reach agents.
        error="" if loaded else outcome.error,
    )


def _grounded(attempt: Attempt[ClassTask], run: ClassRun, free: int) -> Score:
    answers = run.merged.answers
    needed = [method.name for method in attempt.task.methods if method.work != "nothing"]
    found = sum(name in answer.methods for answer in answers.values() for name in needed)
    delivered = found / max(len(needed), 1)
    strays = {name for answer in answers.values() for name in answer.strays}
    gained = max(run.passed - free, 0) / max(run.total - free, 1)
    gained = min(gained, delivered + SLACK)
    parts = {
        "tests": TESTS * gained,
        "delivered": DELIVERED * gained * delivered,
    }
    overlap = OVERLAP * len(strays) / len(attempt.task.methods)
    parts["overlap"] = 0.0 - min(overlap, sum(parts.values()))
    paid = {agent: pay_gain(parts, attempt.turns, agent) for agent in answers}
    return _score(attempt, run, paid)


def _paper(task: ClassTask, run: ClassRun) -> dict[str, float]:
    answers = run.merged.answers.values()
    written = Counter(
        name
        for answer in answers
        for name in (*answer.methods, *answer.stubs, *answer.strays, *answer.signatures)
    )
    parsed = sum(len(answer.methods) + len(answer.stubs) for answer in answers)
    parts = {
        "parsed": PARSED * run.loaded * parsed / len(task.methods),
        "tests": PASSED * run.passed / run.total,
    }
    overlap = sum(count > 1 for count in written.values()) / len(task.methods)
    return {**parts, "overlap": 0.0 - min(overlap, sum(parts.values()))}


def _score(
    attempt: Attempt[ClassTask], run: ClassRun, components: Mapping[AgentID, Mapping[str, float]]
) -> Score:
    answers = run.merged.answers
    needed = {method.name for method in attempt.task.methods if method.work != "nothing"}
    delivered = {name for answer in answers.values() for name in answer.methods}
    solved = run.passed == run.total and needed <= delivered
    diagnostics: dict[AgentID, dict[str, Json]] = {
        agent: class_checks(
            attempt.task, answers, agent, public=run.public, solved=solved, error=run.error
        )
        for agent in answers
    }
    return Score(components, solved, diagnostics)
