"""Rewards of functions written by helpers and a main agent: `paper`, `attempts` and `grounded`.

Paper (at most 4.0; 2.1 with one agent): helper defined with a return 0.4; entry point defined with
a return 0.6, otherwise stop; the program and each answer parse 0.5, otherwise stop; tests k/n;
then, if a test passes and there is a helper: main calls it 0.5 and is more than a thin wrapper 1.0,
its result is ignored -0.5. With several helpers each of these terms is their mean.

Attempts, the formula of a published single-agent coder, summed over turns: k/n, +1 if all tests
pass, -0.5 if there is an error: a missing function, a program that does not load, an exception or a
crash in a test. A wrong result is not an error.

Grounded, in [0, 1]: 0.1 format + 0.3 tests + 0.6 tests x cooperation (0.1 + 0.9 tests with one
agent). Format is paid if every agent's function is defined and the program loads. Tests is
(k - k0) / (n - k0) over the assertions that agents were not shown, of which the best constant
passes k0. Cooperation, 0 to 1, is measured by the drop of the pass rate in programs that lack the
work of one agent; see `mlrl_envs.rewards.coding.cooperation`, and `mlrl_envs.rewards.turn_gain` for
several turns. Work that is correct but not divided earns 0.4.
"""

from collections.abc import Mapping, Sequence

from mlrl_envs.parsing.text import returns_value
from mlrl_envs.programs.assembly import FunctionAnswer
from mlrl_envs.programs.usage import usage_of
from mlrl_envs.rewards.coding.cooperation import cooperation_of
from mlrl_envs.rewards.coding.function_checks import code_checks
from mlrl_envs.rewards.coding.runs import FunctionRun, run_all, subtract_constants
from mlrl_envs.rewards.turn_gain import pay_gain
from mlrl_envs.tasks import CodeTask
from mlrl_envs.types import AgentID, Attempt, Json, ProgramRunner, Score

__all__ = ["score_attempts", "score_grounded", "score_paper"]

FORMAT, TESTS, COOPERATION = 0.1, 0.3, 0.6


def score_grounded(
    attempts: Sequence[Attempt[CodeTask]],
    functions: Sequence[Mapping[AgentID, str]],
    sandbox: ProgramRunner,
) -> list[Score]:
    """Score attempts by the grounded formula.

    Args:
        attempts: The attempts.
        functions: For each attempt, the function that each agent owns, helpers first.
        sandbox: Runs the programs, and changed programs for those that may earn cooperation.

    Raises:
        InfraError: If the sandbox fails.
    """
    tasks = [attempt.task for attempt in attempts]
    runs = subtract_constants(tasks, run_all(attempts, functions, sandbox), sandbox)
    shares = cooperation_of(tasks, runs, sandbox)
    return [
        _grounded(attempt, run, share)
        for attempt, run, share in zip(attempts, runs, shares, strict=True)
    ]


def score_paper(
    attempts: Sequence[Attempt[CodeTask]],
    functions: Sequence[Mapping[AgentID, str]],
    sandbox: ProgramRunner,
) -> list[Score]:
    """Score attempts by the published formula; see `score_grounded` for arguments."""
    runs = run_all(attempts, functions, sandbox)
    return [
        _score(attempt, run, dict.fromkeys(run.program.answers, _paper(attempt.task, run)))
        for attempt, run in zip(attempts, runs, strict=True)
    ]


def score_attempts(
    attempts: Sequence[Attempt[CodeTask]],
    functions: Sequence[Mapping[AgentID, str]],
    sandbox: ProgramRunner,
) -> list[Score]:
    """Score attempts by the single-agent formula; see `score_grounded` for arguments."""
    runs = run_all(attempts, functions, sandbox)
    return [
        _score(attempt, run, dict.fromkeys(run.program.answers, _attempts(run)))
        for attempt, run in zip(attempts, runs, strict=True)
    ]


def _grounded(attempt: Attempt[CodeTask], run: FunctionRun, cooperation: float) -> Score:
    answers = run.program.answers
    complete = run.loaded and all(answer.function is not None for answer in answers.values())
    if len(answers) == 1:
        parts = {"format": FORMAT * complete, "tests": (TESTS + COOPERATION) * run.earned_rate}
    else:
        parts = {
            "format": FORMAT * complete,
            "tests": TESTS * run.earned_rate,
            "cooperation": COOPERATION * run.earned_rate * cooperation,
        }
    paid = {agent: pay_gain(parts, attempt.turns, agent) for agent in answers}
    return _score(attempt, run, paid)


def _attempts(run: FunctionRun) -> dict[str, float]:
    return {"tests": run.rate, "all_passed": 1.0 * run.solved, "error": -0.5 * run.erred}


def _paper(task: CodeTask, run: FunctionRun) -> dict[str, float]:
    main, helpers = _main(task, run), _helpers(task, run)
    share = 1.0 / max(len(helpers), 1)
    parts = {"aux": 0.4 * share * sum(_is_defined(helper) for helper in helpers)} if helpers else {}
    parts |= {"main": 0.6 * _is_defined(main), "syntax": 0.0, "tests": 0.0}
    goes_on = _is_defined(main) and _parses(run)
    if goes_on:
        parts |= {"syntax": 0.5, "tests": run.rate}
    if not helpers:
        return parts
    usages = [usage_of(main, h.name) for h in helpers if h.function is not None]
    if run.rate == 0.0 or not goes_on:
        usages = []
    called = sum(usage != "uncalled" for usage in usages)
    return parts | {
        "calls_aux": 0.5 * share * called,
        "not_a_wrapper": 1.0 * share * (called - usages.count("wrapped")),
        "ignores_aux": -0.5 * share * usages.count("ignored"),
    }


def _score(
    attempt: Attempt[CodeTask], run: FunctionRun, components: Mapping[AgentID, Mapping[str, float]]
) -> Score:
    diagnostics: dict[AgentID, dict[str, Json]] = {
        agent: code_checks(
            attempt.task, run.program, agent, public=run.public, solved=run.solved, error=run.error
        )
        for agent in run.program.answers
    }
    return Score(components, run.solved, diagnostics)


def _is_defined(answer: FunctionAnswer) -> bool:
    return answer.function is not None and returns_value(answer.function)


def _parses(run: FunctionRun) -> bool:
    broken = any(answer.error for answer in run.program.answers.values())
    return run.program.source is not None and not broken


def _main(task: CodeTask, run: FunctionRun) -> FunctionAnswer:
    return next(a for a in run.program.answers.values() if a.name == task.entry_point)


def _helpers(task: CodeTask, run: FunctionRun) -> list[FunctionAnswer]:
    return [a for a in run.program.answers.values() if a.name != task.entry_point]
