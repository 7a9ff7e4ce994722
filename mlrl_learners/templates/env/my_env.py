"""A corridor for two: agents must step to the side that the house rule names.

Both agents read the rule and answer at the same time; the answer is one word.

Version history:
    v0: first version.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from mlrl_envs import TextParallelEnv
from mlrl_envs.errors import unknown_name
from mlrl_envs.types import AgentID, Attempt, ProgramRunner, Score, Task, Turn

ENV_ID = "me/my-env-v0"
ASK = "You meet your teammate in a corridor. To which side do you step? Say left or right."


@dataclass(frozen=True)
class Rule(Task):
    """Task: a house rule and its side."""

    text: str
    side: str


SPLITS = {
    "train": (
        Rule("train/0", "In this house we keep to the left.", "left"),
        Rule("train/1", "Keep right, as on the road outside.", "right"),
        Rule("train/2", "The side of the heart is the side to take.", "left"),
        Rule("train/3", "Step to where most people hold their pen.", "right"),
    ),
    "eval": (
        Rule("eval/0", "Port side, please.", "left"),
        Rule("eval/1", "Starboard side, please.", "right"),
    ),
}


@dataclass(frozen=True)
class MyEnv:
    """Task family: observations and scores as pure functions."""

    tasks: tuple[Rule, ...]
    max_turns: int
    agents: tuple[AgentID, ...] = ("north", "south")
    reward_range: tuple[float, float] = (0.0, 1.0)

    def observe(self, task: Rule, turns: Sequence[Turn], agent: AgentID) -> str:
        """Return the rule; from turn 2 on with feedback on the last answer."""
        last = [f"You said {turns[-1].actions[agent]!r}. You collided."] if turns else []
        return "\n\n".join([task.text, ASK, *last])

    def score(self, attempts: Sequence[Attempt[Rule]], sandbox: ProgramRunner) -> list[Score]:  # noqa: ARG002 - runs no programs
        """Return half for the agent's side, and half if all agents chose their side."""
        return [self._score(attempt) for attempt in attempts]

    def reference(self, task: Rule) -> Mapping[AgentID, str] | None:
        """Return a correct joint action."""
        return dict.fromkeys(self.agents, task.side)

    def _score(self, attempt: Attempt[Rule]) -> Score:
        sides = {a: attempt.actions[a].strip().lower() == attempt.task.side for a in self.agents}
        solved = all(sides.values())
        return Score(
            {a: {"side": 0.5 * sides[a], "together": 0.5 * solved} for a in self.agents}, solved
        )


def parallel_env(
    split: str = "train", max_turns: int = 2, render_mode: Literal["ansi", "human"] | None = None
) -> TextParallelEnv:
    """Make the environment with the options of `mlrl_envs.make`."""
    if split not in SPLITS:
        raise unknown_name("split", split, SPLITS)
    return TextParallelEnv(MyEnv(SPLITS[split], max_turns), env_id=ENV_ID, render_mode=render_mode)
