"""Next nodes of a workflow, and the answers that are played, as functions of past answers."""

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from mlrl_envs.types import AgentID
from mlrl_envs.workflows.graph import Graph, Node

__all__ = ["Progress", "choose", "follow", "verdict_of"]

_VERDICT = re.compile(r"^verdict\b[\W_]*")
_EDGES = re.compile(r"^[\W_]+|[\W_]+$")


@dataclass(frozen=True, slots=True)
class Progress:
    """A workflow after some steps of one turn of the environment.

    Attributes:
        asked: Nodes that write next; () when the turn can be played.
        answers: Last answer of each node that has written in this turn.
        steps: Nodes that wrote, step by step.
    """

    asked: tuple[str, ...]
    answers: Mapping[str, str]
    steps: tuple[tuple[str, ...], ...]


def follow(
    graph: Graph, acting: Collection[AgentID], written: Sequence[Mapping[str, str]]
) -> Progress:
    """Return where a workflow is.

    Args:
        graph: A checked graph.
        acting: Agents that the environment asks in this turn; nodes of others do not write.
        written: What was written in each step so far, by node.
    """
    answers: dict[str, str] = {}
    done: list[tuple[str, ...]] = []
    for step in graph.unrolled():
        asked = tuple(
            name
            for name in step
            if graph.node(name).agent in acting and _writes(graph.node(name), answers)
        )
        if not asked:
            continue
        if len(done) == len(written):
            return Progress(asked, answers, tuple(done))
        answers.update(written[len(done)])
        done.append(asked)
    return Progress((), answers, tuple(done))


def choose(graph: Graph, agent: AgentID, progress: Progress) -> tuple[str, str]:
    """Return the node whose answer is played for an agent, and the answer."""
    for step in reversed(progress.steps):
        players = [
            name for name in step if graph.node(name).agent == agent and graph.node(name).plays
        ]
        if players:
            name = players[0]
            if graph.combine == "vote":
                name = _elected(players, progress.answers)
            return name, progress.answers[name]
    return "", ""


def verdict_of(text: str) -> str:
    """Return the last line that holds a letter or digit, in lower case, without marks around it.

    A leading `Verdict:` is removed, so that `**Verdict: APPROVED.**` is the verdict `approved`.
    """
    for line in reversed(text.splitlines()):
        said = _EDGES.sub("", line).casefold()
        if said:
            return _VERDICT.sub("", said) or said
    return ""


def _writes(node: Node, answers: Mapping[str, str]) -> bool:
    """Return whether the conditions of a node hold."""
    if any(_says(answers, *condition) for condition in node.unless):
        return False
    return all(_says(answers, *condition) for condition in node.when)


def _says(answers: Mapping[str, str], name: str, verdict: str) -> bool:
    return name in answers and verdict_of(answers[name]) == verdict_of(verdict)


def _elected(names: Sequence[str], answers: Mapping[str, str]) -> str:
    """Return the first node with the most frequent verdict."""
    votes = [verdict_of(answers[name]) for name in names]
    counts = Counter(votes)
    return names[max(range(len(votes)), key=lambda i: (counts[votes[i]], -i))]
