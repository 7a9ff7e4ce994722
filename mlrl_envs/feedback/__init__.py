"""Feedback modes: the text in the next observation about the last answer.

A mode is a pure function of the task, the turns so far and the agent. It reads the diagnostics of
the scores, `Score.diagnostics[agent]["checks"]`, which contain public facts only; it runs no
programs and asks no model. To add a mode, write a module and list its function in `FEEDBACK_MODES`.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache

from mlrl_envs.config import import_object
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
    """Return the feedback mode of that name, or the function that `"module:function"` names.

    Raises:
        UnknownNameError: If no mode has that name.
        InvalidArgumentError: If the function cannot be imported or is not callable.
    """
    if mode in FEEDBACK_MODES:
        return FEEDBACK_MODES[mode]
    if ":" not in mode:
        raise unknown_name("feedback mode", mode, [*FEEDBACK_MODES, "module:function"])
    try:
        function = import_object(mode)
    except (ImportError, AttributeError, ValueError) as error:
        raise InvalidArgumentError(f"feedback {mode!r} cannot be imported: {error}") from error
    if not callable(function):
        raise InvalidArgumentError(f"feedback {mode!r} is not a function")
    return function  # type: ignore[no-any-return]  # the signature is known only when it is called
