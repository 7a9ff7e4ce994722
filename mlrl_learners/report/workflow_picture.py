"""Picture of a workflow as SVG: nodes by step, who reads whom, and who plays which agent.

A workflow is a JSON value of `mlrl_envs.workflows.facts_of`; in the diagnostics of a turn it also
has `wrote`, the nodes of each step, and `played`, the node of each agent. Content of episode files
is not trusted: anything else has no picture.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mlrl_learners.report.html import Html, tag, without_overrides

__all__ = ["workflow_picture"]

MAX_NODES = 64
_BOX = (124, 30)  # pixels
_GAP = (64, 16)
_MARGIN, _TOP = 30, 28
_SIDE = 26  # width of an arrow between boxes of one column
_LETTERS = 16  # of a name in a box
_INK, _QUIET, _LINE = "#1d2329", "#6b737c", "#8a939c"
_WROTE, _PLAYED, _SILENT = "#dbe9fb", "#cdeed6", "#f2f4f6"


@dataclass(frozen=True)
class _Node:
    name: str
    agent: str
    plays: bool
    reads: tuple[str, ...]


@dataclass(frozen=True)
class _Workflow:
    """A checked value: nodes by name, names of each column with its rounds, and what happened."""

    nodes: Mapping[str, _Node]
    columns: Sequence[tuple[Sequence[str], int]]
    wrote: frozenset[str] | None
    played: frozenset[str]

    def place(self, name: str) -> tuple[int, int]:
        """Return left and top edge of the box of a node."""
        for number, (names, _) in enumerate(self.columns):
            if name in names:
                row = list(names).index(name)
                return _MARGIN + number * (_BOX[0] + _GAP[0]), _TOP + row * (_BOX[1] + _GAP[1])
        raise KeyError(name)


def workflow_picture(value: object, *, standalone: bool = False) -> Html | None:
    """Return the picture of a workflow; None if the value is no workflow.

    Args:
        value: A value of `diagnostics["workflow"]`, or of `metadata["workflow"]`.
        standalone: Whether the picture is a file of its own, with the namespace of SVG.
    """
    found = _read(value)
    if found is None:
        return None
    rows = max(len(names) for names, _ in found.columns)
    width = 2 * _MARGIN + len(found.columns) * (_BOX[0] + _GAP[0]) + _BOX[0] // 2
    height = _TOP + rows * (_BOX[1] + _GAP[1]) + 2 * _GAP[1]
    return tag(
        "svg",
        list(_headings(found)),
        list(_edges(found)),
        list(_boxes(found)),
        xmlns="http://www.w3.org/2000/svg" if standalone else None,
        viewBox=f"0 0 {width} {height}",
        width=width,
        height=height,
        role="img",
        aria_label=_label(found),
        class_="world",
        font_family="system-ui, sans-serif",
        font_size="12",
    )


def _read(value: object) -> _Workflow | None:
    if not isinstance(value, Mapping):
        return None
    given, steps = _mappings(value.get("nodes")), _mappings(value.get("steps"))
    nodes = [node for node in map(_node, given or ()) if node is not None]
    named = {node.name: node for node in nodes}
    if not given or not steps or len(named) < len(given) or len(named) > MAX_NODES:
        return None
    columns: list[tuple[list[str], int]] = []
    seen: set[str] = set()
    for step in steps:
        names, rounds = _texts(step.get("nodes")), step.get("rounds")
        if names is None or not isinstance(rounds, int):
            return None
        new = [name for name in dict.fromkeys(names) if name not in seen]
        seen.update(new)
        if new:
            columns.append((new, rounds))
    if seen != named.keys() or not all(named.keys() >= set(node.reads) for node in nodes):
        return None
    written = value.get("wrote")
    wrote = [_texts(each) or [] for each in written] if isinstance(written, list) else None
    played = value.get("played")
    return _Workflow(
        named,
        columns,
        None if wrote is None else frozenset(name for names in wrote for name in names),
        frozenset(map(str, played.values())) if isinstance(played, Mapping) else frozenset(),
    )


def _node(value: Mapping[str, Any]) -> _Node | None:
    name, agent, reads = value.get("name"), value.get("agent"), _texts(value.get("reads"))
    if not isinstance(name, str) or not isinstance(agent, str) or reads is None:
        return None
    return _Node(name, agent, bool(value.get("plays")), tuple(reads))


def _mappings(value: object) -> list[Mapping[str, Any]] | None:
    is_right = isinstance(value, list) and all(isinstance(each, Mapping) for each in value)
    return value if is_right and isinstance(value, list) else None


def _texts(value: object) -> list[str] | None:
    is_right = isinstance(value, list) and all(isinstance(each, str) for each in value)
    return value if is_right and isinstance(value, list) else None


def _headings(found: _Workflow) -> Iterator[Html]:
    for number, (_, rounds) in enumerate(found.columns, start=1):
        left = _MARGIN + (number - 1) * (_BOX[0] + _GAP[0])
        text = f"step {number}" + (f", up to {rounds} times" if rounds > 1 else "")
        yield tag("text", text, x=left, y=_TOP - 10, fill=_QUIET)


def _boxes(found: _Workflow) -> Iterator[Html]:
    for node in found.nodes.values():
        left, top = found.place(node.name)
        wrote = found.wrote is None or node.name in found.wrote
        fill = _WROTE if wrote else _SILENT
        if node.name in found.played or (found.wrote is None and node.plays):
            fill = _PLAYED
        state = "" if found.wrote is None else (", wrote" if wrote else ", wrote nothing")
        yield tag(
            "g",
            tag("title", _shown(f"{node.name} works for {node.agent}{state}")),
            tag("rect", x=left, y=top, width=_BOX[0], height=_BOX[1], rx=5, fill=fill,
                stroke=_LINE, stroke_dasharray=None if wrote else "3 2"),
            tag("text", _short(node.name), x=left + _BOX[0] // 2, y=top + 19,
                text_anchor="middle", fill=_INK if wrote else _QUIET),
        )  # fmt: skip
        if node.plays:
            yield _plays(node, left + _BOX[0], top + _BOX[1] - 4)


def _plays(node: _Node, x: int, y: int) -> Html:
    """Draw the agent that a node plays beside its box."""
    return tag("text", _short(f"⇒ {node.agent}"), x=x + 4, y=y, fill="#2a7a45", font_size="11")


def _edges(found: _Workflow) -> Iterator[Html]:
    """Draw an arrow from each node to those that read it; dashed if they read an earlier round."""
    for node in found.nodes.values():
        for name in node.reads:
            source, target = found.place(name), found.place(node.name)
            path, head = _arrow(source, target)
            yield tag(
                "path",
                tag("title", _shown(f"{node.name} reads {name}")),
                d=path,
                fill="none",
                stroke=_LINE,
                stroke_width=1.2,
                stroke_dasharray=None if source[0] < target[0] else "4 3",
            )
            yield tag("polygon", points=head, fill=_LINE)


def _arrow(source: tuple[int, int], target: tuple[int, int]) -> tuple[str, str]:
    """Return the path and the head of an arrow between two boxes, given by their corners."""
    (from_x, from_y), (x, y) = source, target
    column, half = _BOX[0] + _GAP[0], _BOX[1] // 2
    if from_x == x:  # round the left side
        start, end = from_y + half - 5, y + half + 5
        path = f"M{x} {start}C{x - _SIDE} {start} {x - _SIDE} {end} {x} {end}"
        return path, _head_right(x, end)
    if from_x < x and (x - from_x == column or from_y != y):
        start, middle, bend = from_x + _BOX[0], y + half, _GAP[0] // 2
        curve = f"{start + bend} {from_y + half} {x - bend} {middle} {x} {middle}"
        return f"M{start} {from_y + half}C{curve}", _head_right(x, middle)
    # Backwards, or past a box of the same row: below the boxes.
    start, end, bottom = from_x + _BOX[0] // 2, x + _BOX[0] // 2, y + _BOX[1]
    low = max(from_y, y) + _BOX[1] + _GAP[1] + 6
    path = f"M{start} {from_y + _BOX[1]}C{start} {low} {end} {low} {end} {bottom}"
    return path, f"{end},{bottom} {end - 4},{bottom + 7} {end + 4},{bottom + 7}"


def _head_right(x: int, y: int) -> str:
    return f"{x},{y} {x - 7},{y - 4} {x - 7},{y + 4}"


def _label(found: _Workflow) -> str:
    parts = [
        f"{node.name} reads {', '.join(node.reads) or 'its task'}" for node in found.nodes.values()
    ]
    return _shown(f"Workflow: {'; '.join(parts)}")


def _short(text: str) -> str:
    """Leave out the middle of a long name: names of nodes often differ at their end alone."""
    return _shown(text if len(text) <= _LETTERS else f"{text[:8]}…{text[8 - _LETTERS + 1 :]}")


def _shown(text: str) -> str:
    return without_overrides(text)
