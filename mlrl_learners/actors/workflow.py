"""Actor that plays each turn by a named workflow, whose nodes are answered by one base actor."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from mlrl_envs.workflows import Graph, Progress, as_graph, choose, follow, prompt_of
from mlrl_learners.actors.wrapping import WrappingActor
from mlrl_learners.types import Actor, AgentID, Completion, Usage

__all__ = ["WorkflowActor", "drafts_of"]


class WorkflowActor(WrappingActor):
    """Actor in which each turn is played by a named workflow of the agents that act in it.

    The base answers each node as the agent that the node works for. The same graphs are
    environments, in which all answers are trained: `mlrl_envs.workflow`. The token usage of an
    answer is that of all nodes of its agent in the turn.

    Args:
        base: Actor that answers the nodes.
        shape: Name of the workflow, a key of `mlrl_envs.workflows.SHAPES`.
        **options: Options of the workflow, such as `rounds`.

    Raises:
        UnknownNameError: If there is no such workflow or option.
        InvalidArgumentError: If an option is outside its range.
    """

    def __init__(self, base: Actor, shape: str, **options: int) -> None:
        super().__init__(base)
        self._workflow = {"shape": shape, **options}
        as_graph(self._workflow, ("a", "b"))  # raises for a wrong name or option

    def play(
        self, observations: Sequence[Mapping[AgentID, str]], *, explore: bool
    ) -> list[dict[AgentID, Completion]]:
        """Return the answers that the workflow plays in each turn."""
        agents = {tuple(each) for each in observations if each}
        graphs = {each: as_graph(self._workflow, each) for each in agents}
        turns = [_Turn(graphs.get(tuple(each)), each) for each in observations]
        # Observations that nobody answers any more are empty here, but keep their index: a base
        # that watches environments finds them by index.
        while any(asked := [turn.asked() for turn in turns]):
            for turn, answers in zip(turns, self.ask(asked, explore=explore), strict=True):
                turn.add(answers)
        return [turn.played() for turn in turns]


def drafts_of(shape: str) -> int:
    """Return the most answers that the nodes of one agent write in a turn.

    Args:
        shape: Name of a workflow, with its default options.
    """
    graph = as_graph(shape, ("a", "b"))
    writers = Counter(graph.node(name).agent for step in graph.unrolled() for name in step)
    return max(writers.values())


@dataclass
class _Turn:
    """One turn that is played by a workflow.

    Attributes:
        graph: The workflow; None if nobody acts.
        observation: What each agent reads.
        written: What the nodes wrote, step by step.
        step: Answers in the current step so far, by node.
        last: The last answer of each node.
        usage: Tokens of all answers, by agent.
    """

    graph: Graph | None
    observation: Mapping[AgentID, str]
    written: list[Mapping[str, str]] = field(default_factory=list)
    step: dict[str, Completion] = field(default_factory=dict)
    last: dict[str, Completion] = field(default_factory=dict)
    usage: dict[AgentID, Usage] = field(default_factory=dict)

    def asked(self) -> dict[AgentID, str]:
        """Return what each agent reads as the first of its nodes that is still to write."""
        if self.graph is None:
            return {}
        answers = self._progress(self.graph).answers
        return {
            agent: prompt_of(self.graph.node(name), self.observation[agent], answers)
            for agent, name in self._nodes(self.graph).items()
        }

    def add(self, answers: Mapping[AgentID, Completion]) -> None:
        """Add the answers to what `asked` returned."""
        if self.graph is None or not answers:
            return
        nodes = self._nodes(self.graph)
        self.step |= {nodes[agent]: answer for agent, answer in answers.items()}
        for agent, answer in answers.items():
            before = self.usage.get(agent)
            self.usage[agent] = answer.cost if before is None else before + answer.cost
        if not self._nodes(self.graph):
            self.written.append({name: answer.text for name, answer in self.step.items()})
            self.last |= self.step
            self.step = {}

    def played(self) -> dict[AgentID, Completion]:
        """Return the answer that is played for each agent, with the usage of all its nodes."""
        if self.graph is None:
            return {}
        progress = self._progress(self.graph)
        nodes = {agent: choose(self.graph, agent, progress)[0] for agent in self.observation}
        return {a: replace(self.last[name], usage=self.usage[a]) for a, name in nodes.items()}

    def _progress(self, graph: Graph) -> Progress:
        return follow(graph, self.observation, self.written)

    def _nodes(self, graph: Graph) -> dict[AgentID, str]:
        """Return the first node of each agent that has not written in the current step.

        An agent has one prompt in an observation, so that its other nodes are asked afterwards.
        """
        nodes: dict[AgentID, str] = {}
        for name in self._progress(graph).asked:
            if name not in self.step:
                nodes.setdefault(str(graph.node(name).agent), name)
        return nodes
