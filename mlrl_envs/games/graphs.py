"""Connected graphs drawn from a seed, and checks of given graphs.

A graph is a tuple with the sorted neighbours of each node; nodes are numbers from 0. Graphs are
undirected, without loops and parallel edges.

Sources: M. Newman and D. Watts, "Renormalization group analysis of the small-world network model",
Physics Letters A 263 (1999); A.-L. Barabasi and R. Albert, "Emergence of scaling in random
networks", Science 286 (1999).
"""

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from random import Random

from mlrl_envs.errors import InvalidArgumentError
from mlrl_envs.games.chance import below

__all__ = [
    "TOPOLOGIES",
    "Graph",
    "checked_edges",
    "diameter",
    "distances",
    "graph_of_edges",
    "make_graph",
    "renumbered",
]

Graph = tuple[tuple[int, ...], ...]
Edge = tuple[int, int]

SHORTCUTS = 0.25  # probability of a shortcut for each edge of the ring
NEAREST = 3


def make_graph(topology: str, size: int, rng: Random) -> Graph:
    """Draw a connected graph.

    Args:
        topology: A key of `TOPOLOGIES`.
        size: Number of nodes, at least 3.
        rng: Source of randomness.
    """
    return _as_graph(size, TOPOLOGIES[topology](size, rng))


def checked_edges(edges: object) -> tuple[Edge, ...]:
    """Return pairs of node numbers as tuples.

    Raises:
        InvalidArgumentError: If a value is no pair of node numbers.
    """
    given = edges if isinstance(edges, list | tuple) else ()
    pairs = tuple(tuple(edge) for edge in given if isinstance(edge, list | tuple))
    proper = all(len(pair) == 2 and set(map(type, pair)) == {int} for pair in pairs)
    if not pairs or len(pairs) != len(given) or not proper:
        raise InvalidArgumentError(f"edges must be pairs of node numbers, got {edges!r}")
    return pairs


def graph_of_edges(size: int, edges: Iterable[Edge]) -> Graph:
    """Return the graph with the given edges.

    Raises:
        InvalidArgumentError: If an edge names an unknown node or is a loop, or if the graph is not
            connected.
    """
    edges = list(edges)
    for edge in edges:
        first, second = edge
        if first == second or not {first, second} <= set(range(size)):
            raise InvalidArgumentError(
                f"an edge joins two of the nodes 0 to {size - 1}, got {tuple(edge)}"
            )
    graph = _as_graph(size, edges)
    reached = distances(graph, 0)
    if lost := [node for node in range(size) if reached[node] < 0]:
        raise InvalidArgumentError(
            f"the graph is not connected: no path from node 0 to node {lost[0]}; add an edge"
        )
    return graph


def distances(graph: Graph, start: int) -> list[int]:
    """Return the distance of each node from `start`, -1 for nodes without a path."""
    found = [-1] * len(graph)
    found[start], frontier = 0, [start]
    while frontier:
        reached = []
        for node in frontier:
            for neighbour in graph[node]:
                if found[neighbour] < 0:
                    found[neighbour] = found[node] + 1
                    reached.append(neighbour)
        frontier = reached
    return found


def renumbered(graph: Graph, numbers: Sequence[int]) -> Graph:
    """Return the same graph with other numbers of its nodes.

    Args:
        graph: A graph.
        numbers: The new number of each node, a permutation.
    """
    edges = ((node, other) for node, others in enumerate(graph) for other in others)
    return _as_graph(len(graph), ((numbers[node], numbers[other]) for node, other in edges))


def diameter(graph: Graph) -> int:
    """Return the largest distance between two nodes of a connected graph."""
    return max(max(distances(graph, node)) for node in range(len(graph)))


def _small_world(size: int, rng: Random) -> set[Edge]:
    # Newman and Watts: shortcuts are added to a ring, so that the graph is always connected.
    reach = 2 if size > 5 else 1
    edges = set()
    for node in range(size):
        for step in range(1, reach + 1):
            edges.add((node, (node + step) % size))
            other = below(size, rng)
            if rng.random() < SHORTCUTS and other != node:
                edges.add((node, other))
    return edges


def _scale_free(size: int, rng: Random) -> set[Edge]:
    # Barabasi and Albert: a new node joins two others with probability proportional to degree.
    edges = {(0, 1), (0, 2), (1, 2)}
    ends = [0, 1, 0, 2, 1, 2]
    for node in range(3, size):
        chosen: set[int] = set()
        while len(chosen) < 2:
            chosen.add(ends[below(len(ends), rng)])
        for other in sorted(chosen):
            edges.add((other, node))
            ends += [other, node]
    return edges


def _geometric(size: int, rng: Random) -> set[Edge]:
    # Points of a square, each joined to its nearest; the closest parts are joined until one is left
    points = [(rng.random(), rng.random()) for _ in range(size)]

    def length(edge: Edge) -> float:
        (x, y), (u, v) = points[edge[0]], points[edge[1]]
        return (x - u) ** 2 + (y - v) ** 2

    pairs = sorted(itertools.combinations(range(size), 2), key=length)
    edges: set[Edge] = set()
    degrees = [0] * size
    for edge in pairs:
        for node in edge:
            if degrees[node] < NEAREST:
                edges.add(edge)
                degrees[node] += 1
    part = list(range(size))
    for edge in itertools.chain(sorted(edges), pairs):
        first, second = part[edge[0]], part[edge[1]]
        if first != second:
            edges.add(edge)
            part = [first if other == second else other for other in part]
    return edges


def _as_graph(size: int, edges: Iterable[Edge]) -> Graph:
    neighbours: list[set[int]] = [set() for _ in range(size)]
    for first, second in edges:
        neighbours[first].add(second)
        neighbours[second].add(first)
    return tuple(tuple(sorted(others)) for others in neighbours)


TOPOLOGIES: Mapping[str, Callable[[int, Random], set[Edge]]] = {
    "small-world": _small_world,
    "scale-free": _scale_free,
    "geometric": _geometric,
}
