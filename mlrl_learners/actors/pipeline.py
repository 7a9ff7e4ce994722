"""One agent after another, each reading what those before it wrote this turn."""

from collections.abc import Mapping, Sequence

from mlrl_learners.actors.wrapping import WrappingActor
from mlrl_learners.types import AgentID, Completion

__all__ = ["PipelineActor"]

_HEAD = "This time your teammates have answered before you, and you read what they wrote."
_TAIL = "Build on it in your own answer, in the format asked for above."


class PipelineActor(WrappingActor):
    """Breaks the blindness of a turn: the agents answer in the environment's order."""

    def play(
        self, observations: Sequence[Mapping[AgentID, str]], *, explore: bool
    ) -> list[dict[AgentID, Completion]]:
        """Ask for the first agent's answers, then for the second's, and so on."""
        said: list[dict[AgentID, Completion]] = [{} for _ in observations]
        for stage in range(max(map(len, observations), default=0)):
            # A node with fewer agents asks for nothing, and keeps its place in the batch.
            asked = [
                {agent: _prompt(each[agent], earlier) for agent in list(each)[stage : stage + 1]}
                for each, earlier in zip(observations, said, strict=True)
            ]
            for earlier, answer in zip(said, self.ask(asked, explore=explore), strict=True):
                earlier.update(answer)
        return said


def _prompt(observation: str, earlier: Mapping[AgentID, Completion]) -> str:
    if not earlier:
        return observation
    quoted = [f"{agent} wrote:\n{answer.text}" for agent, answer in earlier.items()]
    return "\n\n".join([observation, _HEAD, *quoted, _TAIL])
