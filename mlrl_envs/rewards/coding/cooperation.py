"""Dependence of the pass rate on cooperation, measured by running changed programs.

In each changed program one of the two agents cannot have done its work: the helper is replaced, or
the main function gives up its own part. The highest pass rate of these programs counts, so that
neither a helper that is not needed nor a main function that adds nothing earns a reward. Some
programs are not run, because they cannot earn: the main function must use its helper's result
(`mlrl_envs.programs.usage`), no function may only repack its arguments
(`mlrl_envs.programs.repacking`), and no program may inspect its interpreter. A helper that raises
is tried only if the main function could catch the exception, a helper whose result equals
everything only if the main function compares. The two replacements that lower the pass rate most
often run first, the others only if these leave something to earn.

Not detected: a main function that compares its helper's answers with its own copy of the work by
other means than `==` and fails deliberately if they differ; decoding of a complete answer that
looks like work.
"""

import ast
from collections.abc import Callable, Iterator, Sequence

from mlrl_envs.parsing.syntax import parse_module
from mlrl_envs.programs.assembly import FunctionAnswer, replace_function
from mlrl_envs.programs.repacking import only_repacks
from mlrl_envs.programs.usage import looks_inside, usage_of
from mlrl_envs.rewards.coding.runs import FunctionRun, run_sources
from mlrl_envs.tasks import CodeTask
from mlrl_envs.types import ProgramRunner

__all__ = ["drops_without_cooperation"]

# Replacements of the helper `{name}`, which show whether its work is needed.
SILENT = "def {name}(*args, **kwargs):\n    return None"
FIRST = "def {name}(*args, **kwargs):\n    return [*args, *kwargs.values(), None][0]"
RAISES = "def {name}(*args, **kwargs):\n    raise RuntimeError('no helper')"
# Unmasks a main function that has its own copy of the work and only compares results.
AGREES = """
def {name}(*args, **kwargs):
    class Agreeable:
        __hash__ = object.__hash__
        def __eq__(self, other):
            return True
        def __ne__(self, other):
            return False
    return Agreeable()
"""
# Always the first answer of the helper: unmasks a helper that only returns a password.
FROZEN = """
def _without(first):
    answers = []
    def {name}(*args, **kwargs):
        if not answers:
            answers.append(first(*args, **kwargs))
        return answers[0]
    return {name}
{name} = _without({name})
del _without
"""
# The result of main becomes the helper's answer to the call that received all of main's arguments,
# in any container, or otherwise to main's own arguments: unmasks a main function that only passes
# values on. Both functions are kept in a closure, so that the program has no new global names.
HANDS_ON = """
def _without(helper, first):
    given, answers = [], []
    def is_all(values):
        parts = list(values)
        for value in values:
            if isinstance(value, (list, tuple)):
                parts.extend(value)
            elif isinstance(value, dict):
                parts.extend(value.values())
        return all(any(item is part or item == part for part in parts) for item in given)
    def {name}(*args, **kwargs):
        told = bool(given) and is_all([*args, *kwargs.values()])
        answer = helper(*args, **kwargs)
        if told:
            answers.append(answer)
        return answer
    def {main}(*args, **kwargs):
        if given:
            return first(*args, **kwargs)
        given.extend([*args, *kwargs.values()])
        try:
            first(*args, **kwargs)
        except Exception:
            pass
        given.clear()
        answer = answers[0] if answers else helper(*args, **kwargs)
        answers.clear()
        return answer
    return {name}, {main}
{name}, {main} = _without({name}, {main})
del _without
"""
_CATCHING_MODULES = frozenset({"asyncio", "concurrent", "contextlib", "threading", "unittest"})
_COMPARING_NAMES = frozenset({"__eq__", "__ne__", "eq", "ne", "index", "count", "remove"})

Change = Callable[[str, str, str], str | None]


def drops_without_cooperation(
    tasks: Sequence[CodeTask], runs: Sequence[FunctionRun], sandbox: ProgramRunner
) -> list[float]:
    """Return how far each run's earned rate falls without cooperation, averaged over helpers.

    Args:
        tasks: The task of each run.
        runs: Joint actions that were run.
        sandbox: Runs the changed programs in at most two batches.

    Raises:
        InfraError: If the sandbox fails.
    """
    best = {
        (index, name): 0.0
        for index, run in enumerate(runs)
        for name in _helpers_that_may_earn(tasks[index], run)
    }
    for changes in (_first_changes, _later_changes):
        jobs = [
            (key, source)
            for key, rate in best.items()
            if rate < runs[key[0]].earned_rate
            for source in _changed(tasks[key[0]], runs[key[0]], key[1], changes)
        ]
        rates = run_sources([(tasks[key[0]], source) for key, source in jobs], sandbox)
        for (key, _), rate in zip(jobs, rates, strict=True):
            best[key] = max(best[key], rate)
    drops = [0.0] * len(runs)
    for (index, _), rate in best.items():
        num_helpers = len(runs[index].program.answers) - 1
        drops[index] += max(0.0, runs[index].earned_rate - rate) / num_helpers
    return drops


def _helpers_that_may_earn(task: CodeTask, run: FunctionRun) -> list[str]:
    answers = list(run.program.answers.values())
    if run.earned_rate == 0.0 or any(looks_inside(answer) for answer in answers):
        return []
    main = next(answer for answer in answers if answer.name == task.entry_point)
    helpers = [answer for answer in answers if answer is not main]
    if only_repacks(main, {helper.name for helper in helpers}):
        return []
    return [helper.name for helper in helpers if _may_earn(helper, main)]


def _may_earn(helper: FunctionAnswer, main: FunctionAnswer) -> bool:
    return not only_repacks(helper) and usage_of(main, helper.name) == "used"


def _changed(
    task: CodeTask, run: FunctionRun, name: str, changes: Callable[[ast.Module], Iterator[Change]]
) -> list[str]:
    source = run.program.source or ""
    changed = [change(source, task.entry_point, name) for change in changes(parse_module(source))]
    return [program for program in changed if program is not None]


def _first_changes(tree: ast.Module) -> Iterator[Change]:  # noqa: ARG001  common signature
    yield _helper_becomes(SILENT)
    yield _hand_on


def _later_changes(tree: ast.Module) -> Iterator[Change]:
    yield _helper_becomes(FIRST)
    yield _freeze
    if _could_catch(tree):
        yield _helper_becomes(RAISES)
    if _compares(tree):
        yield _helper_becomes(AGREES)


def _helper_becomes(stub: str) -> Change:
    return lambda source, _, name: replace_function(source, name, stub.format(name=name))


def _freeze(source: str, main: str, name: str) -> str | None:  # noqa: ARG001  common signature
    return replace_function(source, name, FROZEN.format(name=name), keep_as=name)


def _hand_on(source: str, main: str, name: str) -> str | None:
    return replace_function(source, main, HANDS_ON.format(main=main, name=name), keep_as=main)


def _could_catch(tree: ast.Module) -> bool:
    # Without these an exception of the helper ends the call of main.
    catching = (ast.Try, ast.With, ast.AsyncWith, getattr(ast, "TryStar", ast.Try))
    imported = {
        name.split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in [getattr(node, "module", None) or "", *(alias.name for alias in node.names)]
    }
    caught = any(isinstance(node, catching) for node in ast.walk(tree))
    return caught or bool(imported & _CATCHING_MODULES)


def _compares(tree: ast.Module) -> bool:
    operators = (ast.Eq, ast.NotEq, ast.In, ast.NotIn)
    return any(
        (isinstance(node, ast.Compare) and any(isinstance(op, operators) for op in node.ops))
        or isinstance(node, ast.Match)
        or (isinstance(node, ast.Attribute) and node.attr in _COMPARING_NAMES)
        or (isinstance(node, ast.Name) and node.id in _COMPARING_NAMES)
        for node in ast.walk(tree)
    )
