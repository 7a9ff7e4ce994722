"""Execution of joint actions that write functions: the pass rate k/n and the public results.

k of n counts the assertions of the data set, each time one runs. Examples that agents are shown run
first in the same program. The earned rate, which the grounded reward pays, leaves them out; they
do count where a program is compared with changed versions of itself. Both leave out what a constant
passes.
"""

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

from mlrl_envs.parsing.syntax import parse_module
from mlrl_envs.programs.assembly import JointProgram, assemble
from mlrl_envs.rewards.coding.function_checks import PublicResult
from mlrl_envs.tasks import CodeTask
from mlrl_envs.types import AgentID, Attempt, ProgramRunner

if TYPE_CHECKING:
    from mlrl_envs.sandbox import Limits, Outcome, Program, TestRecord

__all__ = ["AGAIN", "HURRIED", "FunctionRun", "run_all", "run_sources", "subtract_constants"]

Seconds: TypeAlias = tuple[float, float]

MAX_CONSTANTS = 7
AGAIN = (3.0, 1.0)
"""Seconds of a program that runs again, and of one test; a changed one that needs more fails."""
HURRIED = (1.5, 0.5)
"""The same for an unchanged program with which changed ones are compared, so that a slow one does
not seem to need what was changed."""


@dataclass(frozen=True)
class FunctionRun:
    """The result of running a joint action.

    Attributes:
        program: The assembled program.
        loaded: Whether the sandbox could load it.
        rate: Share of the data set's assertions that passed, k/n.
        unseen: Number of assertions that passed and of all, without those that agents were shown;
            all assertions if every one was shown.
        free: How many of these the best constant passes.
        all_passed: Number of assertions that passed, shown ones included.
        all_free: How many of all assertions that constant passes.
        solved: Whether all assertions passed.
        erred: Whether the program does not load, or raises or crashes in an assertion.
        public: The public tests that were run.
        error: Why it does not parse or load; empty if it does.
    """

    program: JointProgram
    loaded: bool = False
    rate: float = 0.0
    unseen: tuple[int, int] = (0, 1)
    free: int = 0
    all_passed: int = 0
    all_free: int = 0
    solved: bool = False
    erred: bool = True
    public: tuple[PublicResult, ...] = ()
    error: str = ""

    @property
    def earned_rate(self) -> float:
        """The share of the unseen assertions that a constant does not pass."""
        passed, total = self.unseen
        free = self.free if self.free < total else 0
        return max(passed - free, 0) / (total - free)

    def relative(self, passed: int) -> float:
        """Return the number of assertions that a changed program passed, relative to this run.

        Those that a constant passes do not count; at least 0.
        """
        free = self.all_free if self.all_free < self.all_passed else 0
        return max(passed - free, 0) / (self.all_passed - free)


def run_all(
    attempts: Sequence[Attempt[CodeTask]],
    functions: Sequence[Mapping[AgentID, str]],
    sandbox: ProgramRunner,
) -> list[FunctionRun]:
    """Assemble and run attempts as one batch.

    Args:
        attempts: The attempts.
        functions: For each attempt, the function that each agent owns, helpers first.
        sandbox: Runs the programs, each once.

    Raises:
        InfraError: If the sandbox fails.
    """
    programs = [
        assemble(attempt.task, names, attempt.actions)
        for attempt, names in zip(attempts, functions, strict=True)
    ]
    runnable = [index for index, program in enumerate(programs) if program.source is not None]
    to_run = [_to_run(attempts[index].task, programs[index].source or "") for index in runnable]
    outcomes = sandbox.run_many(to_run) if to_run else []
    runs = [FunctionRun(program, error=program.error) for program in programs]
    for index, outcome in zip(runnable, outcomes, strict=True):
        runs[index] = _read_outcome(attempts[index].task, programs[index], outcome)
    return runs


def run_sources(
    sources: Sequence[tuple[CodeTask, str, Seconds]], sandbox: ProgramRunner
) -> list[tuple[int, int]]:
    """Return how many assertions programs pass, unseen ones and all, run as one batch.

    Args:
        sources: The task, the program and `AGAIN` or `HURRIED` for each.
        sandbox: Runs the programs.

    Raises:
        InfraError: If the sandbox fails.
    """
    if not sources:
        return []
    programs = [_to_run(task, source, seconds) for task, source, seconds in sources]
    return [
        (
            _count_unseen(task, outcome.tests[len(task.public_tests) :])[0],
            sum(record.passed for record in outcome.tests),
        )
        for (task, *_), outcome in zip(sources, sandbox.run_many(programs), strict=True)
    ]


def subtract_constants(
    tasks: Sequence[CodeTask], runs: Sequence[FunctionRun], sandbox: ProgramRunner
) -> list[FunctionRun]:
    """Return the runs with the number of assertions that the best constant passes.

    The constants are True, False, 0, [] and values of the examples. Each is run once a task; then
    the cache of the sandbox has its outcome.
    """
    wanted = {task.task_id: task for task, run in zip(tasks, runs, strict=True) if run.unseen[0]}
    sources = [
        (
            task,
            f"{task.prelude}\n\ndef {task.entry_point}(*args, **kwargs):\n    return {value}\n",
            AGAIN,
        )
        for task in wanted.values()
        for value in _constants(task.public_tests)
    ]
    best: dict[str, tuple[int, int]] = {}
    for (task, *_), counts in zip(sources, run_sources(sources, sandbox), strict=True):
        best[task.task_id] = max(counts, best.get(task.task_id, (0, 0)))
    free = [best.get(task.task_id, (0, 0)) for task in tasks]
    return [
        replace(run, free=unseen, all_free=every)
        for run, (unseen, every) in zip(runs, free, strict=True)
    ]


def _constants(public_tests: Sequence[str]) -> list[str]:
    values = [test.rpartition("==")[2].strip() for test in public_tests]
    values = [value for value in values if _is_literal(value)]
    return list(dict.fromkeys(["True", "False", "0", "[]", *values]))[:MAX_CONSTANTS]


def _is_literal(text: str) -> bool:
    try:
        ast.literal_eval(text)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return False
    return True


def _to_run(task: CodeTask, source: str, seconds: Seconds | None = None) -> "Program":
    from mlrl_envs.sandbox import Program

    return Program(
        source=source,
        tests="\n".join([task.setup, *task.public_tests, task.hidden_tests]),
        style="asserts",
        entry_points=(task.entry_point, *task.shared_names),
        helpers=task.prelude,
        limits=_limits(task, seconds),
    )


def _limits(task: CodeTask, seconds: Seconds | None) -> "Limits | None":
    from mlrl_envs.sandbox import Limits

    if task.test_seconds is not None:
        whole = 1.5 * task.test_seconds
        return Limits(wall_seconds=whole, test_seconds=task.test_seconds, cpu_seconds=whole)
    return None if seconds is None else Limits(wall_seconds=seconds[0], test_seconds=seconds[1])


def _read_outcome(task: CodeTask, program: JointProgram, outcome: "Outcome") -> FunctionRun:
    num_public = len(task.public_tests)
    public = tuple(
        PublicResult(source, record.passed, record.error)
        for source, record in zip(task.public_tests, outcome.tests, strict=False)
    )
    counted = outcome.tests[num_public:]
    passed = sum(record.passed for record in counted)
    rate = passed / _total(task, counted)
    loaded = _has_loaded(outcome)
    return FunctionRun(
        program,
        loaded=loaded,
        rate=rate,
        unseen=_count_unseen(task, counted),
        all_passed=sum(record.passed for record in outcome.tests),
        solved=rate == 1.0,
        erred=not loaded or any(_raised(record) for record in counted),
        public=public,
        # Errors after loading come from hidden tests and must not reach agents.
        error="" if loaded else outcome.error,
    )


def _total(task: CodeTask, records: Sequence["TestRecord"]) -> int:
    # A program that crashes in a loop of assertions has fewer records than a correct one.
    return max(len(records), task.num_hidden_tests, 1)


def _count_unseen(task: CodeTask, records: Sequence["TestRecord"]) -> tuple[int, int]:
    """Return how many of the assertions that agents were not shown passed, and how many exist."""
    unseen = [record for record in records if not _is_shown(task, record.name)]
    total = _total(task, records) - (len(records) - len(unseen))
    counted = unseen if total else records
    return sum(record.passed for record in counted), total or _total(task, records)


def _is_shown(task: CodeTask, assertion: str) -> bool:
    return _plain(assertion, task.entry_point) in _shown(task.public_tests, task.entry_point)


@lru_cache(maxsize=4096)
def _shown(public_tests: tuple[str, ...], name: str) -> frozenset[str]:
    return frozenset(_plain(test.removeprefix("assert "), name) for test in public_tests)


@lru_cache(maxsize=16384)
def _plain(assertion: str, name: str) -> str:
    """Return an assertion in a normal form, with `candidate` replaced by the function name."""
    try:
        tree = parse_module(assertion)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return assertion
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id == "candidate":
            node.id = name
    return ast.unparse(tree)


def _raised(record: "TestRecord") -> bool:
    return not record.passed and not record.error.startswith("false")


def _has_loaded(outcome: "Outcome") -> bool:
    reached = any(not record.error.startswith("not reached") for record in outcome.tests)
    return reached and outcome.status != "load_error"
