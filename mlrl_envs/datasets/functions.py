"""Functions made from a seed: one to three steps, and a result.

The sentences of the prompt, the solution and the expected values come from the same expressions
(`mlrl_envs.datasets.function_steps`). A problem is a pure function of its key (level, split, seed,
number), equal in every process and every version of Python. A hash of its steps decides the split,
so that splits share no problem.

A problem is kept only if its tests decide: the function without any one of its steps fails at least
two of the tests that agents do not see, and no constant passes more than three of these eight.
"""

import operator
from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from mlrl_envs.datasets.draws import Draws
from mlrl_envs.datasets.function_steps import KINDS, RESULTS, STEPS, Kind, Step
from mlrl_envs.datasets.made_splits import SIZES, in_eval, parts_of
from mlrl_envs.datasets.sources import SAMPLE
from mlrl_envs.errors import InvalidDataError
from mlrl_envs.tasks import CodeTask

__all__ = ["LEVELS", "TOPICS", "make_functions"]

LEVELS = (1, 2, 3)
TOPICS = tuple(KINDS)
NUM_EXAMPLES = 2
NUM_UNSEEN = 8
_MOST_CONSTANT = 3  # unseen tests that one value passes
_LEAST_DIFFERENT = 2  # unseen tests that fail without a step
_WORDS = (
    "apple", "area", "arrow", "barn", "bell", "cat", "cello", "deer", "eel", "egg", "engine",
    "fern", "garden", "hat", "house", "ice", "ink", "island", "jar", "kite", "lantern", "leaf",
    "level", "moon", "needle", "noon", "oak", "ocean", "onion", "orange", "pear", "piano", "radar",
    "rain", "river", "sea", "stone", "sun", "tea", "tree", "uncle", "urn", "violet", "window",
)  # fmt: skip

Inputs = Sequence[Any]


@lru_cache(maxsize=16)
def make_functions(
    split: str,
    *,
    seed: int,
    topics: tuple[str, ...] = TOPICS,
    levels: tuple[int, ...] = LEVELS,
    num_tasks: int | None = None,
) -> tuple[CodeTask, ...]:
    """Return functions made from a seed.

    Args:
        split: `"train"` (500), `"eval"` (100), `"all"`, or `"sample"`: nine of seed 0, of every
            topic and level, whatever the other arguments.
        seed: Seed of the functions.
        topics: Kinds of the argument, some of `TOPICS`, used in turn.
        levels: Numbers of steps, some of `LEVELS`, used in turn.
        num_tasks: Number of functions of each part, instead of the numbers above.

    Raises:
        UnknownNameError: If there is no such split.
        InvalidDataError: If there are not as many functions of these topics and levels.
    """
    if split == SAMPLE:
        return tuple(_make_part("eval", SAMPLE, 9, 0, TOPICS, LEVELS))
    return tuple(
        task
        for part in parts_of(split)
        for task in _make_part(part, part, num_tasks or SIZES[part], seed, topics, levels)
    )


def _make_part(
    part: str, name: str, size: int, seed: int, topics: Sequence[str], levels: Sequence[int]
) -> list[CodeTask]:
    kinds = [(topic, level) for level in levels for topic in topics]
    found: dict[str, CodeTask] = {}
    number = 0
    while len(found) < size:
        topic, level = kinds[len(found) % len(kinds)]
        draws = Draws(f"functions/{part}/{seed}/{number}")
        steps = _draw_steps(draws, topic, level)
        content = " ".join(step.sentence for step in steps)
        if content not in found and in_eval(content) == (part == "eval"):
            task = _make(draws, f"functions/{name}/{len(found)}", steps)
            if task is not None:
                found[content] = task
        number += 1
        if number > 40 * size + 5_000:
            raise InvalidDataError(
                f"topics {tuple(topics)} and levels {tuple(levels)} have fewer than {size} "
                f"functions in {part!r}: pass a smaller num_tasks, or more levels"
            )
    return list(found.values())


def _draw_steps(draws: Draws, topic: str, level: int) -> tuple[Step, ...]:
    """Return steps that do different things, none of which undoes another, and a result."""
    kinds = [topic]
    steps: list[Step] = []
    for _ in range(level):
        used = {step.name for step in steps}
        free = [s for s in STEPS if s.kind == kinds[-1] and s.name not in used]
        # A list that was joined to a string is not split again.
        step = draws.pick([s for s in free if s.becomes not in kinds[:-1]])
        steps.append(_with_parameter(draws, step))
        if step.becomes != kinds[-1]:
            kinds.append(step.becomes)
    result = draws.pick([step for step in RESULTS if step.kind == kinds[-1]])
    return (*steps, _with_parameter(draws, result))


def _with_parameter(draws: Draws, step: Step) -> Step:
    return step.with_parameter(draws.pick(step.parameters)) if step.parameters else step


def _make(draws: Draws, task_id: str, steps: Sequence[Step]) -> CodeTask | None:
    """Return a task, or None if its tests do not decide."""
    shown = [_draw_input(draws, steps[0].kind) for _ in range(NUM_EXAMPLES)]
    empty = "" if steps[0].kind == "text" else []
    unseen = [empty, *(_draw_input(draws, steps[0].kind) for _ in range(NUM_UNSEEN - 1))]
    if not _decide(steps, shown, unseen):
        return None
    name = "_".join(step.name for step in steps)
    examples, tests = (
        [(f"{name}({value!r})", repr(_run(steps, value))) for value in values]
        for values in (shown, [*shown, *unseen])
    )
    return CodeTask(
        task_id=task_id,
        prompt=_prompt(name, steps, examples),
        entry_point=name,
        prelude="",
        helper_names=(),
        public_tests=tuple(f"assert {call} == {value}" for call, value in examples),
        hidden_tests="\n".join(f"assert {call} == {value}" for call, value in tests),
        num_hidden_tests=len(tests),
        solution=_solution(name, steps),
    )


def _decide(steps: Sequence[Step], shown: Inputs, unseen: Inputs) -> bool:
    """Return whether tests tell a function from constants, and from itself without a step."""
    expected = [_run(steps, value) for value in unseen]
    first, second = (_run(steps, value) for value in shown)
    [(_, most)] = Counter(map(repr, expected)).most_common(1)
    if most > _MOST_CONSTANT or first == second:
        return False
    for index, step in enumerate(steps[:-1]):
        if step.kind == step.becomes:
            fewer = [_run([*steps[:index], *steps[index + 1 :]], value) for value in unseen]
            if sum(map(operator.ne, fewer, expected)) < _LEAST_DIFFERENT:
                return False
    return True


def _run(steps: Sequence[Step], value: object) -> object:
    for step in steps:
        value = _function_of(step.code)(value)
    return value


@lru_cache(maxsize=1024)
def _function_of(code: str) -> Callable[[Any], Any]:
    # Evaluates expressions of this package only.
    function: Callable[[Any], Any] = eval(f"lambda value: {code.replace('{x}', 'value')}")  # noqa: S307
    return function


def _draw_input(draws: Draws, topic: str) -> object:
    if topic == "text":
        return " ".join(draws.pick(_WORDS) for _ in range(draws.integer(2, 5)))
    values: list[object] = []
    for _ in range(draws.integer(4, 9)):
        is_repeated = bool(values) and draws.integer(0, 3) == 0
        values.append(draws.pick(values) if is_repeated else _draw_value(draws, topic))
    return values


def _draw_value(draws: Draws, topic: str) -> object:
    return draws.integer(-12, 20) if topic == "numbers" else draws.pick(_WORDS)


def _prompt(name: str, steps: Sequence[Step], examples: Sequence[tuple[str, str]]) -> str:
    kind = KINDS[steps[0].kind]
    numbered = [f"    {n}. {step.sentence}." for n, step in enumerate(steps[:-1], start=1)]
    lines = [
        f"{_signature(name, kind, steps[-1])}",
        f'    """Take `{kind.variable}`, {kind.description}.',
        "",
        *numbered,
        "",
        f"    {steps[-1].sentence}.",
        "",
        *(line for call, value in examples for line in (f"    >>> {call}", f"    {value}")),
        '    """',
    ]
    return "\n".join(lines) + "\n"


def _signature(name: str, kind: Kind, result: Step) -> str:
    return f"def {name}({kind.variable}: {kind.annotation}) -> {result.becomes}:"


def _solution(name: str, steps: Sequence[Step]) -> str:
    lines = [_signature(name, KINDS[steps[0].kind], steps[-1])]
    for step in steps[:-1]:
        code = step.code.replace("{x}", KINDS[step.kind].variable)
        lines.append(f"    {KINDS[step.becomes].variable} = {code}")
    code = steps[-1].code.replace("{x}", KINDS[steps[-1].kind].variable)
    return "\n".join([*lines, f"    return {code}"])
