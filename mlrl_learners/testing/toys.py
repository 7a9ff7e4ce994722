"""Toy tasks with a known optimum and a known exact gradient of the return.

The first character of an answer makes it a pick of 0 or 1, so that any model can play. All agents
have the same reward. Each toy detects a particular defect of a learner:

- `late_cost`: a pick of 1 gives 1 in turn 0 and -0.4 in turn 1, with the same observation in both
  turns. Learners that weight later turns of a tree by the number of their nodes learn to pick 0.
- `doors`: if all agents pick 1, the episode ends with a reward of 0.3; if none does, a pick of 1
  gives 1 in turn 1; otherwise the reward is 0. Learners that do not credit an answer with its
  future, or weight turn 1 as if every joint action led there, follow another gradient.
- `retry`: solving gives 1 and ends the task; failing gives 0.5 and reaches the turn limit. Learners
  that add a critic's value after that limit learn to fail.
- `constant`: every joint action gives 1. The gradient is 0, so policies should not change.
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

__all__ = ["TOYS", "Toy", "ToyEnv", "ToyOutcome", "expected_return", "pick_of"]

Picks = tuple[int, ...]
"""Picks of the agents in one turn, in the order of agents."""
PickChance = Callable[[AgentID, str], Any]
"""Probability that an agent picks 1 after an observation; a float or a differentiable scalar."""


@dataclass(frozen=True, slots=True)
class ToyOutcome:
    """Result of a joint pick.

    Attributes:
        reward: Reward of every agent.
        terminated: Whether the task ends here.
        truncated: Whether the turn limit is reached here.
    """

    reward: float
    terminated: bool = False
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class Toy:
    """Toy task in which agents pick 0 or 1.

    Attributes:
        name: Name of the toy.
        optimum: Highest expected return of any policy.
        observe: Function of the picks of all turns that returns the next observation.
        play: Function of the picks of all turns that returns the result of the last one.
    """

    name: str
    optimum: float
    observe: Callable[[Sequence[Picks]], str]
    play: Callable[[Sequence[Picks]], ToyOutcome]


def pick_of(text: str) -> int:
    """Return 1 if the first character of a text has an even code point, otherwise 0."""
    return int(bool(text) and ord(text[0]) % 2 == 0)


def expected_return(toy: Toy, agents: Sequence[AgentID], chance: PickChance) -> Any:  # noqa: ANN401
    """Return the exact expected return of agents that pick independently.

    All episodes are enumerated, so with differentiable probabilities the result has the exact
    gradient, the reference for estimators.

    Args:
        toy: The toy.
        agents: The agents.
        chance: Probability that an agent picks 1 after an observation.
    """
    return _value(toy, tuple(agents), chance, ())


class ToyEnv(ParallelEnv[AgentID, str, str]):  # type: ignore[misc]  # untyped
    """A toy as a PettingZoo parallel environment.

    Args:
        toy: The toy.
        agents: The agents.
    """

    def __init__(self, toy: Toy, agents: Sequence[AgentID]) -> None:
        self.toy = toy
        self.metadata = {"name": f"toy/{toy.name}-v0"}
        self.possible_agents: list[AgentID] = list(agents)
        self.agents: list[AgentID] = []
        self._history: tuple[Picks, ...] = ()
        self._space = Text(max_length=1000, min_length=0, charset=string.printable)

    def observation_space(self, agent: AgentID) -> Text:  # noqa: ARG002 - the same for all agents
        """Return the space of observations."""
        return self._space

    def action_space(self, agent: AgentID) -> Text:  # noqa: ARG002 - the same for all agents
        """Return a space of texts; `step` accepts any text."""
        return self._space

    def reset(
        self,
        seed: int | None = None,  # noqa: ARG002 - the toys are deterministic
        options: Mapping[str, Any] | None = None,  # noqa: ARG002 - there is one task
    ) -> tuple[dict[AgentID, str], dict[AgentID, dict[str, Any]]]:
        """Start an episode."""
        self.agents, self._history = list(self.possible_agents), ()
        return self._observations(), {agent: {} for agent in self.agents}

    def step(self, actions: Mapping[AgentID, str]) -> tuple[Any, Any, Any, Any, Any]:
        """Play one joint action."""
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
    """Return the fraction of agents that picked 1."""
    return sum(picks) / len(picks)


def _late_cost(history: Sequence[Picks]) -> ToyOutcome:
    paid = _share(history[-1])
    return ToyOutcome(paid) if len(history) == 1 else ToyOutcome(-0.4 * paid, truncated=True)


def _doors(history: Sequence[Picks]) -> ToyOutcome:
    if len(history) == 2:
        return ToyOutcome(0.0 if any(history[0]) else _share(history[1]), truncated=True)
    return ToyOutcome(0.3, terminated=True) if all(history[0]) else ToyOutcome(0.0)


def _doors_text(history: Sequence[Picks]) -> str:
    if not history:
        return "Which door ?"
    return "A closed door ." if any(history[0]) else "An open door ."


def _retry(history: Sequence[Picks]) -> ToyOutcome:
    if any(history[-1]):
        return ToyOutcome(1.0, terminated=True)
    return ToyOutcome(0.5, truncated=True)


def _constant(history: Sequence[Picks]) -> ToyOutcome:
    return ToyOutcome(1.0, truncated=len(history) == 2)


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
