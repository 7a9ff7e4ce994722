"""Joint actions of the coding families, assembled and run: k of n, and what may be told of it.

k of n counts the data set's own assertions, each time one runs; examples that agents are shown run
first in the same program, for feedback only. What it does not cover: what that is worth.
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
    """A joint action, assembled and run.

    Attributes:
        program: What was assembled.
        loaded: Whether the sandbox could load it.
        rate: Share of the data set's assertions that passed, k/n.
        earned_rate: The same, but 0 where only assertions passed that agents were shown: a table
            of the examples earns nothing.
        solved: Whether all of them passed.
        erred: Whether it does not load, or raises or dies in one of them.
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
        attempts: What was played.
        functions: For each attempt, the function each agent owns, helpers first.
        sandbox: Runs the programs, each once.
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
    """Return the earned rate of sources, run as one batch on what counts alone."""
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
    # What is run again has been run before, and in time: if it takes long now, it is lost.
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
        # How a hidden test ended is nobody's business, so errors of later phases stay here.
        error="" if loaded else outcome.error,
    )


def _count(task: CodeTask, records: Sequence["TestRecord"]) -> tuple[float, float]:
    """Return k/n, and k/n or 0 if nothing beyond the shown examples passed."""
    passed = sum(record.passed for record in records)
    # A program that dies inside a loop of assertions leaves fewer records than a right one.
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
    """Return an assertion in one spelling, with the function under its own name."""
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
