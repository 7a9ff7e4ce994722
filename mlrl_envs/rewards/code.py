"""Scores of the coding families: the published levels, and a grounded reward in [0, 1].

Paper (maximum 4.0; 2.1 with one agent): helper defined with a return 0.4; entry point defined with
a return 0.6, else stop; the program parses 0.5, else stop; tests k/n; then, if a test passes and
there is a helper: main calls it 0.5 and is more than a thin wrapper 1.0, its result is ignored
-0.5. With several helpers each of these terms is their mean.

Grounded: 0.1 format + 0.7 k/n + 0.2 cooperation (0.1 + 0.9 k/n with one agent). Format is paid
when every agent's function is there and the program loads. Cooperation = k/n times the drop of
k/n in programs where one of the two cannot have done its work: four replacements of the helper, and
a main that only passes the helper's answer on. The best of these programs counts, so a helper that
is not needed earns nothing, nor does a main that adds nothing. See `mlrl_envs.rewards.shaping`
for several turns.

k of n counts the data set's own assertions, each time one runs; examples of the docstring are run
first in the same program, for feedback only. What is not covered: a main that checks a helper's
answers against its own copy of the computation, and fails on purpose if they differ.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mlrl_envs.assembly import Answer, JointProgram, assemble, replace_function
from mlrl_envs.parsing import returns_value
from mlrl_envs.rewards.code_checks import PublicResult, code_checks
from mlrl_envs.rewards.shaping import pay_gain
from mlrl_envs.tasks import CodeTask
from mlrl_envs.types import AgentID, Attempt, Json, ProgramRunner, Score
from mlrl_envs.usage import is_trivial, usage_of

if TYPE_CHECKING:
    from mlrl_envs.sandbox import Outcome, Program

__all__ = ["Run", "score_grounded", "score_paper"]

FORMAT, TESTS, COOPERATION = 0.1, 0.7, 0.2

# What a helper is replaced by to see whether its work was needed. `{name}` is the helper.
STUBS = (
    "def {name}(*args, **kwargs):\n    raise RuntimeError('no helper')",
    "def {name}(*args, **kwargs):\n    return None",
    "def {name}(*args, **kwargs):\n    return [*args, *kwargs.values(), None][0]",
)
# The helper's first answer for ever: a helper that only hands out a pass word earns nothing.
FROZEN = """
def {name}(*args, _answers=[], **kwargs):
    if not _answers:
        _answers.append(_first_{name}(*args, **kwargs))
    return _answers[0]
"""
# A main that adds nothing: both functions take the same parameters.
HAND_ON = "def {main}(*args, **kwargs):\n    return {name}(*args, **kwargs)"


@dataclass(frozen=True)
class Run:
    """A joint action, assembled and run.

    Attributes:
        program: What was assembled.
        loaded: Whether the sandbox could load it.
        rate: Share of hidden assertions that passed, k/n.
        solved: Whether all of them passed.
        public: The public tests that were run.
        error: Why it does not parse or load; empty if it does.
    """

    program: JointProgram
    loaded: bool = False
    rate: float = 0.0
    solved: bool = False
    public: tuple[PublicResult, ...] = ()
    error: str = ""


def score_grounded(
    attempts: Sequence[Attempt[CodeTask]],
    functions: Sequence[Mapping[AgentID, str]],
    sandbox: ProgramRunner,
) -> list[Score]:
    """Score attempts by the grounded formula.

    Args:
        attempts: What was played.
        functions: For each attempt, the function each agent owns, helpers first.
        sandbox: Runs the programs: once for all, and once more for all that may earn cooperation.
    """
    runs = _run_all(attempts, functions, sandbox)
    drops = _drops(attempts, runs, sandbox)
    return [
        _grounded(attempt, run, drop)
        for attempt, run, drop in zip(attempts, runs, drops, strict=True)
    ]


def score_paper(
    attempts: Sequence[Attempt[CodeTask]],
    functions: Sequence[Mapping[AgentID, str]],
    sandbox: ProgramRunner,
) -> list[Score]:
    """Score attempts by the published formula; arguments as in `score_grounded`."""
    runs = _run_all(attempts, functions, sandbox)
    return [
        _score(attempt, run, dict.fromkeys(run.program.answers, _paper(attempt.task, run)))
        for attempt, run in zip(attempts, runs, strict=True)
    ]


def _run_all(
    attempts: Sequence[Attempt[CodeTask]],
    functions: Sequence[Mapping[AgentID, str]],
    sandbox: ProgramRunner,
) -> list[Run]:
    programs = [
        assemble(attempt.task, names, attempt.actions)
        for attempt, names in zip(attempts, functions, strict=True)
    ]
    runnable = [index for index, program in enumerate(programs) if program.source is not None]
    sources = [(attempts[index].task, programs[index].source or "") for index in runnable]
    outcomes = sandbox.run_many([_to_run(*source) for source in sources]) if sources else []
    runs = [Run(program, error=program.error) for program in programs]
    for index, outcome in zip(runnable, outcomes, strict=True):
        runs[index] = _read_outcome(attempts[index].task, programs[index], outcome)
    return runs


def _to_run(task: CodeTask, source: str) -> "Program":
    from mlrl_envs.sandbox import Program

    tests = "\n".join([*task.public_tests, task.hidden_tests, f"check({task.entry_point})"])
    return Program(
        source=source,
        tests=tests,
        style="asserts",
        entry_points=(task.entry_point,),
        helpers=task.prelude,
    )


def _read_outcome(task: CodeTask, program: JointProgram, outcome: "Outcome") -> Run:
    num_public = len(task.public_tests)
    public = tuple(
        PublicResult(source, record.passed, record.error)
        for source, record in zip(task.public_tests, outcome.tests, strict=False)
    )
    hidden = outcome.tests[num_public:]
    passed = sum(record.passed for record in hidden)
    # A program that dies inside a loop of assertions leaves fewer records than a right one.
    total = max(len(hidden), task.num_hidden_tests, 1)
    return Run(
        program,
        loaded=_has_loaded(outcome),
        rate=passed / total,
        solved=passed == total,
        public=public,
        # How a hidden test ended is nobody's business, so errors of later phases stay here.
        error="" if _has_loaded(outcome) else outcome.error,
    )


def _has_loaded(outcome: "Outcome") -> bool:
    reached = any(not record.error.startswith("not reached") for record in outcome.tests)
    return reached and outcome.status != "load_error"


def _drops(
    attempts: Sequence[Attempt[CodeTask]], runs: Sequence[Run], sandbox: ProgramRunner
) -> list[float]:
    """Return how far each run's pass rate falls without cooperation, averaged over helpers."""
    jobs = [
        (index, name, source)
        for index, run in enumerate(runs)
        for name in _helpers_that_may_earn(attempts[index].task, run)
        for source in _without_cooperation(attempts[index].task, run.program.source or "", name)
    ]
    programs = [_to_run(attempts[index].task, source) for index, _, source in jobs]
    outcomes = sandbox.run_many(programs) if programs else []
    best: dict[tuple[int, str], float] = {}
    for (index, name, _), outcome in zip(jobs, outcomes, strict=True):
        rate = _read_outcome(attempts[index].task, runs[index].program, outcome).rate
        best[index, name] = max(rate, best.get((index, name), 0.0))
    drops = [0.0] * len(runs)
    for (index, _), rate in best.items():
        num_helpers = len(runs[index].program.answers) - 1
        drops[index] += max(0.0, runs[index].rate - rate) / num_helpers
    return drops


def _helpers_that_may_earn(task: CodeTask, run: Run) -> list[str]:
    if run.rate == 0.0:
        return []
    main = _main(task, run)
    return [
        helper.name
        for helper in _helpers(task, run)
        if not is_trivial(helper.function) and usage_of(main, helper.name) == "used"
    ]


def _without_cooperation(task: CodeTask, source: str, name: str) -> list[str]:
    main, frozen = task.entry_point, FROZEN.format(name=name)
    programs = [
        *(replace_function(source, name, stub.format(name=name)) for stub in STUBS),
        replace_function(source, name, frozen, keep_as=f"_first_{name}"),
        replace_function(source, main, HAND_ON.format(main=main, name=name)),
    ]
    return [program for program in programs if program is not None]


def _grounded(attempt: Attempt[CodeTask], run: Run, drop: float) -> Score:
    answers = run.program.answers
    complete = run.loaded and all(answer.function is not None for answer in answers.values())
    if len(answers) == 1:
        parts = {"format": FORMAT * complete, "tests": (TESTS + COOPERATION) * run.rate}
    else:
        parts = {
            "format": FORMAT * complete,
            "tests": TESTS * run.rate,
            "cooperation": COOPERATION * run.rate * drop,
        }
    paid = {agent: pay_gain(parts, attempt.turns, agent) for agent in answers}
    return _score(attempt, run, paid)


def _paper(task: CodeTask, run: Run) -> dict[str, float]:
    main, helpers = _main(task, run), _helpers(task, run)
    share = 1.0 / max(len(helpers), 1)
    parts = {"aux": 0.4 * share * sum(_is_defined(helper) for helper in helpers)} if helpers else {}
    parts |= {"main": 0.6 * _is_defined(main), "syntax": 0.0, "tests": 0.0}
    if _is_defined(main) and run.program.source is not None:
        parts |= {"syntax": 0.5, "tests": run.rate}
    if not helpers:
        return parts
    usages = [usage_of(main, h.name) for h in helpers if h.function is not None]
    if run.rate == 0.0 or not _is_defined(main):
        usages = []
    called = sum(usage != "uncalled" for usage in usages)
    return parts | {
        "calls_aux": 0.5 * share * called,
        "not_a_wrapper": 1.0 * share * (called - usages.count("wrapped")),
        "ignores_aux": -0.5 * share * usages.count("ignored"),
    }


def _score(
    attempt: Attempt[CodeTask], run: Run, components: Mapping[AgentID, Mapping[str, float]]
) -> Score:
    diagnostics: dict[AgentID, dict[str, Json]] = {
        agent: code_checks(
            attempt.task, run.program, agent, public=run.public, solved=run.solved, error=run.error
        )
        for agent in run.program.answers
    }
    return Score(components, run.solved, diagnostics)


def _is_defined(answer: Answer) -> bool:
    return answer.function is not None and returns_value(answer.function)


def _main(task: CodeTask, run: Run) -> Answer:
    return next(a for a in run.program.answers.values() if a.name == task.entry_point)


def _helpers(task: CodeTask, run: Run) -> list[Answer]:
    return [a for a in run.program.answers.values() if a.name != task.entry_point]
