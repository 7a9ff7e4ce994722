"""The family of a workflow: pure functions over those of another family.

A turn of the workflow is a step of its graph. The turns of the wrapped family follow from those of
the workflow: a step that ends a turn there has its joint action and score in `WorkflowScore.base`.
"""

from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from mlrl_envs.shell.roster import Roster, roster_of
from mlrl_envs.shell.wrapped import WrappedFamily
from mlrl_envs.types import AgentID, Attempt, Json, ProgramRunner, Score, Task, Turn
from mlrl_envs.workflows.drawing import facts_of
from mlrl_envs.workflows.graph import Graph
from mlrl_envs.workflows.prompts import prompt_of
from mlrl_envs.workflows.steps import Progress, choose, follow

__all__ = ["WorkflowFamily", "WorkflowScore"]

FACTS = "workflow"  # in the diagnostics of the first node, where a turn is played
WAIT = "Wait for your next turn."
_OF_BASE = ("deal", "config", "expert")  # only where the wrapped family has them


@dataclass(frozen=True, slots=True)
class WorkflowScore(Score):
    """The score of a step.

    Attributes:
        base: The turn of the wrapped family that the step played; None if it played none.
    """

    base: Turn | None = None


@dataclass(frozen=True)
class WorkflowFamily(WrappedFamily):
    """Episodes of a workflow over another family.

    Attributes:
        family: The wrapped family.
        graph: A graph that is checked for its agents.
    """

    graph: Graph

    @property
    def agents(self) -> tuple[AgentID, ...]:
        """The nodes."""
        return tuple(self.graph.by_name)

    @property
    def max_turns(self) -> int:
        """Most steps of an episode."""
        return self.family.max_turns * self.graph.num_steps

    @property
    def reward_range(self) -> tuple[float, float]:
        """That of the wrapped family, with 0 for steps that play nothing."""
        low, high = self.family.reward_range
        return min(low, 0.0), max(high, 0.0)

    @property
    def competitive(self) -> bool:
        """Whether the wrapped family has no joint action that is best for all agents."""
        return bool(getattr(self.family, "competitive", False))

    def acting(self, task: Task, turns: Sequence[Turn]) -> tuple[str, ...]:
        """Return the nodes of the next step."""
        return self._progress(task, turns).asked

    def left(self, task: Task, turns: Sequence[Turn]) -> dict[str, str]:
        """Return the nodes whose agents have left."""
        played = _played(turns)
        rule = getattr(self.family, "left", None)
        gone = dict(rule(task, played)) if rule is not None else {}
        roster = roster_of(self.family, task, played)
        gone |= dict.fromkeys(roster.terminated, "terminated")
        gone |= dict.fromkeys(roster.truncated, "truncated")
        return {node.name: gone[node.agent] for node in self.graph.nodes if node.agent in gone}

    def observe(self, task: Task, turns: Sequence[Turn], agent: AgentID) -> str:
        """Return what a node reads: its agent's observation, and answers of other nodes."""
        node, played = self.graph.node(agent), _played(turns)
        shown = self.family.observe(task, played, str(node.agent))
        roster = roster_of(self.family, task, played)
        if node.agent not in roster.agents:
            return shown
        progress = follow(self.graph, roster.acting, _written(turns))
        if agent in progress.asked:
            return prompt_of(node, shown, progress.answers)
        return f"{shown}\n\n{WAIT}"

    def score(self, attempts: Sequence[Attempt[Any]], sandbox: ProgramRunner) -> list[Score]:
        """Score attempts: those that end a turn of the wrapped family as one batch of it.

        Raises:
            InfraError: If the sandbox or a request to a model fails.
        """
        reached = [self._progress(each.task, each.turns, each.actions) for each in attempts]
        bases = [
            None if after.asked else self._base_attempt(attempt, after)
            for attempt, after in zip(attempts, reached, strict=True)
        ]
        others = [
            {} if base is None else self._others(base, after)
            for base, after in zip(bases, reached, strict=True)
        ]
        asked = [
            each
            for base, own in zip(bases, others, strict=True)
            if base is not None
            for each in (base, *own.values())
        ]
        scores = iter(self.family.score(asked, sandbox) if asked else ())
        return [
            WorkflowScore({}, solved=False)
            if base is None
            else self._score(
                base,
                next(scores),
                after,
                {name: next(scores) for name in own},
                self._earners(base, after, attempt.turns),
            )
            for attempt, base, after, own in zip(attempts, bases, reached, others, strict=True)
        ]

    def reference(self, task: Task) -> Mapping[str, str] | None:
        """Return a correct answer of each node that writes first."""
        return self.reference_at(task, ())

    def reference_at(self, task: Task, turns: Sequence[Turn]) -> dict[str, str] | None:
        """Return a correct answer of its agent for each node that writes next."""
        at: Any = getattr(self.family, "reference_at", None)
        found = at(task, _played(turns)) if at else self.family.reference(task)
        if found is None:
            return None
        return {name: found[str(self.graph.node(name).agent)] for name in self.acting(task, turns)}

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  a method or the options
        if name in _OF_BASE:
            return getattr(self.family, name)
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    def _roster(self, task: Task, turns: Sequence[Turn]) -> Roster:
        return roster_of(self.family, task, _played(turns))

    def _progress(
        self, task: Task, turns: Sequence[Turn], actions: Mapping[str, str] | None = None
    ) -> Progress:
        """Return where the current turn of the wrapped family is, after `actions` if given."""
        written = [*_written(turns), *([] if actions is None else [actions])]
        return follow(self.graph, self._roster(task, turns).acting, written)

    def _base_attempt(self, attempt: Attempt[Any], after: Progress) -> Attempt[Any]:
        acting = self._roster(attempt.task, attempt.turns).acting
        actions = {agent: choose(self.graph, agent, after)[1] for agent in acting}
        return Attempt(attempt.task, _played(attempt.turns), actions)

    def _others(self, base: Attempt[Any], after: Progress) -> dict[str, Attempt[Any]]:
        """Return the turn with the answer of each node that is not played, if each earns its own.

        Nodes are left out whose answer is the same as the one that is played.
        """
        if self.graph.pay != "own":
            return {}
        found = {}
        for name, answer in after.answers.items():
            agent = str(self.graph.node(name).agent)
            if agent in base.actions and base.actions[agent] != answer:
                found[name] = Attempt(base.task, base.turns, {**base.actions, agent: answer})
        return found

    def _earners(
        self, base: Attempt[Any], after: Progress, turns: Sequence[Turn]
    ) -> Collection[str]:
        """Return the nodes that earn the rewards of their agents in the turn `base`.

        If each earns its own, these are the nodes that wrote in the last turn of their agent, which
        is an earlier one if the agent waits. All nodes of an agent that has not acted yet earn.
        """
        if self.graph.pay != "own":
            return [n.name for n in self.graph.nodes if n.plays or self.graph.pay == "all"]
        earners = set(after.answers)
        for agent in set(self.family.agents) - base.actions.keys():
            nodes = {node.name for node in self.graph.nodes if node.agent == agent}
            earners |= _last_writers(nodes, turns) or nodes
        return earners

    def _score(
        self,
        base: Attempt[Any],
        score: Score,
        after: Progress,
        own: Mapping[str, Score],
        earners: Collection[str],
    ) -> WorkflowScore:
        """Return the score of a step that plays `base`, for the nodes of each agent.

        Args:
            base: The turn of the wrapped family.
            score: Its score.
            after: The workflow after the step.
            own: Scores of the turn with the answers of nodes that are not played.
            earners: Nodes that earn the rewards of their agents.
        """
        nodes = [(node, str(node.agent)) for node in self.graph.nodes]
        paid = {name: own.get(name, score).components for name in earners}
        components = {
            node.name: paid[node.name][agent]
            for node, agent in nodes
            if node.name in paid and agent in paid[node.name]
        }
        diagnostics: dict[str, Mapping[str, Json]] = {
            node.name: score.diagnostics[agent]
            for node, agent in nodes
            if agent in score.diagnostics
        }
        first = nodes[0][0].name
        diagnostics[first] = {**diagnostics.get(first, {}), FACTS: self._facts(base, after)}
        turn = Turn(base.actions, score)
        return WorkflowScore(components, score.solved, diagnostics, base=turn)

    def _facts(self, base: Attempt[Any], after: Progress) -> Json:
        """Return the graph with who wrote and who was played, for pictures of the turn."""
        return {
            **facts_of(self.graph),
            "wrote": [list(names) for names in after.steps],
            "played": {agent: choose(self.graph, agent, after)[0] for agent in base.actions},
        }


def _played(turns: Sequence[Turn]) -> tuple[Turn, ...]:
    """Return the turns of the wrapped family."""
    return tuple(base for base in map(_base_of, turns) if base is not None)


def _written(turns: Sequence[Turn]) -> list[Mapping[str, str]]:
    """Return what was written since the last turn of the wrapped family."""
    written: list[Mapping[str, str]] = []
    for turn in reversed(turns):
        if _base_of(turn) is not None:
            break
        written.append(turn.actions)
    return written[::-1]


def _last_writers(nodes: Set[str], turns: Sequence[Turn]) -> set[str]:
    """Return those of the nodes of an agent that wrote in its last turn; none if it had none."""
    wrote: set[str] = set()
    for turn in reversed(turns):
        if wrote and _base_of(turn) is not None:  # the end of the turn before
            break
        wrote |= nodes & turn.actions.keys()
    return wrote


def _base_of(turn: Turn) -> Turn | None:
    """Return the turn of the wrapped family that a step played, if it played one."""
    return turn.score.base if isinstance(turn.score, WorkflowScore) else None
