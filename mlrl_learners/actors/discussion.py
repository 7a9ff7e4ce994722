"""Actor with one round of discussion: all agents read each other's drafts before they answer."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from mlrl_learners.actors.wrapping import WrappingActor
from mlrl_learners.types import AgentID, Completion

__all__ = ["DiscussionActor"]

_HEAD = "Every team member has written a first answer."
_TAIL = "Now write your final answer, in the format asked for above."


class DiscussionActor(WrappingActor):
    """Actor in which every agent answers twice; the second answer is played.

    The token usage of an answer includes its draft.
    """

    def play(
        self, observations: Sequence[Mapping[AgentID, str]], *, explore: bool
    ) -> list[dict[AgentID, Completion]]:
        """Return the second answers of all agents, each given the drafts of all agents."""
        drafts = self.ask(observations, explore=explore)
        again = [
            {agent: _prompt(text, agent, draft) for agent, text in each.items()}
            for each, draft in zip(observations, drafts, strict=True)
        ]
        return [
            {a: replace(c, usage=draft[a].cost + c.cost) for a, c in answer.items()}
            for draft, answer in zip(drafts, self.ask(again, explore=explore), strict=True)
        ]


def _prompt(observation: str, agent: AgentID, drafts: Mapping[AgentID, Completion]) -> str:
    others = [f"{name} wrote:\n{d.text}" for name, d in drafts.items() if name != agent]
    own = f"You wrote:\n{drafts[agent].text}"
    return "\n\n".join([observation, _HEAD, own, *others, _TAIL])
