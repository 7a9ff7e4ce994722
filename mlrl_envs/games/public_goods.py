"""Public goods: several agents decide how much to give to a common pot that pays all of them.

In each round every agent has the same number of tokens and gives some of them. The pot is
multiplied and split evenly, whoever gave. With 1 < `multiplier` < `num_agents` the team earns most
if all give everything, and each agent earns most if it gives nothing.

Agents:
    `player_0`, `player_1`, ..., 4 by default, all at the same time.

Observation:
    The rules and what everybody gave in earlier rounds; with `talk=True` also the messages of this
    round.

Action:
    The number of tokens to give, `<move>2</move>`, or a message of at most 200 characters.

Reward:
    Each round (`endowment` - given + `multiplier` · pot / `num_agents`) / `endowment`: 1 if nobody
    gives, `multiplier` if all give everything. A random move instead of an illegal answer costs
    `illegal_penalty`; any text is a legal message.

Data:
    Seeds. There is no chance, so all tasks are alike.

Version history:
    v0: First version.

Example:
    env = mlrl_envs.make("mlrl/public-goods-v0", split="sample", num_agents=2, rounds=1)
    observations, infos = env.reset(seed=0)
    moves = {"player_0": "<move>4</move>", "player_1": "<move>0</move>"}
    observations, rewards, *_ = env.step(moves)
    assert rewards == {"player_0": 0.8, "player_1": 1.8}

Measures:
    Welfare (mean return), equality, the share of tokens given, and the share of truthful
    announcements; NashConv of small games without talk (`mlrl_envs.games.measures`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import ClassVar

from mlrl_envs.config import check_int, check_number
from mlrl_envs.errors import InvalidArgumentError
from mlrl_envs.games.base import Script, player_names
from mlrl_envs.games.family import GameFamily
from mlrl_envs.games.rounds import RoundConfig, RoundGame, RoundState
from mlrl_envs.types import AgentID

__all__ = ["PublicGoods", "PublicGoodsConfig", "PublicGoodsFamily", "parallel_env"]

MAX_AGENTS = 20


@dataclass(frozen=True)
class PublicGoodsConfig(RoundConfig):
    """Options of the public goods game.

    Attributes:
        num_agents: Number of agents, 2 to 20.
        endowment: Tokens of each agent in each round, 1 to 10.
        multiplier: Factor of the pot, above 0 and at most `num_agents`.
    """

    num_agents: int = 4
    endowment: int = 4
    multiplier: float = 1.6

    def __post_init__(self) -> None:
        """Check types and ranges.

        Raises:
            InvalidArgumentError: If a value has the wrong type or is outside its range.
        """
        super().__post_init__()
        check_int("num_agents", self.num_agents, 2, MAX_AGENTS)
        check_int("endowment", self.endowment, 1, 10)
        check_number("multiplier", self.multiplier)
        if not 0 < self.multiplier <= self.num_agents:
            raise InvalidArgumentError(
                f"need 0 < multiplier <= num_agents = {self.num_agents}, got {self.multiplier}"
            )


@dataclass(frozen=True)
class PublicGoods(RoundGame):
    """The rules of the public goods game; see `PublicGoodsConfig` for the options."""

    num_agents: int = 4
    endowment: int = 4
    multiplier: float = 1.6

    @property
    def agents(self) -> tuple[AgentID, ...]:
        """All agents, with the same part."""
        return player_names(self.num_agents)

    @property
    def options(self) -> tuple[str, ...]:
        """Numbers of tokens to give."""
        return tuple(str(number) for number in range(self.endowment + 1))

    @property
    def reward_range(self) -> tuple[float, float]:
        """Giving all alone, and keeping all while the others give all; messages earn 0."""
        share = self.multiplier / self.num_agents
        return 0.0 if self.talk else share, 1.0 + share * (self.num_agents - 1)

    def payoffs(self, choices: Sequence[str]) -> tuple[float, ...]:
        """Return the tokens kept and the share of the pot, in units of the endowment."""
        given = [int(choice) for choice in choices]
        share = self.multiplier * sum(given) / self.num_agents
        return tuple((self.endowment - own + share) / self.endowment for own in given)

    def rules(self, agent: AgentID) -> str:  # noqa: ARG002  the same for all
        """Return the rules."""
        return (
            f"Each of {self.num_agents} players has {self.endowment} tokens a round and gives some "
            f"to a pot. The pot is multiplied by {self.multiplier:g} and split evenly among all. "
            "You keep what you do not give."
        )

    @property
    def scripts(self) -> Mapping[str, Script[RoundState]]:
        """Scripted players: random, gives nothing, gives all, and conditional.

        The conditional player gives all in round 1, then what the others gave on the mean, rounded.
        """
        return {
            "random": self.random_move,
            "nothing": self._nothing,
            "conditional": self._conditional,
            "all": self._all,
        }

    def _nothing(self, state: RoundState, agent: AgentID, rng: Random) -> str:  # noqa: ARG002  not random
        return self.legal(state, agent)[0]

    def _all(self, state: RoundState, agent: AgentID, rng: Random) -> str:  # noqa: ARG002  not random
        return self.legal(state, agent)[-1]

    def _conditional(self, state: RoundState, agent: AgentID, rng: Random) -> str:
        if not state.choices:
            return self._all(state, agent, rng)
        given = [int(choice) for choice in state.choices[-1]]
        others = sum(given) - given[self.agents.index(agent)]
        return self.legal(state, agent)[round(others / (self.num_agents - 1))]

    def figures(self, state: RoundState) -> Mapping[str, float]:
        """Return the figures of games in rounds, and the share of tokens that was given."""
        given = [int(choice) for choices in state.choices for choice in choices]
        share = sum(given) / (max(len(given), 1) * self.endowment)
        return {**super().figures(state), "given": share}


@dataclass(frozen=True)
class PublicGoodsFamily(GameFamily[PublicGoodsConfig]):
    """Episodes of the public goods game."""

    env_id: ClassVar[str] = "mlrl/public-goods-v0"
    config_type: ClassVar[type[PublicGoodsConfig]] = PublicGoodsConfig
    game_type: ClassVar[type[PublicGoods]] = PublicGoods


parallel_env = PublicGoodsFamily.make_env
