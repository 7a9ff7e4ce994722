"""Graphs of a workflow: nodes that write, whom each reads, and the steps in which they write.

A graph is bounded: it has no cycles except in a `Repeat`, which has a number of rounds. Mistakes
raise an error of one line when the graph is made for the agents of an environment
(`mlrl_envs.workflows.checks`).
"""

import functools
from collections.abc import Iterator
from dataclasses import dataclass, field

from mlrl_envs.types import AgentID

__all__ = ["Condition", "Graph", "Node", "Repeat", "Step"]

Condition = tuple[str, str]
"""A node and the verdict that its last answer must end with."""


@dataclass(frozen=True)
class Node:
    """An agent of a workflow.

    Attributes:
        name: Its name; the agent of the workflow has this name.
        agent: The agent of the environment that it works for: it reads the observation of that
            agent. None for the agent of the same name, or the only one.
        reads: Nodes whose last answers it reads; its own name for its own last answer.
        role: A paragraph of its prompt after the observation.
        prompt: Template of what it reads; see `mlrl_envs.workflows.prompts`. "" for the default.
        first: Template while none of the nodes that it reads has written. "" for the default.
        plays: Whether its answer may be played. If no node of an agent says so, the last one plays.
        when: It writes only if each of these nodes has written, with this verdict.
        unless: It does not write if one of these nodes has written this verdict.
    """

    name: str
    agent: AgentID | None = None
    reads: tuple[str, ...] = ()
    role: str = ""
    prompt: str = ""
    first: str = ""
    plays: bool = False
    when: tuple[Condition, ...] = ()
    unless: tuple[Condition, ...] = ()

    @property
    def needs(self) -> tuple[str, ...]:
        """Nodes whose answers it depends on, each once."""
        conditions = (name for name, _ in (*self.when, *self.unless))
        return tuple(dict.fromkeys((*self.reads, *conditions)))


@dataclass(frozen=True)
class Repeat:
    """Steps that are repeated.

    Attributes:
        steps: The steps of a round; the nodes of a step write at the same time.
        times: Number of rounds, at least 1.
    """

    steps: tuple[tuple[str, ...], ...]
    times: int


Step = tuple[str, ...] | Repeat
"""Nodes that write at the same time, or repeated steps."""


@dataclass(frozen=True)
class Graph:
    """Nodes and steps of a workflow, which is played once in every turn of the environment.

    Attributes:
        nodes: The nodes, in the order of the agents of the workflow.
        steps: The steps; () derives them from `reads`: a node writes as soon as all that it reads
            have written.
        combine: What is played of an agent: `"last"`, the answer that was written last, or
            `"vote"`, the first of the most frequent answers of the last step.
        pay: Who earns an agent's reward: `"all"` nodes that work for it, or those that `"play"`;
            with `"own"` each node earns what its own last answer would earn if it were played, and
            rewards while its agent waits if it wrote in the last turn of the agent.
        name: Name of the shape; "" for a graph of one's own.
    """

    nodes: tuple[Node, ...]
    steps: tuple[Step, ...] = ()
    combine: str = "last"
    pay: str = "all"
    name: str = field(default="", repr=False)  # not in fingerprints

    @functools.cached_property
    def by_name(self) -> dict[str, Node]:
        """The nodes by name."""
        return {node.name: node for node in self.nodes}

    def node(self, name: str) -> Node:
        """Return the node of that name."""
        return self.by_name[name]

    def unrolled(self) -> Iterator[tuple[str, ...]]:
        """Yield all steps in order, with every round of those that are repeated."""
        for step in self.steps:
            if isinstance(step, Repeat):
                for _ in range(step.times):
                    yield from step.steps
            else:
                yield step

    @property
    def num_steps(self) -> int:
        """Most steps of one turn of the environment."""
        return sum(
            len(step.steps) * step.times if isinstance(step, Repeat) else 1 for step in self.steps
        )
