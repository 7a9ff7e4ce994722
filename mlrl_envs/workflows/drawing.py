"""A graph as JSON values and as text: who writes in which step, and who reads whom."""

from collections.abc import Iterator
from typing import Any

from mlrl_envs.workflows.graph import Graph, Node, Repeat

__all__ = ["describe", "facts_of"]


def facts_of(graph: Graph) -> dict[str, Any]:
    """Return a checked graph as JSON values, for pictures.

    Returns:
        `name`; `nodes`, each with `name`, `agent`, `plays` and `reads`; and `steps`, each with its
        `nodes` and the number of `rounds` of the repetition that it is in.
    """
    nodes = [
        {"name": n.name, "agent": n.agent, "plays": n.plays, "reads": list(n.reads)}
        for n in graph.nodes
    ]
    steps = [{"nodes": list(names), "rounds": rounds} for names, rounds in _steps(graph)]
    return {"name": graph.name, "nodes": nodes, "steps": steps}


def describe(graph: Graph) -> str:
    """Return a checked graph as text, a line for each node of each step."""
    lines = []
    for number, (names, rounds) in enumerate(_steps(graph), start=1):
        head = f"{number}" + (f" (x{rounds})" if rounds > 1 else "")
        for index, name in enumerate(names):
            lines.append(f"{head if index == 0 else '':<8}{_line(graph, graph.node(name))}")
    return "\n".join(lines)


def _line(graph: Graph, node: Node) -> str:
    reads = f" <- {', '.join(node.reads)}" if node.reads else ""
    plays = f" => {node.agent}" if node.plays else ""
    kind = " (vote)" if node.plays and graph.combine == "vote" else ""
    return f"{node.name}{reads}{plays}{kind}"


def _steps(graph: Graph) -> Iterator[tuple[tuple[str, ...], int]]:
    for step in graph.steps:
        if isinstance(step, Repeat):
            yield from ((names, step.times) for names in step.steps)
        else:
            yield step, 1
