"""Actor in which agents answer in order, each reading the earlier answers of the turn."""

from collections.abc import Mapping, Sequence

from mlrl_learners.actors.wrapping import WrappingActor
from mlrl_learners.types import AgentID, Completion

__all__ = ["PipelineActor"]

_HEAD = "This time your teammates have answered before you, and you read what they wrote."
_TAIL = "Build on it in your own answer, in the format asked for above."


class PipelineActor(WrappingActor):
    """Actor in which the agents of a turn answer one after another, in the environment's order."""

    def play(
        self, observations: Sequence[Mapping[AgentID, str]], *, explore: bool
    ) -> list[dict[AgentID, Completion]]:
        """Return the answers of all agents, each given those of the agents before it."""
        answers: list[dict[AgentID, Completion]] = [{} for _ in observations]
        for stage in range(max(map(len, observations), default=0)):
            # Observations with fewer agents are empty here, but keep their index in the batch.
            asked = [
                {agent: _prompt(each[agent], earlier) for agent in list(each)[stage : stage + 1]}
                for each, earlier in zip(observations, answers, strict=True)
            ]
            for earlier, answer in zip(answers, self.ask(asked, explore=explore), strict=True):
                earlier.update(answer)
        return answers


def _prompt(observation: str, earlier: Mapping[AgentID, Completion]) -> str:
    if not earlier:
        return observation
    quoted = [f"{agent} wrote:\n{answer.text}" for agent, answer in earlier.items()]
    return "\n\n".join([observation, _HEAD, *quoted, _TAIL])
