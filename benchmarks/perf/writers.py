"""Environment with any number of writers and turns, whose reward is a function of text lengths.

Its cost is negligible, and a trainer of another library can be given the same task.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from pettingzoo import ParallelEnv

from benchmarks.perf.work import length_reward, revision, story_reward

__all__ = ["Writers"]


class Writers(ParallelEnv):  # type: ignore[misc]  # PettingZoo is untyped
    """Environment in which writers read a prompt and, from turn 2 on, their last answer.

    Args:
        prompts: Prompts of the agents, for each task.
        turns: Turns of an episode.
    """

    metadata = {"name": "writers"}  # noqa: RUF012 - as PettingZoo declares it

    def __init__(self, prompts: Sequence[Mapping[str, str]], turns: int = 1) -> None:
        self.prompts, self.max_turns = prompts, turns
        self.possible_agents = list(prompts[0])
        self.agents: list[str] = []
        self.read: dict[str, str] = {}
        self.turn = 0

    def reset(
        self,
        seed: int | None = None,  # noqa: ARG002 - nothing is drawn
        options: Mapping[str, Any] | None = None,
    ) -> tuple[dict[str, str], dict[str, dict[str, Any]]]:
        """Start the task of `options["task_index"]`."""
        self.agents, self.turn = list(self.possible_agents), 0
        self.read = dict(self.prompts[(options or {}).get("task_index", 0)])
        return dict(self.read), {agent: {} for agent in self.agents}

    def step(self, actions: Mapping[str, str]) -> tuple[dict[str, Any], ...]:
        """Score first and last text by their length ratio, a single text by its length."""
        agents, texts = self.possible_agents, list(actions.values())
        self.turn += 1
        reward = (
            story_reward(texts[:1], texts[-1:])[0] if len(texts) > 1 else length_reward(texts[0])
        )
        over = self.turn == self.max_turns
        self.agents = [] if over else list(agents)
        self.read = {agent: revision(self.read[agent], actions[agent]) for agent in agents}
        return (
            dict(self.read),
            dict.fromkeys(agents, reward),
            dict.fromkeys(agents, False),
            dict.fromkeys(agents, over),
            {agent: {} for agent in agents},
        )

    def __deepcopy__(self, memo: dict[int, object]) -> "Writers":
        clone = Writers(self.prompts, self.max_turns)
        clone.agents, clone.read, clone.turn = list(self.agents), dict(self.read), self.turn
        return clone
