"""Scores of a coder by hidden tests and of a tester by mutants.

Coder: quality = 0.1 loaded + 0.9 (k - k0) / (n - k0) over the assertions that agents were not
shown, of which the best constant passes k0.

Tester: quality = v (0.1 + 0.9 m), with v the share of its assertions that the reference solution
passes, and m the share of mutants of the reference that its novel assertions tell from it: those
that the reference passes, with arguments that no example has. A copy of an example kills nothing.
Mutants count that fail hidden tests and pass the shown examples; if there is none, those that fail
hidden tests; if none fails, m is 1 with a novel assertion and 0 without.

Every turn pays the gain over the best earlier quality; see `mlrl_envs.rewards.turn_gain`.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mlrl_envs.programs.literal_tests import literal_tests, novel_tests
from mlrl_envs.programs.mutants import mutants
from mlrl_envs.rewards.coding.checks import check, clean_error, hidden_tests_check
from mlrl_envs.rewards.coding.runs import FunctionRun, run_all, subtract_constants
from mlrl_envs.rewards.turn_gain import pay_gain
from mlrl_envs.tasks import CodeTask
from mlrl_envs.types import AgentID, Attempt, Json, ProgramRunner, Score, Turn

if TYPE_CHECKING:
    from mlrl_envs.sandbox import Outcome, Program

__all__ = ["CODER", "TESTER", "ScoreRules", "hidden_literals", "last_answer", "score_coder_tester"]

CODER, TESTER = "coder", "tester"
LOADED, PASSED = 0.1, 0.9
CodeAttempt = Attempt[CodeTask]


@dataclass(frozen=True)
class ScoreRules:
    """What scores depend on besides the attempt.

    Attributes:
        num_tests: Number of assertions of the tester that count.
        num_mutants: Number of mutants of the reference.
        is_team: Whether both agents get half of every gain.
        max_turns: Number of turns of an episode.
    """

    num_tests: int
    num_mutants: int
    is_team: bool
    max_turns: int


def score_coder_tester(
    attempts: Sequence[CodeAttempt], rules: ScoreRules, sandbox: ProgramRunner
) -> list[Score]:
    """Score attempts, each a turn of the coder or of the tester, in few batches.

    Raises:
        InfraError: If the sandbox fails.
    """
    codes = [Attempt(attempt.task, (), {CODER: _latest(attempt, CODER)}) for attempt in attempts]
    functions = [{CODER: attempt.task.entry_point} for attempt in attempts]
    tasks = [attempt.task for attempt in attempts]
    runs = subtract_constants(tasks, run_all(codes, functions, sandbox), sandbox)
    tests = [
        literal_tests(_latest(attempt, TESTER), attempt.task.entry_point, rules.num_tests)
        for attempt in attempts
    ]
    results = _run_tests(
        [
            (task, run.program.source or "", each)
            for task, run, each in zip(tasks, runs, tests, strict=True)
        ],
        sandbox,
    )
    told = [index for index, attempt in enumerate(attempts) if TESTER in attempt.actions]
    kills = _kills([(tasks[index], tests[index]) for index in told], rules.num_mutants, sandbox)
    qualities = dict(zip(told, kills, strict=True))
    return [
        _score(attempt, runs[index], tests[index], results[index], qualities.get(index), rules)
        for index, attempt in enumerate(attempts)
    ]


def last_answer(turns: Sequence[Turn], agent: AgentID) -> str:
    """Return the last answer of an agent, empty if there is none."""
    return next((turn.actions[agent] for turn in reversed(turns) if agent in turn.actions), "")


def hidden_literals(task: CodeTask, limit: int) -> tuple[str, ...]:
    """Return hidden assertions in the form that a tester writes."""
    hidden = re.sub(r"\bcandidate\b", task.entry_point, task.hidden_tests)
    found = literal_tests(f"```python\n{hidden}\n```", task.entry_point, 1000)
    shown = set(literal_tests("\n".join(task.public_tests), task.entry_point, 1000))
    return tuple([each for each in found if each not in shown][:limit]) or found[:limit]


def _latest(attempt: CodeAttempt, agent: AgentID) -> str:
    return attempt.actions.get(agent, last_answer(attempt.turns, agent))


def _score(
    attempt: CodeAttempt,
    run: FunctionRun,
    tests: Sequence[str],
    results: Sequence[tuple[bool, str]],
    kills: tuple[float, float] | None,
    rules: ScoreRules,
) -> Score:
    if kills is None:
        actor, parts = CODER, {"loaded": LOADED * run.loaded, "tests": PASSED * run.earned_rate}
    else:
        valid, killed = kills
        actor, parts = TESTER, {"valid": LOADED * valid, "kills": PASSED * valid * killed}
    earned = pay_gain(parts, [_whole(turn, rules) for turn in attempt.turns], actor)
    components: dict[AgentID, Mapping[str, float]] = {CODER: {}, TESTER: {}, actor: earned}
    if rules.is_team:
        half = {name: value / 2 for name, value in earned.items()}
        components = {CODER: half, TESTER: half}
    is_last = len(attempt.turns) + 1 >= rules.max_turns
    is_read = actor == TESTER or is_last
    checks = _checks(run, tests, results)
    if is_read:
        checks.append(hidden_tests_check(solved=run.solved))
    solved = run.solved and is_read
    return Score(components, solved, {CODER: {"checks": checks}, TESTER: {"checks": checks}})


def _whole(turn: Turn, rules: ScoreRules) -> Turn:
    """Return a turn with what the agent that acted earned before it was shared."""
    (actor,) = turn.actions
    factor = 2.0 if rules.is_team else 1.0
    parts = {name: factor * value for name, value in turn.score.components[actor].items()}
    components = {CODER: {}, TESTER: {}, actor: parts}
    return Turn(turn.actions, Score(components, turn.score.solved))


def _checks(
    run: FunctionRun,
    tests: Sequence[str],
    results: Sequence[tuple[bool, str]],
) -> list[Json]:
    """Return what both agents may know: how the code does in the examples and written tests."""
    error = clean_error(run.error or run.program.error)
    status = "loads" if run.loaded else "does not load"
    found = [check("code", status, passed=run.loaded, details=[error] if error else [])]
    shown = [(public.test, public.passed, public.error) for public in run.public]
    written = [(test, *result) for test, result in zip(tests, results, strict=True)]
    for name, rows in (("examples", shown), ("tests of the tester", written)):
        if rows:
            failed = [f"{source}: {clean_error(why)}" for source, passed, why in rows if not passed]
            status = f"{len(rows) - len(failed)} of {len(rows)} pass"
            found.append(check(name, status, passed=not failed, details=failed))
    return found


def _kills(
    cases: Sequence[tuple[CodeTask, tuple[str, ...]]], num_mutants: int, sandbox: ProgramRunner
) -> list[tuple[float, float]]:
    """Return for each case the share of valid tests, and of mutants that novel ones tell apart."""
    valid = [
        tuple(test for test, (passed, _) in zip(tests, row, strict=True) if passed)
        for (_, tests), row in zip(
            cases,
            _run_tests([(t, f"{t.prelude}\n\n{t.solution}", tests) for t, tests in cases], sandbox),
            strict=True,
        )
    ]
    novel = [
        novel_tests(tests, task.public_tests, task.solution or "", task.entry_point)
        for (task, _), tests in zip(cases, valid, strict=True)
    ]
    counted = _killable([task for task, _ in cases], num_mutants, sandbox)
    jobs = [
        (task, source, novel[index])
        for index, (task, _) in enumerate(cases)
        for source in counted[task.task_id]
    ]
    dead = iter(_run_tests(jobs, sandbox))
    shares = []
    for (task, tests), good, own in zip(cases, valid, novel, strict=True):
        rows = [next(dead) for _ in counted[task.task_id]]
        killed = sum(not all(passed for passed, _ in row) for row in rows)
        rate = killed / len(rows) if rows else float(bool(own))
        shares.append((len(good) / len(tests) if tests else 0.0, rate))
    return shares


def _killable(
    tasks: Sequence[CodeTask], num_mutants: int, sandbox: ProgramRunner
) -> dict[str, tuple[str, ...]]:
    """Return for each task the mutants that count."""
    unique = {task.task_id: task for task in tasks}
    pairs = [
        (task, f"{task.prelude}\n\n{source}")
        for task in unique.values()
        for source in mutants(task.solution or "", num_mutants)
    ]
    programs = [_program(task, source, _all_tests(task)) for task, source in pairs]
    outcomes = sandbox.run_many(programs) if programs else []
    found: dict[str, tuple[str, ...]] = {}
    for name, task in unique.items():
        wrong, subtle = [], []
        for (other, source), outcome in zip(pairs, outcomes, strict=True):
            if other.task_id == name and outcome.status != "passed":
                wrong.append(source)
                shown = outcome.tests[: len(task.public_tests)]
                if task.public_tests and all(record.passed for record in shown):
                    subtle.append(source)
        found[name] = tuple(subtle or wrong)
    return found


def _all_tests(task: CodeTask) -> str:
    return "\n".join([task.setup, *task.public_tests, task.hidden_tests])


def _run_tests(
    jobs: Sequence[tuple[CodeTask, str, tuple[str, ...]]], sandbox: ProgramRunner
) -> list[list[tuple[bool, str]]]:
    """Return for each program and its tests whether each test passed, and why not."""
    runnable = [index for index, (_, source, tests) in enumerate(jobs) if source and tests]
    programs = [
        _program(jobs[index][0], jobs[index][1], "\n".join(jobs[index][2])) for index in runnable
    ]
    outcomes = dict(zip(runnable, sandbox.run_many(programs) if programs else [], strict=True))
    return [_verdicts(tests, outcomes.get(index)) for index, (_, _, tests) in enumerate(jobs)]


def _verdicts(tests: Sequence[str], outcome: "Outcome | None") -> list[tuple[bool, str]]:
    records = outcome.tests if outcome is not None else ()
    found = [(record.passed, record.error) for record in records[: len(tests)]]
    return found + [(False, "not reached")] * (len(tests) - len(found))


def _program(task: CodeTask, source: str, tests: str) -> "Program":
    from mlrl_envs.sandbox import Limits, Program

    return Program(
        source=source,
        tests=tests,
        style="asserts",
        entry_points=(task.entry_point, *task.shared_names),
        helpers=task.prelude,
        limits=Limits(wall_seconds=3.0, test_seconds=1.0),
    )
