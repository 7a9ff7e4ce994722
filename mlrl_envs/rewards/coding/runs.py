"""Execution of joint actions that write functions: the pass rate k/n and the public results.

k of n counts the assertions of the data set, each time one runs. Examples that agents are shown run
first in the same program and are used for feedback only.
"""

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from mlrl_envs.parsing.syntax import parse_module
from mlrl_envs.programs.assembly import JointProgram, assemble
from mlrl_envs.rewards.coding.function_checks import PublicResult
from mlrl_envs.tasks import CodeTask
from mlrl_envs.types import AgentID, Attempt, ProgramRunner

if TYPE_CHECKING:
    from mlrl_envs.sandbox import Limits, Outcome, Program, TestRecord

__all__ = ["FunctionRun", "run_all", "run_sources"]


@dataclass(frozen=True)
class FunctionRun:
    """The result of running a joint action.

    Attributes:
        program: The assembled program.
        loaded: Whether the sandbox could load it.
        rate: Share of the data set's assertions that passed, k/n.
        earned_rate: The same, but 0 if only assertions passed that agents were shown, so that a
            table of the examples earns nothing.
        solved: Whether all assertions passed.
        erred: Whether the program does not load, or raises or crashes in an assertion.
        public: The public tests that were run.
        error: Why it does not parse or load; empty if it does.
    """

    program: JointProgram
    loaded: bool = False
    rate: float = 0.0
    earned_rate: float = 0.0
    solved: bool = False
    erred: bool = True
    public: tuple[PublicResult, ...] = ()
    error: str = ""


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
    to_run = [
        _to_run(attempts[index].task, programs[index].source or "", with_public=True)
        for index in runnable
    ]
    outcomes = sandbox.run_many(to_run) if to_run else []
    runs = [FunctionRun(program, error=program.error) for program in programs]
    for index, outcome in zip(runnable, outcomes, strict=True):
        runs[index] = _read_outcome(attempts[index].task, programs[index], outcome)
    return runs


def run_sources(sources: Sequence[tuple[CodeTask, str]], sandbox: ProgramRunner) -> list[float]:
    """Return the earned rates of programs, run as one batch without the public tests."""
    if not sources:
        return []
    programs = [_to_run(task, source, with_public=False) for task, source in sources]
    outcomes = sandbox.run_many(programs)
    return [
        _count(task, outcome.tests)[1] for (task, _), outcome in zip(sources, outcomes, strict=True)
    ]


def _to_run(task: CodeTask, source: str, *, with_public: bool) -> "Program":
    from mlrl_envs.sandbox import Program

    public = task.public_tests if with_public else ()
    return Program(
        source=source,
        tests="\n".join([task.setup, *public, task.hidden_tests]),
        style="asserts",
        entry_points=(task.entry_point, *task.shared_names),
        helpers=task.prelude,
        limits=_limits(task, again=not with_public),
    )


def _limits(task: CodeTask, *, again: bool) -> "Limits | None":
    from mlrl_envs.sandbox import Limits

    if task.test_seconds is not None:
        whole = 1.5 * task.test_seconds
        return Limits(wall_seconds=whole, test_seconds=task.test_seconds, cpu_seconds=whole)
    # Programs that run again finished in time before; a changed one that does not has failed.
    return Limits(wall_seconds=3.0, test_seconds=1.0) if again else None


def _read_outcome(task: CodeTask, program: JointProgram, outcome: "Outcome") -> FunctionRun:
    num_public = len(task.public_tests)
    public = tuple(
        PublicResult(source, record.passed, record.error)
        for source, record in zip(task.public_tests, outcome.tests, strict=False)
    )
    counted = outcome.tests[num_public:]
    rate, earned_rate = _count(task, counted)
    loaded = _has_loaded(outcome)
    return FunctionRun(
        program,
        loaded=loaded,
        rate=rate,
        earned_rate=earned_rate,
        solved=rate == 1.0,
        erred=not loaded or any(_raised(record) for record in counted),
        public=public,
        # Errors after loading come from hidden tests and must not reach agents.
        error="" if loaded else outcome.error,
    )


def _count(task: CodeTask, records: Sequence["TestRecord"]) -> tuple[float, float]:
    """Return k/n, and the same or 0 if nothing passed beyond the shown examples."""
    passed = sum(record.passed for record in records)
    # A program that crashes in a loop of assertions has fewer records than a correct one.
    total = max(len(records), task.num_hidden_tests, 1)
    unseen = [record for record in records if not _is_shown(task, record.name)]
    beyond = not unseen or any(record.passed for record in unseen)
    return passed / total, passed / total if beyond else 0.0


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
