"""Toy tasks with a known optimum and a known exact gradient of the return.

The first character of an answer makes it a pick of 0 or 1, so that any model can play. All agents
have the same reward, except in `relay`. Each toy detects a particular defect of a learner:

- `late_cost`: a pick of 1 gives 1 in turn 0 and -0.4 in turn 1, with the same observation in both
  turns. Learners that weight later turns of a tree by the number of their nodes learn to pick 0.
- `doors`: if all agents pick 1, the episode ends with a reward of 0.3; if none does, a pick of 1
  gives 1 in turn 1; otherwise the reward is 0. Learners that do not credit an answer with its
  future, or weight turn 1 as if every joint action led there, follow another gradient.
- `retry`: solving gives 1 and ends the task; failing gives 0.5 and reaches the turn limit. Learners
  that add a critic's value after that limit learn to fail.
- `relay`: agents pick one by one, four times in all, and are paid apart. The first pick costs 0.5
  at once and gives 2 in the next turn, when another agent acts; the second gives 0.3 a turn later
  if it equals the first; the third gives 1, and its agent leaves; the fourth gives 1, or 0.2 after
  a third pick of 1. Learners that take waiting for leaving, lose what arrives in between, or credit
  an agent with what follows after it has left, learn other picks.
- `constant`: every joint action gives 1. The gradient is 0, so policies should not change.
"""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mlrl_learners.types import AgentID

__all__ = [
    "TEXTS",
    "TOYS",
    "WAITING",
    "Picks",
    "Toy",
    "ToyOutcome",
    "expected_return",
    "expected_returns",
    "pick_of",
]

TEXTS = ("open", "Pick")
"""A text of each pick."""
WAITING = "Wait ."
"""Observation of an agent that waits."""
Picks = tuple[int | None, ...]
"""Picks of the agents in one turn, in the order of agents; None for agents that did not act."""
PickChance = Callable[[AgentID, str], Any]
"""Probability that an agent picks 1 after an observation; a float or a differentiable scalar."""


@dataclass(frozen=True, slots=True)
class ToyOutcome:
    """Result of a joint pick.

    Attributes:
        reward: Reward of every agent, or one for each agent.
        terminated: Whether the task ends here.
        truncated: Whether the turn limit is reached here.
        left: Numbers of the agents that leave the episode here although it goes on.
    """

    reward: float | Sequence[float]
    terminated: bool = False
    truncated: bool = False
    left: tuple[int, ...] = ()

    def reward_of(self, number: int) -> float:
        """Return the reward of an agent."""
        return self.reward[number] if isinstance(self.reward, Sequence) else self.reward


def _everybody(history: Sequence[Picks], num_agents: int) -> Sequence[int]:  # noqa: ARG001 - in every turn
    return range(num_agents)


@dataclass(frozen=True, slots=True)
class Toy:
    """Toy task in which agents pick 0 or 1.

    Attributes:
        name: Name of the toy.
        optimum: Highest expected return of any policy, mean over agents.
        max_turns: Largest number of turns.
        observe: Function of the picks of all turns that returns the next observation of the agents
            that act.
        play: Function of the picks of all turns that returns the result of the last one.
        acting: Function of the picks of all turns and of the number of agents that returns the
            numbers of the agents that act next.
        best_pick: Pick of an optimal policy in every turn; None if it depends on the turn.
    """

    name: str
    optimum: float
    max_turns: int
    observe: Callable[[Sequence[Picks]], str]
    play: Callable[[Sequence[Picks]], ToyOutcome]
    acting: Callable[[Sequence[Picks], int], Sequence[int]] = _everybody
    best_pick: int | None = None

    @property
    def takes_turns(self) -> bool:
        """Whether agents wait in some turns."""
        return self.acting is not _everybody


def pick_of(text: str) -> int:
    """Return 1 if the first character of a text has an even code point, otherwise 0."""
    return int(bool(text) and ord(text[0]) % 2 == 0)


def expected_return(toy: Toy, agents: Sequence[AgentID], chance: PickChance) -> Any:  # noqa: ANN401
    """Return the exact expected return, mean over agents; see `expected_returns`."""
    return sum(expected_returns(toy, agents, chance)) / len(agents)


def expected_returns(toy: Toy, agents: Sequence[AgentID], chance: PickChance) -> list[Any]:
    """Return the exact expected return of each agent, if agents pick independently.

    All episodes are enumerated, so with differentiable probabilities the results have the exact
    gradients, the references for estimators.

    Args:
        toy: The toy.
        agents: The agents.
        chance: Probability that an agent picks 1 after an observation.
    """
    return _values(toy, tuple(agents), chance, (), frozenset())


def _values(
    toy: Toy,
    agents: tuple[AgentID, ...],
    chance: PickChance,
    history: tuple[Picks, ...],
    gone: frozenset[int],
) -> list[Any]:  # values are of the type that `chance` returns
    text = toy.observe(history)
    acting = [number for number in toy.acting(history, len(agents)) if number not in gone]
    chances = [chance(agents[number], text) for number in acting]
    totals: list[Any] = [0.0] * len(agents)
    for picks in itertools.product((0, 1), repeat=len(acting)):
        probability: Any = 1.0
        for pick, p in zip(picks, chances, strict=True):
            probability = probability * (p if pick else 1.0 - p)
        played = dict(zip(acting, picks, strict=True))
        following = (*history, tuple(played.get(number) for number in range(len(agents))))
        outcome = toy.play(following)
        later: list[Any] = [0.0] * len(agents)
        if not (outcome.terminated or outcome.truncated):
            later = _values(toy, agents, chance, following, gone | set(outcome.left))
        for number in range(len(agents)):
            if number not in gone:
                value = outcome.reward_of(number) + later[number]
                totals[number] = totals[number] + probability * value
    return totals


def _share(picks: Picks) -> float:
    """Return the fraction of agents that picked 1."""
    return sum(pick or 0 for pick in picks) / len(picks)


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


def _turns_of_relay(history: Sequence[Picks], num_agents: int) -> Sequence[int]:
    return (len(history) % num_agents,)


def _relay(history: Sequence[Picks]) -> ToyOutcome:
    num_agents = len(history[0])
    picks = [history[t][t % num_agents] or 0 for t in range(len(history))]
    turn = len(history) - 1
    earned = (
        {0: -0.5 * picks[0]},
        {0: 2.0 * picks[0]},
        {1: 0.3 * (picks[:1] == picks[1:2]), 2: 1.0 * sum(picks[2:3])},
        {3: sum(picks[3:4]) * (1.0 - 0.8 * sum(picks[2:3]))},
    )[turn]
    rewards = [0.0] * num_agents
    for place, reward in earned.items():  # the agent of that turn; half its share of the team
        rewards[place % num_agents] += reward * num_agents / 2
    leaves = (2 % num_agents,) if turn == 2 and num_agents > 1 else ()
    solved = turn == 3 and all(picks)
    return ToyOutcome(rewards, terminated=solved, truncated=turn == 3 and not solved, left=leaves)


def _relay_text(history: Sequence[Picks]) -> str:
    seen = f" {max(pick or 0 for pick in history[0])}" if len(history) == 1 else ""
    return f"Pick {len(history)} .{seen}"


def _constant(history: Sequence[Picks]) -> ToyOutcome:
    return ToyOutcome(1.0, truncated=len(history) == 2)


def _same_text(history: Sequence[Picks]) -> str:  # noqa: ARG001 - every turn reads the same
    return "Pick one ."


TOYS: Mapping[str, Toy] = {
    toy.name: toy
    for toy in (
        Toy("late_cost", 0.6, 2, _same_text, _late_cost),
        Toy("doors", 1.0, 2, _doors_text, _doors),
        Toy("retry", 1.0, 1, _same_text, _retry, best_pick=1),
        Toy("relay", 1.5, 4, _relay_text, _relay, _turns_of_relay, best_pick=1),
        Toy("constant", 2.0, 2, _same_text, _constant),
    )
}
"""Every toy by its name."""
