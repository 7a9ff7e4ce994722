"""Checks of a graph against the agents of an environment; each mistake is an error of one line.

Graphs may come from clients of a server: the numbers of nodes, steps and conditions, and the
lengths of texts are limited.
"""

import dataclasses
from collections.abc import Collection, Iterator, Sequence

from mlrl_envs.config import check_choice, check_int
from mlrl_envs.errors import InvalidArgumentError, unknown_name
from mlrl_envs.types import AgentID
from mlrl_envs.workflows.graph import Graph, Node, Repeat, Step
from mlrl_envs.workflows.prompts import OWN_FIELDS, check_template

__all__ = ["MAX_NODES", "MAX_STEPS", "check_length", "checked", "levels"]

MAX_NODES = 64
MAX_STEPS = 200  # of one turn of the environment
MAX_NAME_CHARS = 64
MAX_CONDITIONS = 64  # of a node, with those of the repetitions that it is in
MAX_TEXT_CHARS = 100_000  # of a role or prompt


def checked(graph: Graph, agents: Sequence[AgentID]) -> Graph:
    """Return a graph with all agents, steps and players named.

    Args:
        graph: A graph as its author wrote it.
        agents: The agents of the environment.

    Raises:
        UnknownNameError: If a node or an agent does not exist.
        InvalidArgumentError: For a cycle without a limit, a node that nobody reads, an agent that
            nobody plays or two nodes play, and whatever else cannot be played.
    """
    _check_types(graph)
    check_choice("combine", graph.combine, ("last", "vote"))
    check_choice("pay", graph.pay, ("all", "play", "own"))
    _check_names(graph)
    nodes = tuple(_with_agent(node, agents) for node in graph.nodes)
    for node in nodes:
        _check_node(node, [each.name for each in nodes])
    steps = graph.steps or tuple(levels(nodes))
    graph = dataclasses.replace(graph, nodes=nodes, steps=steps)
    _check_steps(graph)
    graph = dataclasses.replace(graph, nodes=tuple(_players(graph, agents)))
    _check_players(graph, agents)
    _check_order(graph)
    _check_connected(graph)
    return graph


def check_length(kind: str, found: Collection[object], limit: int) -> None:
    """Raise `InvalidArgumentError` if there are more things of a kind than `limit`."""
    if len(found) > limit:
        raise InvalidArgumentError(f"a workflow has at most {limit} {kind}, got {len(found)}")


def _check_types(graph: Graph) -> None:
    for name in ("nodes", "steps"):
        if not isinstance(getattr(graph, name), tuple | list):
            raise InvalidArgumentError(
                f"{name} of a Graph must be a tuple, got {getattr(graph, name)!r}"
            )
    for node in graph.nodes:
        if not isinstance(node, Node):
            raise InvalidArgumentError(f"nodes of a Graph must be Nodes, got {node!r}")
        for name in ("reads", "when", "unless"):
            if not isinstance(getattr(node, name), tuple | list):
                raise InvalidArgumentError(
                    f"{name} of node {node.name!r} must be a tuple, got {getattr(node, name)!r}"
                )


def _check_names(graph: Graph) -> None:
    names = [node.name for node in graph.nodes]
    if not 1 <= len(names) <= MAX_NODES:
        raise InvalidArgumentError(f"a workflow has 1 to {MAX_NODES} nodes, got {len(names)}")
    for name in names:
        if not isinstance(name, str) or not _is_name(name):
            raise InvalidArgumentError(
                f"a node is named by letters, digits, _ and -, unlike a field of prompts "
                f"({', '.join(OWN_FIELDS)}), got {name!r}"
            )
        if names.count(name) > 1:
            raise InvalidArgumentError(f"two nodes are named {name!r}: rename one of them")


def _is_name(name: str) -> bool:
    letters = name.replace("_", "").replace("-", "")
    return letters.isalnum() and len(name) <= MAX_NAME_CHARS and name not in OWN_FIELDS


def _with_agent(node: Node, agents: Sequence[AgentID]) -> Node:
    """Return a node with the agent that it works for."""
    agent = node.agent
    if agent is None and node.name in agents:
        agent = node.name
    if agent is None and len(agents) == 1:
        agent = agents[0]
    if agent is None:
        raise InvalidArgumentError(
            f"node {node.name!r} must name the agent that it works for: agent: "
            f"{' or '.join(agents)}"
        )
    if agent not in agents:
        raise unknown_name(f"agent of node {node.name!r}", agent, agents)
    return dataclasses.replace(node, agent=agent)


def _check_node(node: Node, names: Sequence[str]) -> None:
    for name in node.needs:
        if name not in names:
            raise unknown_name(f"node that {node.name!r} reads", name, names)
    check_length(f"conditions of node {node.name!r}", (*node.when, *node.unless), MAX_CONDITIONS)
    for key in ("role", "prompt", "first"):
        check_length(f"characters in {key} of {node.name!r}", getattr(node, key), MAX_TEXT_CHARS)
    for template in (node.prompt, node.first):
        check_template(node, template)


def levels(nodes: Sequence[Node]) -> Iterator[tuple[str, ...]]:
    """Yield the steps that follow from who reads whom."""
    left, written = list(nodes), set[str]()
    while left:
        ready = tuple(node.name for node in left if written.issuperset(node.needs))
        if not ready:
            cycle = " -> ".join(_cycle(left))
            raise InvalidArgumentError(
                f"the cycle {cycle} has no limit: list the steps, and put those of the cycle into "
                "{repeat: 2, steps: [...]}"
            )
        yield ready
        written.update(ready)
        left = [node for node in left if node.name not in written]


def _cycle(nodes: Sequence[Node]) -> list[str]:
    """Return a cycle among nodes of which each needs another one, in the order of writing."""
    needed = {node.name: next(n for n in node.needs if _has(nodes, n)) for node in nodes}
    path = [nodes[0].name]
    while path[-1] not in path[:-1]:
        path.append(needed[path[-1]])
    return path[path.index(path[-1]) :][::-1]


def _has(nodes: Sequence[Node], name: str) -> bool:
    return any(node.name == name for node in nodes)


def _check_steps(graph: Graph) -> None:
    named: set[str] = set()
    check_length("steps", graph.steps, MAX_STEPS)
    for step in graph.steps:
        for names in _rounds(step):
            if not names:
                raise InvalidArgumentError("a step of a workflow must name a node, got []")
            for name in names:
                if name not in graph.by_name:
                    raise unknown_name("node in a step", name, graph.by_name)
                if names.count(name) > 1:
                    raise InvalidArgumentError(f"node {name!r} is twice in the step {list(names)}")
            named.update(names)
    if missing := [name for name in graph.by_name if name not in named]:
        raise InvalidArgumentError(f"node {missing[0]!r} is in no step: add it or remove the node")
    if graph.num_steps > MAX_STEPS:
        raise InvalidArgumentError(
            f"a workflow has at most {MAX_STEPS} steps, got {graph.num_steps}: repeat less often"
        )


def _rounds(step: Step) -> tuple[tuple[str, ...], ...]:
    if not isinstance(step, Repeat):
        return (step,)
    check_int("repeat", step.times, 1, MAX_STEPS)
    if not step.steps:
        raise InvalidArgumentError("repeat needs steps: {repeat: 2, steps: [a, b]}, got none")
    return step.steps


def _players(graph: Graph, agents: Sequence[AgentID]) -> Iterator[Node]:
    """Yield the nodes; the last one of an agent plays unless others say that they do."""
    chosen: set[str] = {node.name for node in graph.nodes if node.plays}
    steps = list(graph.unrolled())
    for agent in agents:
        mine = [node.name for node in graph.nodes if node.agent == agent]
        if not mine:
            raise InvalidArgumentError(
                f"nobody plays {agent!r}: add a node with agent: {agent}, such as {agent}: {{}}"
            )
        if not chosen.intersection(mine):
            last = next(step for step in reversed(steps) if set(step).intersection(mine))
            chosen.update(set(last).intersection(mine))
    for node in graph.nodes:
        yield dataclasses.replace(node, plays=node.name in chosen)


def _check_players(graph: Graph, agents: Sequence[AgentID]) -> None:
    steps = list(graph.unrolled())
    for agent in agents:
        mine = [node for node in graph.nodes if node.agent == agent and node.plays]
        if not _is_played(mine, steps):
            names = ", ".join(node.name for node in mine)
            raise InvalidArgumentError(
                f"the answers for {agent!r} come from {names} only under a condition: give "
                "plays: true to a node that always writes"
            )
        free = [node.name for node in mine if not (node.when or node.unless)]
        for step in steps:
            together = [name for name in free if name in step]
            if len(together) > 1 and graph.combine == "last":
                raise InvalidArgumentError(
                    f"{' and '.join(together)} play {agent!r} in one step: let one node read both, "
                    "or pass combine: vote"
                )


def _is_played(nodes: Sequence[Node], steps: Sequence[tuple[str, ...]]) -> bool:
    """Return whether one of the nodes writes whatever the others say."""
    first = {name: i for i, step in reversed(list(enumerate(steps))) for name in step}
    for node in nodes:
        # A condition cannot hold before its node has written.
        if not node.when and all(first[node.name] <= first[name] for name, _ in node.unless):
            return True
    return any(
        _share_verdict(steps, {node.name, other.name}, node.unless[0][0])
        for node in nodes
        for other in nodes
        if len(node.unless) == 1 and node.unless == other.when and not (node.when or other.unless)
    )


def _share_verdict(steps: Sequence[tuple[str, ...]], pair: set[str], judge: str) -> bool:
    """Return whether two nodes have steps between which the judge of both does not write."""
    seen = set[str]()
    for step in steps:
        seen |= pair.intersection(step)
        if seen == pair:
            return True
        if judge in step:  # the steps after this one read another verdict
            seen = set()
    return False


def _check_order(graph: Graph) -> None:
    """Every node must write after what it reads, in some round."""
    steps = list(enumerate(graph.unrolled()))
    last = {name: i for i, step in steps for name in step}
    first = {name: i for i, step in reversed(steps) for name in step}
    for node in graph.nodes:
        for name in node.needs:
            if first[name] >= last[node.name]:
                raise InvalidArgumentError(
                    f"node {node.name!r} reads {name!r}, which does not write before it: change "
                    "the order of steps, or repeat them"
                )


def _check_connected(graph: Graph) -> None:
    read = {name for node in graph.nodes for name in node.needs if name != node.name}
    for node in graph.nodes:
        if node.name not in read and not node.plays:
            raise InvalidArgumentError(
                f"node {node.name!r} is not connected: nobody reads it and it plays no agent; add "
                "it to the reads of a node, or remove it"
            )
