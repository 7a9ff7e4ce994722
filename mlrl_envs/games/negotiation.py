"""Negotiation: agents with private values divide items, or get nothing.

In each round all agents may talk, then say at the same time what they take. If there is enough for
all, everybody gets that, and the game ends; after the last round without a deal nobody gets
anything.

Agents:
    `player_0` to `player_3`, two by default, at the same time.

Observation:
    The items, what they are worth to the agent, the messages of this round, and what all wanted in
    earlier rounds. The values of the others are secret.

Action:
    A message, of which 200 characters are sent; then a demand, such as `2 books, 0 hats, 1 balls`.
    Items that are not named are not wanted.

Reward:
    The worth of the items that the agent gets, over 10, which is the worth of all items to every
    agent. Solved: there is a deal.

Scripts:
    `random`; `greedy` (everything that has a value); `concede` (everything of value, then less of
    what others want, then an equal share; honest); `nash` (knows all values and takes its part of
    the Nash bargaining solution).

Measures:
    Deal, welfare (mean return), efficiency (sum of worths over the largest possible), whether the
    deal is Pareto-optimal, envy (mean worth that agents miss to the bundle they like best), and
    with talk the share of truthful claims: messages that name one kind of item claim that it is
    worth most to the sender.

Data:
    Items and values are drawn from the seed as in M. Lewis et al., "Deal or No Deal? End-to-End
    Learning for Negotiation Dialogues", arXiv:1706.05125: 5 to 7 items of three kinds, every item
    worth something to somebody, some kind to two agents at least. Different here: demands are made
    at the same time, several times.

Version history:
    v0: First version.

Example:
    env = mlrl_envs.make("mlrl/negotiation-v0", talk=False)
    observations, infos = env.reset(seed=0)
    actions = dict.fromkeys(env.agents, "<move>1 books, 0 hats, 0 balls</move>")
    observations, rewards, *_ = env.step(actions)
"""

import itertools
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

from mlrl_envs.config import check_int
from mlrl_envs.errors import InvalidArgumentError
from mlrl_envs.games.base import Game, Script, answer_parts, message_of, player_names
from mlrl_envs.games.chance import generator
from mlrl_envs.games.family import GameFamily
from mlrl_envs.games.negotiation_scripts import play_concede, play_greedy, play_nash, spoken
from mlrl_envs.games.negotiation_state import NegotiationState, bundle_text, truthful_share
from mlrl_envs.games.negotiation_values import (
    ITEMS,
    TOTAL,
    Bundle,
    draw_counts,
    draw_values,
    efficiency,
    envy,
    is_pareto,
    worth,
)
from mlrl_envs.games.options import GameConfig
from mlrl_envs.games.outcomes import welfare
from mlrl_envs.types import AgentID

__all__ = ["Negotiation", "NegotiationConfig", "NegotiationFamily", "parallel_env"]

_PART = re.compile(r"(?<![\w.-])(\d{1,2})(?: | ?x )(book|hat|ball)s?\b", re.ASCII)
_NAMED = re.compile(r"\b(book|hat|ball)s?[\"']? ?[:=] ?(\d{1,2})(?![\w.])", re.ASCII)  # "hats: 1"


@dataclass(frozen=True)
class Negotiation(Game[NegotiationState]):
    """The rules of a negotiation.

    Attributes:
        num_agents: Number of agents, 2 to 4.
        rounds: Number of rounds, 1 to 10.
        talk: Whether all send a message before each demand.
    """

    solvable: ClassVar[bool] = True

    num_agents: int = 2
    rounds: int = 3
    talk: bool = True

    def __post_init__(self) -> None:
        """Check types and ranges.

        Raises:
            InvalidArgumentError: If a value is outside its range.
        """
        check_int("num_agents", self.num_agents, 2, 4)
        check_int("rounds", self.rounds, 1, 10)
        if not isinstance(self.talk, bool):
            raise InvalidArgumentError(f"talk must be a bool, got {self.talk!r}")

    @property
    def agents(self) -> tuple[AgentID, ...]:
        """`player_0`, `player_1` and so on."""
        return player_names(self.num_agents)

    @property
    def reward_range(self) -> tuple[float, float]:
        """(0, 1)."""
        return 0.0, 1.0

    @property
    def max_moves(self) -> int:
        """A demand for each round, and a message before it if agents talk."""
        return self.rounds * (2 if self.talk else 1)

    @property
    def scripts(self) -> Mapping[str, Script[NegotiationState]]:
        """`random`, `greedy`, `concede` and `nash`."""
        return {
            "random": self.random_move,
            "greedy": partial(play_greedy, self.agents),
            "concede": partial(play_concede, self.agents),
            "nash": partial(play_nash, self.agents),
        }

    def rules(self, agent: AgentID) -> str:
        """Return how items are divided."""
        others = ", ".join(name for name in self.agents if name != agent)
        return (
            f"You are {agent} and divide items with {others}. In each of {self.rounds} rounds "
            f"everybody{' may talk, then' if self.talk else ''} says what they take. If there is "
            "enough for all, everybody gets that and the game ends; without a deal after the last "
            "round nobody gets anything. Values are private and differ."
        )

    def start(self, seed: int) -> NegotiationState:
        """Draw the items and the values."""
        rng = generator(seed)
        counts = draw_counts(rng)
        return NegotiationState(
            counts, draw_values(counts, self.num_agents, rng), self.rounds, self.talk
        )

    def acting(self, state: NegotiationState) -> tuple[AgentID, ...]:
        """Return all agents, until there is a deal or the last round is over."""
        over = state.deal is not None or len(state.demands) == self.rounds
        return () if over else self.agents

    def legal(self, state: NegotiationState, agent: AgentID) -> tuple[str, ...]:  # noqa: ARG002  all alike
        """Return all bundles, or claims about each kind of item as messages."""
        if state.talks:
            return tuple(map(spoken, ITEMS))
        bundles = itertools.product(*(range(count + 1) for count in state.counts))
        return tuple(map(bundle_text, bundles))

    def read(self, state: NegotiationState, agent: AgentID, text: str) -> str | None:  # noqa: ARG002  all alike
        """Return the message, or the bundle that an answer names."""
        if state.talks:
            return message_of(text)
        found = {_demand_of(part, state.counts) for part in answer_parts(text)}
        return found.pop() if len(found) == 1 else None

    def play(self, state: NegotiationState, moves: Mapping[AgentID, str]) -> NegotiationState:
        """Append the messages or the demands."""
        texts = tuple(moves[agent] for agent in self.agents)
        if state.talks:
            return replace(state, messages=(*state.messages, texts))
        return replace(state, demands=(*state.demands, tuple(map(_bundle_of, texts))))

    def returns(self, state: NegotiationState) -> Mapping[AgentID, float]:
        """Return the worth of each agent's items over that of all items; 0 without a deal."""
        deal = state.deal or ((0,) * len(ITEMS),) * self.num_agents
        worths = map(worth, deal, state.values)
        return {agent: won / TOTAL for agent, won in zip(self.agents, worths, strict=True)}

    def solved(self, state: NegotiationState) -> bool:
        """Return whether there is a deal."""
        return state.deal is not None

    def figures(self, state: NegotiationState) -> Mapping[str, float]:
        """Return the measures of the deal, and the share of truthful claims if there are any."""
        found = {"deal": float(state.deal is not None), "welfare": welfare(self.returns(state))}
        nothing = ((0,) * len(ITEMS),) * self.num_agents
        deal = state.deal or nothing
        found["efficiency"] = efficiency(deal, state.counts, state.values)
        found["pareto"] = float(is_pareto(deal, state.counts, state.values))
        found["envy"] = envy(deal, state.values)
        share = truthful_share(state)
        return found if share is None else {**found, "truthful": share}

    def view(self, state: NegotiationState, agent: AgentID) -> str:
        """Return the items, the agent's values, earlier demands and the messages of this round."""
        own = self.agents.index(agent)
        values = ", ".join(
            f"{item} {value}" for item, value in zip(ITEMS, state.values[own], strict=True)
        )
        names = ["you" if name == agent else name for name in self.agents]
        lines = [
            f"Items: {bundle_text(state.counts)}.",
            f"Worth of one to you: {values}. All together: {TOTAL}.",
        ]
        for number, demands in enumerate(state.demands, start=1):
            wanted = map(bundle_text, demands)
            told = (f"{name} wanted {text}" for name, text in zip(names, wanted, strict=True))
            lines.append(f"Round {number}: {'; '.join(told)}.")
        if state.deal is not None:
            return "\n".join(
                [*lines, f"It is a deal, worth {worth(state.deal[own], state.values[own])}."]
            )
        if len(state.demands) < self.rounds:
            lines.append(f"Now round {len(state.demands) + 1} of {self.rounds}.")
        if self.talk and state.messages:
            told = (
                f'{name}: "{text}"' for name, text in zip(names, state.messages[-1], strict=True)
            )
            lines.append(f"Last messages: {', '.join(told)}")
        return "\n".join(lines)

    def request(self, state: NegotiationState, agent: AgentID) -> str:  # noqa: ARG002  all alike
        """Return the request for a message or a demand."""
        if state.talks:
            return "Send a short message to the others: <move>...</move>"
        example = ", ".join(f"... {item}" for item in ITEMS)
        return f"Say how many you take: <move>{example}</move>"


@dataclass(frozen=True)
class NegotiationConfig(GameConfig):
    """Options of a negotiation.

    Attributes:
        num_agents: Number of agents, 2 to 4.
        rounds: Number of rounds, 1 to 10.
        talk: Whether all send a message before each demand.
    """

    num_agents: int = 2
    rounds: int = 3
    talk: bool = True


class NegotiationFamily(GameFamily[NegotiationConfig]):
    """Negotiations of 2 to 4 agents."""

    env_id: ClassVar[str] = "mlrl/negotiation-v0"
    config_type: ClassVar[type[GameConfig]] = NegotiationConfig
    game_type: ClassVar[type[Negotiation]] = Negotiation


parallel_env = NegotiationFamily.make_env


def _demand_of(text: str, counts: Bundle) -> str | None:
    """Return the bundle that a text names, or None if it is unclear or more than there is."""
    plain = _NAMED.sub(r"\2 \1", " ".join(text.lower().split()))
    parts = [(f"{item}s", int(n)) for n, item in _PART.findall(plain)]
    wanted = dict(parts)
    if not parts or len(wanted) < len(parts):
        return None
    bundle = tuple(wanted.get(item, 0) for item in ITEMS)
    return bundle_text(bundle) if all(map(int.__le__, bundle, counts)) else None


def _bundle_of(text: str) -> Bundle:
    return tuple(int(part.split()[0]) for part in text.split(", "))
