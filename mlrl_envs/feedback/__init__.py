"""What the next observation says about the last answer: pure functions of the turns so far.

Modes read the same structured outcome, `Score.diagnostics[agent]["checks"]`: a list of
`{"name", "passed", "status", "details"}`, public facts only; `expert_edits` reads what an expert
said of them. No mode runs anything, and nothing hidden can leak, because nothing hidden is in a
diagnostic.
"""

import importlib
from collections.abc import Callable, Sequence
from functools import lru_cache

from mlrl_envs.errors import InvalidArgumentError, unknown_name
from mlrl_envs.feedback import diagnostics, expert_edits, level_passed, passed, plain
from mlrl_envs.types import AgentID, Task, Turn

__all__ = ["FEEDBACK_MODES", "Feedback", "get_feedback"]

Feedback = Callable[[Task, Sequence[Turn], AgentID], str]

FEEDBACK_MODES: dict[str, Feedback] = {
    "plain": plain.feedback,
    "passed": passed.feedback,
    "level_passed": level_passed.feedback,
    "diagnostics": diagnostics.feedback,
    "expert_edits": expert_edits.feedback,
}


@lru_cache(maxsize=64)
def get_feedback(mode: str) -> Feedback:
    """Return a feedback mode by name, or a user's own by `"module:function"`.

    Raises:
        UnknownNameError: If no mode has that name.
        InvalidArgumentError: If the module or function cannot be imported.
    """
    if mode in FEEDBACK_MODES:
        return FEEDBACK_MODES[mode]
    if ":" not in mode:
        raise unknown_name("feedback mode", mode, [*FEEDBACK_MODES, "module:function"])
    module_name, _, function_name = mode.partition(":")
    try:
        function = getattr(importlib.import_module(module_name), function_name)
    except (ImportError, AttributeError, ValueError) as error:
        raise InvalidArgumentError(f"feedback {mode!r} cannot be imported: {error}") from error
    if not callable(function):
        raise InvalidArgumentError(f"feedback {mode!r} is not a function")
    return function  # type: ignore[no-any-return]  # a user's own; checked to be callable
