"""Dependence of the pass rate on cooperation, measured by running changed programs.

Contrast decides: each changed program lacks the work of one agent. The helper is replaced by a
trivial one (None, the first argument, the list of the arguments), or its answer is withheld unless
it merely holds the arguments, or is a short constant. Main is paid only for results that it finds
in the helper's answer, or that wrong answers of the helper would not change, or would all change
to one and the same value, as a password does. The highest pass rate of these programs, without the
tests that a constant passes, is what the team can do without cooperation. A drop of 0.3 is paid in
full, so that tests that pass by chance do not punish honest work.

If only the first argument serves as well, the helper works and is read, but main repeats its work,
as agents who do not see each other do: at most 0.35 of the component is paid. A program that
inspects its interpreter, ends its process or waits earns nothing, because it could find out which
helper it runs with. The unchanged program runs again in half of the time that changed ones have, so
that a slow one does not earn because they run out of it.

Not detected: a main function that repeats its helper's work, and answers in different ways if the
helper's answer is wrong; a complete answer in an encoding that takes work to undo. Not paid: a
main function whose wrong results are all the same, such as a search that a wrong position only
makes fail.
"""

from collections.abc import Sequence

from mlrl_envs.programs.inspection import inspects
from mlrl_envs.programs.replacements import REPLACEMENTS, replace
from mlrl_envs.rewards.coding.runs import AGAIN, HURRIED, FunctionRun, run_sources
from mlrl_envs.tasks import CodeTask
from mlrl_envs.types import ProgramRunner

__all__ = ["cooperation_of"]

FULL_DROP = 0.3
SPARE = 0.35
# The replacements that most often pass run first, the others only if something is left to earn.
FIRST = ("none", "list", "hands_on")
UNCHANGED = "unchanged"
STAGES = (FIRST, (*(name for name in REPLACEMENTS if name not in FIRST), UNCHANGED))


def cooperation_of(
    tasks: Sequence[CodeTask], runs: Sequence[FunctionRun], sandbox: ProgramRunner
) -> list[float]:
    """Return the cooperation of each run, 0 to 1, averaged over its helpers.

    Args:
        tasks: The task of each run.
        runs: Joint actions that were run.
        sandbox: Runs the changed programs in at most two batches.

    Raises:
        InfraError: If the sandbox fails.
    """
    rates: dict[tuple[int, str], dict[str, float]] = {
        (index, helper): {}
        for index, run in enumerate(runs)
        for helper in _helpers(tasks[index], run)
    }
    for stage in STAGES:
        jobs = [
            (key, name, source)
            for key, known in rates.items()
            if max(known.values(), default=0.0) < 1.0
            for name in stage
            if (source := _changed(tasks[key[0]], runs[key[0]], key[1], name)) is not None
        ]
        sources = [
            (tasks[key[0]], source, HURRIED if name == UNCHANGED else AGAIN)
            for key, name, source in jobs
        ]
        counts = run_sources(sources, sandbox)
        for (key, name, _), (_, passed) in zip(jobs, counts, strict=True):
            rates[key][name] = runs[key[0]].relative(passed)
    earned = [0.0] * len(runs)
    for (index, _), known in rates.items():
        num_helpers = len(runs[index].program.answers) - 1
        earned[index] += _share(known) / num_helpers
    return earned


def _helpers(task: CodeTask, run: FunctionRun) -> list[str]:
    """Return the helpers that may earn something."""
    if run.earned_rate == 0.0 or inspects(run.program.source or ""):
        return []
    answers = run.program.answers.values()
    return [a.name for a in answers if a.name != task.entry_point and a.function is not None]


def _changed(task: CodeTask, run: FunctionRun, helper: str, name: str) -> str | None:
    source = run.program.source or ""
    return source if name == UNCHANGED else replace(source, task.entry_point, helper, name)


def _share(rates: dict[str, float]) -> float:
    """Return the share that is paid, given the relative pass rates of the programs."""
    whole = rates.get(UNCHANGED, 1.0)
    if whole <= 0.0:  # too slow to be compared
        return 0.0
    rates = {name: min(rate / whole, 1.0) for name, rate in rates.items() if name != UNCHANGED}
    # Most predicates are true of most inputs, without being constant.
    needed = {name: rate for name, rate in rates.items() if name != "constant" or rate == 1.0}
    used = {name: rate for name, rate in needed.items() if name != "first"}
    return max(_paid(needed), SPARE * _paid(used))


def _paid(rates: dict[str, float]) -> float:
    return min(1.0, max(0.0, 1.0 - max(rates.values())) / FULL_DROP)
