"""Scripts of a coder and a tester of functions made from a seed, with or without mistakes.

`thorough` writes the right function, and right assertions on short lists. `careless` leaves the
first step of the function out, in the code and in the results that the assertions expect.
"""

import random
import re
from collections.abc import Callable, Mapping
from typing import Any

from mlrl_envs.tasks import CodeTask

__all__ = ["TESTER_SCRIPTS"]

NUM_TESTS, LARGEST = 3, 9
FIRST_STEP = re.compile(r"(def .*:\n)    .*\n")


def _thorough(env: Any, seed: int) -> dict[str, str]:  # noqa: ANN401
    return _answer(env, str(env.task.solution), seed)


def _careless(env: Any, seed: int) -> dict[str, str]:  # noqa: ANN401
    return _answer(env, FIRST_STEP.sub(r"\1", str(env.task.solution), count=1), seed)


def _answer(env: Any, code: str, seed: int) -> dict[str, str]:  # noqa: ANN401
    """Return the code, or assertions that expect its results."""
    (agent,) = env.acting
    text = code if agent == "coder" else _assertions(env.task, code, seed)
    return {agent: f"```python\n{text}\n```"}


def _assertions(task: CodeTask, code: str, seed: int) -> str:
    """Return assertions on lists of one to three numbers that a function passes."""
    functions: dict[str, Any] = {}
    exec(code, functions)  # noqa: S102 - made by the environment
    draw, name = random.Random(seed), task.entry_point  # noqa: S311 - reproducible on purpose
    inputs = [[draw.randint(0, LARGEST) for _ in range(size + 1)] for size in range(NUM_TESTS)]
    return "\n".join(f"assert {name}({each}) == {functions[name](each)!r}" for each in inputs)


TESTER_SCRIPTS: Mapping[str, Callable[[Any, int], dict[str, str]]] = {
    "thorough": _thorough,
    "careless": _careless,
}
"""Scripts that return the answer of the agent that acts, from an environment and a seed."""
