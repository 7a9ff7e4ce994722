"""Toy tasks with a known optimum: small enough to know the gradient of their return exactly.

An answer counts as one of two picks, by its first character, so that any model can play. All
agents earn the same. Each toy fails learners with a particular defect:

- `late_cost`: a pick of 1 pays 1 in turn 0 and costs 0.4 in turn 1, and both turns read the same.
  Learners that weigh later turns of a tree by the number of their nodes learn to pick 0.
- `doors`: if all agents pick 1, the episode ends and pays 0.3; if none does, a pick of 1 pays 1 in
  turn 1; else it pays nothing. Learners that give no credit for what an answer makes possible, or
  weigh turn 1 as if every joint action led there, follow another gradient.
- `retry`: solving pays 1 and ends the task; failing pays 0.5 and runs into the turn limit. Learners
  that add a critic's value behind that limit learn to fail.
- `constant`: every joint action pays 1. The gradient is 0, and a policy should stay as it is.
"""

import copy
import itertools
import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gymnasium.spaces import Text
from pettingzoo import ParallelEnv

from mlrl_learners.types import AgentID

__all__ = ["TOYS", "Outcome", "Toy", "ToyEnv", "expected_return", "pick_of"]

Picks = tuple[int, ...]
"""What the agents picked in one turn, in their order."""
PickChance = Callable[[AgentID, str], Any]
"""Probability that an agent picks 1 after an observation; a float or a differentiable scalar."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a joint pick leads to.

    Attributes:
        reward: What every agent is paid.
        terminated: The task ends here by itself.
        truncated: The turn limit is reached here.
    """

    reward: float
    terminated: bool = False
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class Toy:
    """A game of picks.

    Attributes:
        name: Its name.
        optimum: The highest expected return of any policy.
        observe: What all agents read after some turns of picks.
        play: What the last of some turns of picks leads to.
    """

    name: str
    optimum: float
    observe: Callable[[Sequence[Picks]], str]
    play: Callable[[Sequence[Picks]], Outcome]


def pick_of(text: str) -> int:
    """Return 1 where a text begins with a character of even code point, else 0."""
    return int(bool(text) and ord(text[0]) % 2 == 0)


def expected_return(toy: Toy, agents: Sequence[AgentID], chance: PickChance) -> Any:  # noqa: ANN401
    """Return the exact expected return of agents that pick independently.

    Every line of play is enumerated, so that with differentiable chances the gradient of the
    result is the closed form that estimators are held against.

    Args:
        toy: What is played.
        agents: Who plays.
        chance: Probability that an agent picks 1.
    """
    return _value(toy, tuple(agents), chance, ())


class ToyEnv(ParallelEnv[AgentID, str, str]):  # type: ignore[misc]  # untyped
    """A toy as a PettingZoo parallel environment.

    Args:
        toy: What is played.
        agents: Who plays.
    """

    def __init__(self, toy: Toy, agents: Sequence[AgentID]) -> None:
        self.toy = toy
        self.metadata = {"name": f"toy/{toy.name}-v0"}
        self.possible_agents: list[AgentID] = list(agents)
        self.agents: list[AgentID] = []
        self._history: tuple[Picks, ...] = ()
        self._space = Text(max_length=1000, min_length=0, charset=string.printable)

    def observation_space(self, agent: AgentID) -> Text:  # noqa: ARG002 - alike for all
        """Return the space of what agents read."""
        return self._space

    def action_space(self, agent: AgentID) -> Text:  # noqa: ARG002 - alike for all
        """Return a space of texts; `step` takes any text."""
        return self._space

    def reset(
        self,
        seed: int | None = None,  # noqa: ARG002 - nothing is drawn
        options: Mapping[str, Any] | None = None,  # noqa: ARG002 - there is one task
    ) -> tuple[dict[AgentID, str], dict[AgentID, dict[str, Any]]]:
        """Begin an episode."""
        self.agents, self._history = list(self.possible_agents), ()
        return self._observations(), {agent: {} for agent in self.agents}

    def step(self, actions: Mapping[AgentID, str]) -> tuple[Any, Any, Any, Any, Any]:
        """Play one joint answer."""
        acting = self.agents
        self._history = (*self._history, tuple(pick_of(actions[agent]) for agent in acting))
        outcome = self.toy.play(self._history)
        observations = self._observations()
        if outcome.terminated or outcome.truncated:
            self.agents = []
        return (
            observations,
            dict.fromkeys(acting, outcome.reward),
            dict.fromkeys(acting, outcome.terminated),
            dict.fromkeys(acting, outcome.truncated),
            {agent: {"solved": outcome.terminated} for agent in acting},
        )

    def __deepcopy__(self, memo: dict[int, object]) -> "ToyEnv":
        clone = copy.copy(self)  # space and history never change
        clone.agents = list(self.agents)
        return clone

    def _observations(self) -> dict[AgentID, str]:
        return dict.fromkeys(self.agents, self.toy.observe(self._history))


def _value(
    toy: Toy, agents: tuple[AgentID, ...], chance: PickChance, history: tuple[Picks, ...]
) -> Any:  # noqa: ANN401 - whatever `chance` returns
    text = toy.observe(history)
    chances = [chance(agent, text) for agent in agents]
    total: Any = 0.0
    for picks in itertools.product((0, 1), repeat=len(agents)):
        probability: Any = 1.0
        for pick, p in zip(picks, chances, strict=True):
            probability = probability * (p if pick else 1.0 - p)
        outcome = toy.play((*history, picks))
        value: Any = outcome.reward
        if not (outcome.terminated or outcome.truncated):
            value = value + _value(toy, agents, chance, (*history, picks))
        total = total + probability * value
    return total


def _share(picks: Picks) -> float:
    """Return the share of agents that picked 1."""
    return sum(picks) / len(picks)


def _late_cost(history: Sequence[Picks]) -> Outcome:
    paid = _share(history[-1])
    return Outcome(paid) if len(history) == 1 else Outcome(-0.4 * paid, truncated=True)


def _doors(history: Sequence[Picks]) -> Outcome:
    if len(history) == 2:
        return Outcome(0.0 if any(history[0]) else _share(history[1]), truncated=True)
    return Outcome(0.3, terminated=True) if all(history[0]) else Outcome(0.0)


def _doors_text(history: Sequence[Picks]) -> str:
    if not history:
        return "Which door ?"
    return "A closed door ." if any(history[0]) else "An open door ."


def _retry(history: Sequence[Picks]) -> Outcome:
    if any(history[-1]):
        return Outcome(1.0, terminated=True)
    return Outcome(0.5, truncated=True)


def _constant(history: Sequence[Picks]) -> Outcome:
    return Outcome(1.0, truncated=len(history) == 2)


def _same_text(history: Sequence[Picks]) -> str:  # noqa: ARG001 - every turn reads the same
    return "Pick one ."


TOYS: Mapping[str, Toy] = {
    toy.name: toy
    for toy in (
        Toy("late_cost", 0.6, _same_text, _late_cost),
        Toy("doors", 1.0, _doors_text, _doors),
        Toy("retry", 1.0, _same_text, _retry),
        Toy("constant", 2.0, _same_text, _constant),
    )
}
"""Every toy by its name."""
