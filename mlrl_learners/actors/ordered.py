"""Actors in which the agents of a turn read each other, in the steps of a workflow."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

from mlrl_envs.workflows import Graph, follow, prompt_of, shape
from mlrl_learners.actors.wrapping import WrappingActor
from mlrl_learners.types import AgentID, Completion

__all__ = ["DiscussionActor", "OrderedActor", "PipelineActor"]


class OrderedActor(WrappingActor):
    """Actor in which the agents of a turn are the nodes of a graph; their last answers are played.

    The same graphs are environments, in which all answers are trained: `mlrl_envs.workflow`. The
    token usage of an answer includes earlier answers of its agent in the turn.
    """

    SHAPE: ClassVar[str]

    def play(
        self, observations: Sequence[Mapping[AgentID, str]], *, explore: bool
    ) -> list[dict[AgentID, Completion]]:
        """Return the last answers of all agents."""
        graphs: dict[tuple[AgentID, ...], Graph] = {}
        for each in observations:
            if each:
                graphs.setdefault(tuple(each), shape(self.SHAPE, tuple(each)))
        written: list[list[Mapping[str, str]]] = [[] for _ in observations]
        played: list[dict[AgentID, Completion]] = [{} for _ in observations]
        while any(
            asked := [
                _asked(graphs[tuple(each)], each, steps) if each else {}
                for each, steps in zip(observations, written, strict=True)
            ]
        ):
            # Observations that nobody answers any more are empty here, but keep their index.
            for i, answers in enumerate(self.ask(asked, explore=explore)):
                if answers:
                    written[i].append({agent: each.text for agent, each in answers.items()})
                    played[i] |= {a: _added(played[i].get(a), c) for a, c in answers.items()}
        return [
            {agent: answers[agent] for agent in each}
            for each, answers in zip(observations, played, strict=True)
        ]


class PipelineActor(OrderedActor):
    """Actor in which the agents of a turn answer one after another, in the environment's order."""

    SHAPE = "pipeline"


class DiscussionActor(OrderedActor):
    """Actor in which every agent answers twice; the second answer is played."""

    SHAPE = "discussion"


def _asked(
    graph: Graph, observation: Mapping[AgentID, str], written: Sequence[Mapping[str, str]]
) -> dict[AgentID, str]:
    """Return what the nodes of the next step read."""
    progress = follow(graph, observation, written)
    return {
        name: prompt_of(graph.node(name), observation[name], progress.answers)
        for name in progress.asked
    }


def _added(earlier: Completion | None, answer: Completion) -> Completion:
    """Return an answer whose usage includes the earlier one of its agent."""
    return answer if earlier is None else replace(answer, usage=earlier.cost + answer.cost)
