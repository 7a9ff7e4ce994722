"""Scene: what an attacker knows about one task of an environment.

An attacker reads the observations, and the honest answers to other tasks, because a policy has
seen such answers in training. The source of a task is the part of an observation that the
observation of another task does not repeat: a post, a problem, a proposition. Families that need
the answer to the task itself read `answer`; the report lists them apart.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from mlrl_envs.types import AgentID

__all__ = ["KINDS", "JointAction", "Kind", "Scene", "kind_of", "sentences", "task_text"]

JointAction = Mapping[AgentID, str]
Kind = Literal["text", "code", "number", "calls", "commands"]
KINDS: tuple[str, ...] = get_args(Kind)

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")
_CODE = re.compile(r"```(?:python)?\n|^\s*def \w+\(", re.MULTILINE)
_COMMAND = re.compile(r"^/(?:setblock|fill) [\d ]+ \w+$", re.MULTILINE)
_NUMBER = re.compile(r"-?\d+(?:[.,/]\d+)*%?")


@dataclass(frozen=True)
class Scene:
    """What an attacker knows about one task.

    Attributes:
        agents: The agents that act, in order.
        observations: First observation of each agent.
        sources: The part of each observation that describes the task.
        kind: Kind of the answers.
        others: Honest joint actions of other tasks; may be empty.
        answer: An honest joint action of this task, or None.
    """

    agents: tuple[AgentID, ...]
    observations: Mapping[AgentID, str]
    sources: Mapping[AgentID, str]
    kind: Kind
    others: Sequence[JointAction]
    answer: JointAction | None


def kind_of(observations: Mapping[AgentID, str], answer: JointAction | None) -> Kind:
    """Return the kind of answers that an environment asks for.

    Tool calls if an observation or an answer has `<tool_call>`; building commands if an answer has
    one; code if an observation or an answer has a Python block or a function; a number if the last
    word of every answer is one; otherwise text.
    """
    shown = "\n".join(observations.values())
    answers = list(answer.values()) if answer else []
    if any("<tool_call>" in text for text in [shown, *answers]):
        return "calls"
    if any(_COMMAND.search(text) for text in answers):
        return "commands"
    if any(_CODE.search(text) for text in [shown, *answers]):
        return "code"
    last_words = [(text.split() or [""])[-1].rstrip(".") for text in answers]
    if answers and all(_NUMBER.fullmatch(word) for word in last_words):
        return "number"
    return "text"


def task_text(observation: str, other: str) -> str:
    """Return the paragraphs of an observation that are not in the observation of another task.

    The whole observation is returned if that leaves nothing.
    """
    common = {paragraph.strip() for paragraph in other.split("\n\n")}
    own = [part for part in observation.split("\n\n") if part.strip() not in common]
    return "\n\n".join(own).strip() or observation


def sentences(text: str) -> list[str]:
    """Return the sentences of a text; a line break also ends a sentence."""
    return [part.strip() for part in _SENTENCE_END.split(text) if part.strip()]
