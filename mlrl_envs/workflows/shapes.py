"""Named graphs: functions of the agents of an environment and a few options.

Every shape but `pipeline` and `discussion` is drawn once for each agent of the environment, so that
no agent reads what only another one may know; in an environment with several agents, its nodes are
named `AGENT_NODE`. The copies write at the same time.

Sources: debate, Y. Du et al., arXiv:2305.14325; mixture, J. Wang et al., arXiv:2406.04692; vote,
X. Wang et al., arXiv:2203.11171; reflection, A. Madaan et al., arXiv:2303.17651.
"""

import dataclasses
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mlrl_envs.config import check_int, checked_some
from mlrl_envs.errors import InvalidArgumentError, unknown_name
from mlrl_envs.types import AgentID
from mlrl_envs.workflows.graph import Condition, Graph, Node, Repeat, Step

__all__ = ["SHAPES", "shape"]

APPROVED = "APPROVED"
MOST = 16  # nodes of a kind, rounds and layers

_EARLIER = (
    "{task}\n\nThis time your teammates have answered before you, and you read what they wrote.\n\n"
    "{answers}\n\nBuild on it in your own answer, in the format asked for above."
)
_DRAFTS = (
    "{task}\n\nEvery team member has written a first answer.\n\n{answers}\n\n"
    "Now write your final answer, in the format asked for above."
)
_ARGUE = (
    "{task}\n\n{answers}\n\nKeep what is right in these answers and correct what is wrong. Write "
    "your answer again, whole and in the format asked for above."
)
_JUDGE = (
    "{task}\n\n{answers}\n\nYou are the judge. Decide what is right in these answers, and write "
    "the final answer, whole and in the format asked for above."
)
_AGGREGATE = (
    "{task}\n\n{answers}\n\nThese answers may be wrong. Combine them into one better answer, whole "
    "and in the format asked for above."
)
_CRITIC = (
    "{task}\n\n{answers}\n\nYou are the critic. Do not answer yourself: name what is wrong with "
    "the last answer above and how to correct it, in at most five short points. If nothing has to "
    f"change, the last line of your reply is {APPROVED}."
)
_REVISE = (
    "{task}\n\n{answers}\n\nWrite the corrected answer, whole and in the format asked for above."
)
_PLAN = (
    "{task}\n\nYou are the planner. Do not answer yet: write a short plan, in at most five steps, "
    "that a teammate will follow."
)
_EXECUTE = "{task}\n\n{answers}\n\nFollow the plan, and answer in the format asked for above."
_REFLECT = (
    "{task}\n\n{answers}\n\nLook for mistakes in your answer. Then write it again, corrected, "
    "whole and in the format asked for above."
)


def pipeline(agents: Sequence[AgentID]) -> Graph:
    """Agents write in order, each reads the answers before it."""
    nodes = [
        Node(name, name, tuple(agents[:i]), prompt=_EARLIER if i else "")
        for i, name in enumerate(agents)
    ]
    return Graph(tuple(nodes), tuple((name,) for name in agents))


def discussion(agents: Sequence[AgentID], rounds: int = 2) -> Graph:
    """All agents write, read all answers, and write again."""
    _check("rounds", rounds, 2)
    nodes = [Node(name, name, tuple(agents), prompt=_DRAFTS) for name in agents]
    return Graph(tuple(nodes), (Repeat((tuple(agents),), rounds),))


def chain(length: int = 3) -> Graph:
    """Writers in a row, each reads the one before it."""
    _check("length", length, 1)
    names = _numbered("writer", length)
    return Graph(
        tuple(
            Node(name, reads=before, prompt=_EARLIER if before else "")
            for name, before in _after(names)
        ),
        tuple((name,) for name in names),
    )


def debate(debaters: int = 2, rounds: int = 2) -> Graph:
    """Debaters read each other in rounds, a judge writes the answer."""
    _check("debaters", debaters, 2)
    _check("rounds", rounds, 1)
    names = _numbered("debater", debaters)
    reads = names if rounds > 1 else ()
    nodes = [Node(name, reads=reads, prompt=_ARGUE if reads else "") for name in names]
    return Graph(
        (*nodes, Node("judge", reads=names, prompt=_JUDGE)), (Repeat((names,), rounds), ("judge",))
    )


def mixture(proposers: int = 3, layers: int = 2) -> Graph:
    """Layers of proposers, each reads the layer before it, and an aggregator."""
    _check("proposers", proposers, 1)
    _check("layers", layers, 1)
    before: tuple[str, ...] = ()
    nodes: list[Node] = []
    for layer in range(1, layers + 1):
        names = _numbered(f"proposer_{layer}", proposers)
        nodes += [Node(name, reads=before, prompt=_AGGREGATE if before else "") for name in names]
        before = names
    return Graph((*nodes, Node("aggregator", reads=before, prompt=_AGGREGATE)))


def critic(rounds: int = 1) -> Graph:
    """A writer, a critic, and a reviser; the critic ends the rounds by APPROVED."""
    _check("rounds", rounds, 1)
    approved: tuple[Condition, ...] = (("critic", APPROVED),)
    drafts = ("writer", "reviser") if rounds > 1 else ("writer",)
    nodes = (
        Node("writer", plays=True),
        Node("critic", reads=drafts, prompt=_CRITIC, unless=approved if rounds > 1 else ()),
        Node("reviser", reads=(*drafts, "critic"), prompt=_REVISE, plays=True, unless=approved),
    )
    return Graph(nodes, (("writer",), Repeat((("critic",), ("reviser",)), rounds)))


def vote(voters: int = 3) -> Graph:
    """Voters write at the same time, the most frequent answer is played."""
    _check("voters", voters, 2)
    nodes = tuple(Node(name, plays=True) for name in _numbered("voter", voters))
    return Graph(nodes, combine="vote")


def planner_executor() -> Graph:
    """A planner writes a plan, an executor follows it."""
    planner = Node("planner", prompt=_PLAN)
    return Graph((planner, Node("executor", reads=("planner",), prompt=_EXECUTE)))


def reflection(rounds: int = 1) -> Graph:
    """One writer reads its own answer and writes it again."""
    _check("rounds", rounds, 1)
    writer = Node("writer", reads=("writer",), prompt=_REFLECT)
    return Graph((writer,), (Repeat((("writer",),), rounds + 1),))


@dataclass(frozen=True)
class Shape:
    """A named graph.

    Attributes:
        draw: The function that makes it, whose keywords are its options.
        of_team: Whether it is one graph of all agents (`draw(agents, ...)`), not one for each.
    """

    draw: Callable[..., Graph]
    of_team: bool = False

    @property
    def summary(self) -> str:
        """One line about the shape."""
        return inspect.getdoc(self.draw) or ""

    @property
    def options(self) -> dict[str, int]:
        """Its options with their defaults."""
        parameters = inspect.signature(self.draw).parameters.values()
        return {each.name: each.default for each in parameters if each.default is not each.empty}


SHAPES: Mapping[str, Shape] = {
    "pipeline": Shape(pipeline, of_team=True),
    "discussion": Shape(discussion, of_team=True),
    "chain": Shape(chain),
    "debate": Shape(debate),
    "mixture": Shape(mixture),
    "critic": Shape(critic),
    "vote": Shape(vote),
    "planner-executor": Shape(planner_executor),
    "reflection": Shape(reflection),
}
"""The named graphs."""


def shape(
    name: str,
    agents: Sequence[AgentID],
    /,
    *,
    only: object = None,
    pay: str = "all",
    **options: Any,  # noqa: ANN401  of the shape
) -> Graph:
    """Draw a named graph for the agents of an environment; it is not checked.

    Args:
        name: A key of `SHAPES`.
        agents: Agents of the environment.
        only: Agents that get the shape, the others one plain node each; None for all.
        pay: As in `Graph`.
        **options: Options of the shape.

    Raises:
        UnknownNameError: If there is no such shape or option.
        InvalidArgumentError: If an option is outside its range, or `only` names no agents.
    """
    if not isinstance(name, str) or name not in SHAPES:
        raise unknown_name("workflow", name, SHAPES)
    found = SHAPES[name]
    for option in options:
        if option not in found.options:
            raise unknown_name(f"option of {name}", option, [*found.options, "only", "pay"])
    if not found.of_team:
        chosen = agents if only is None else checked_some("only", only, tuple(agents))
        graph = _for_each(found.draw(**options), agents, chosen)
    elif only is None:
        graph = found.draw(tuple(agents), **options)
    else:
        raise InvalidArgumentError(f"{name} is one graph of all agents: leave only={only!r} out")
    return dataclasses.replace(graph, pay=pay, name=name)


def _for_each(graph: Graph, agents: Sequence[AgentID], chosen: Sequence[object]) -> Graph:
    """Return one copy of a graph for each agent, with a plain node for those that are not chosen.

    The copies write at the same time; plain nodes write in the last step.
    """
    if len(agents) == 1:
        return graph
    plain = tuple(Node(agent, agent) for agent in agents if agent not in chosen)
    copied = tuple(
        _renamed(node, agent) for agent in agents if agent in chosen for node in graph.nodes
    )
    steps = graph.steps or tuple(_derived(graph))
    spread: list[Step] = []
    for step in steps:
        if isinstance(step, Repeat):
            spread.append(Repeat(tuple(_spread(s, agents, chosen) for s in step.steps), step.times))
        else:
            spread.append(_spread(step, agents, chosen))
    if plain:
        spread.append(tuple(node.name for node in plain))
    return dataclasses.replace(graph, nodes=(*copied, *plain), steps=tuple(spread))


def _derived(graph: Graph) -> list[tuple[str, ...]]:
    from mlrl_envs.workflows.checks import levels

    return list(levels(graph.nodes))


def _spread(
    names: Sequence[str], agents: Sequence[AgentID], chosen: Sequence[object]
) -> tuple[str, ...]:
    return tuple(f"{agent}_{name}" for name in names for agent in agents if agent in chosen)


def _renamed(node: Node, agent: AgentID) -> Node:
    def conditions(given: Sequence[Condition]) -> tuple[Condition, ...]:
        return tuple((f"{agent}_{name}", verdict) for name, verdict in given)

    return dataclasses.replace(
        node,
        name=f"{agent}_{node.name}",
        agent=agent,
        reads=tuple(f"{agent}_{name}" for name in node.reads),
        when=conditions(node.when),
        unless=conditions(node.unless),
    )


def _check(name: str, value: object, low: int) -> None:
    check_int(name, value, low, MOST)


def _numbered(name: str, count: int) -> tuple[str, ...]:
    return tuple(f"{name}_{number}" for number in range(1, count + 1))


def _after(names: Sequence[str]) -> list[tuple[str, tuple[str, ...]]]:
    """Return each name with the one before it."""
    return [(name, tuple(names[max(0, i - 1) : i])) for i, name in enumerate(names)]
