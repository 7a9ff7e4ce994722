"""Parts of generated tool tasks: briefs, documents, evidence and numbers as text."""

import json

from mlrl_envs.datasets.tool_world import World
from mlrl_envs.tasks import Document, ToolEvidence, ToolTask

__all__ = ["SIMILAR", "archive_task", "computed", "document", "plain", "programmed"]

RESEARCHED = 3  # lookups that `researcher` makes in the reference
SIMILAR = 7  # documents or groups of the same form about other things


def plain(value: float) -> str:
    """Format a number as in an answer: without an exponent and trailing zeros."""
    return f"{value:.6f}".rstrip("0").rstrip(".")


def document(code: str, noun: str, text: str) -> Document:
    """Return a document about a thing with a code or a name."""
    return Document(code.lower(), f"{noun} {code}", text)


def computed(expression: str, needs: tuple[float, ...], answer: str) -> ToolEvidence:
    """Return the evidence of a number that the reference computes with the calculator."""
    parameters = json.dumps({"expression": expression})
    return ToolEvidence("solver", "calculator", parameters, tuple(map(plain, needs)), answer)


def programmed(code: str, needs: tuple[float, ...], answer: str) -> ToolEvidence:
    """Return the evidence of a number that the reference computes with Python."""
    parameters = json.dumps({"code": code})
    return ToolEvidence("solver", "python", parameters, tuple(map(plain, needs)), answer)


def archive_task(
    world: World,
    question: str,
    briefs: tuple[str, str],
    documents: tuple[list[Document], list[Document]],
    answer: str,
    *,
    result: ToolEvidence | None = None,
    rivals: tuple[str, ...] = (),
) -> ToolTask:
    """Return a task whose information is in an archive.

    Args:
        world: Draws the order of the documents.
        question: The question.
        briefs: What `researcher` and `solver` are told.
        documents: The documents that are needed, and others of the same form.
        answer: The answer.
        result: The evidence of a computed answer.
        rivals: Other names that an answer must not contain.
    """
    needed, others = documents
    by_id = {one.id: one for one in (*needed, *others)}
    found = [
        ToolEvidence(
            "researcher" if place < RESEARCHED else "solver",
            "search",
            json.dumps({"query": one.title}),
            (),
            one.id,
        )
        for place, one in enumerate(needed)
    ]
    return ToolTask(
        "",
        question,
        (("researcher", briefs[0]), ("solver", briefs[1])),
        evidence=(*found, *((result,) if result else ())),
        answer=answer,
        documents=tuple(by_id[key] for key in world.shuffled(list(by_id))),
        rivals=rivals,
    )
