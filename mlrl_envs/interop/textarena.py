"""Games of TextArena (arXiv 2504.11442), played in turns with their own prompts and rules.

Needs the extra `mlrl[textarena]`. The ids are `textarena/<Game>`, such as
`textarena/TicTacToe-v0`. Only games on a list can be opened: those that start without a network,
repeat under a seed and survive a copy.

Agents:
    `player_0`, `player_1`, ...: as many as `num_players`. One is asked at a time.

Observation:
    What TextArena shows the player, with the whole history or the last board (its wrappers).

Action:
    Any text; TextArena reads a move from it, mostly in square brackets: `[4]`. An invalid move may
    be repeated, usually once; then the player loses. An answer on which the game's own code fails
    ends the game: -1 for the player, 1 for the other one of two.

Reward:
    TextArena's reward, at the end of the game: in most games 1, 0 or -1. 0 at the turn limit.

Data:
    Seeds. The global generators of `random` and numpy are the same after each call as before.

Version history:
    v0: TextArena 0.7.4.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mlrl_envs.config import SHELL_OPTIONS, build_config, check_int
from mlrl_envs.errors import InvalidArgumentError
from mlrl_envs.games.base import player_names
from mlrl_envs.games.options import GameConfig, GameTask, make_tasks
from mlrl_envs.interop.textarena_games import NAMESPACE, ArenaGame, game_of, games
from mlrl_envs.interop.textarena_position import (
    ArenaPosition,
    ArenaStart,
    load_textarena,
    position_of,
)
from mlrl_envs.shell.env import TextParallelEnv
from mlrl_envs.types import AgentID, Attempt, Json, ProgramRunner, Score, Turn

__all__ = ["TextArenaConfig", "TextArenaFamily", "env_ids", "factory_of", "make_env"]

MAX_TURNS = 200
MAX_TURN_LIMIT = 1_000


@dataclass(frozen=True)
class TextArenaConfig:
    """Options of every game of TextArena.

    Attributes:
        variant: What follows the game in TextArena's id: `"small"`, `"train"`, `"small-train"`; ""
            for the default settings.
        num_players: Number of players; None for the smallest number of the variant.
        split: `"train"`, `"eval"`, `"sample"`, or `"all"` (train and eval). No two share a seed.
        num_tasks: Number of seeds; None for 1000 in `train`, 200 in `eval`, 10 in `sample`.
        max_turns: Turn limit, at which an episode is truncated, at most 1000; None for 200.
    """

    variant: str = ""
    num_players: int | None = None
    split: str = "train"
    num_tasks: int | None = None
    max_turns: int | None = None

    def __post_init__(self) -> None:
        """Check types and ranges; `TextArenaFamily.make` checks what depends on the game.

        Raises:
            InvalidArgumentError: If a value has the wrong type or is outside its range.
        """
        GameConfig(split=self.split, num_tasks=self.num_tasks)
        if self.max_turns is not None:
            check_int("max_turns", self.max_turns, 1, MAX_TURN_LIMIT)
        if not isinstance(self.variant, str):
            raise InvalidArgumentError(f"variant must be a str, got {self.variant!r}")


@dataclass(frozen=True)
class TextArenaFamily:
    """Episodes of one game of TextArena, as pure functions of a seed and the answers so far.

    Attributes:
        textarena_id: TextArena's id, with the variant.
        config: The options.
        agents: Names of the players.
        tasks: Every task of the split.
        reward_range: Lowest and highest reward; rewards outside are clipped.
        max_turns: Turn limit.
    """

    textarena_id: str
    config: TextArenaConfig
    agents: tuple[AgentID, ...]
    tasks: tuple[GameTask, ...]
    reward_range: tuple[float, float]
    max_turns: int
    competitive = True  # no reference actions

    @classmethod
    def make(cls, game: ArenaGame, config: TextArenaConfig) -> "TextArenaFamily":
        """Return the episodes of a game.

        Raises:
            InvalidArgumentError: If the variant cannot be opened, or not with so many players.
        """
        variant = game.variant(config.variant)
        players = min(variant.players) if config.num_players is None else config.num_players
        if players not in variant.players or isinstance(players, bool):
            known = ", ".join(map(str, variant.players))
            raise InvalidArgumentError(
                f"num_players of {game.name} must be {known}, got {players!r}"
            )
        return cls(
            textarena_id=f"{game.name}-{config.variant}".removesuffix("-"),
            config=config,
            agents=player_names(players),
            tasks=make_tasks(
                NAMESPACE + game.name, GameConfig(split=config.split, num_tasks=config.num_tasks)
            ),
            reward_range=variant.rewards,
            max_turns=config.max_turns or MAX_TURNS,
        )

    def position(self, task: GameTask, turns: Sequence[Turn]) -> ArenaPosition:
        """Return the game after `turns`."""
        start = ArenaStart(self.textarena_id, len(self.agents), task.seed)
        return position_of(start, [answer for turn in turns for answer in turn.actions.values()])

    def acting(self, task: GameTask, turns: Sequence[Turn]) -> tuple[AgentID, ...]:
        """Return the player that is asked next."""
        return (self.agents[self.position(task, turns).asked],)

    def left(self, task: GameTask, turns: Sequence[Turn]) -> dict[AgentID, str]:
        """Return all players when the game is over; one that is out before waits for the end."""
        return dict.fromkeys(self.agents, "terminated") if self.position(task, turns).done else {}

    def observe(self, task: GameTask, turns: Sequence[Turn], agent: AgentID) -> str:
        """Return what the game has told a player."""
        position = self.position(task, turns)
        text = position.text(self.agents.index(agent))
        return f"{text}\n\nThe episode is over. {position.reason}" if position.done else text

    def score(
        self,
        attempts: Sequence[Attempt[GameTask]],
        sandbox: ProgramRunner,  # noqa: ARG002  runs no programs
    ) -> list[Score]:
        """Play the answers of all attempts."""
        return [self._score(attempt) for attempt in attempts]

    def reference(self, task: GameTask) -> None:
        """Return None, because TextArena has no solutions."""

    def _score(self, attempt: Attempt[GameTask]) -> Score:
        ((agent, answer),) = attempt.actions.items()
        played = (*attempt.turns, Turn({agent: answer}, Score({}, solved=False)))
        after = self.position(attempt.task, played)
        low, high = self.reward_range
        paid = {
            name: {"outcome": min(max(after.rewards.get(number, 0.0), low), high)}
            for number, name in enumerate(self.agents)
        }
        fact: dict[str, Json] = {"invalid": after.invalid, "reason": after.reason}
        is_won = after.done and len(self.agents) == 1 and paid[agent]["outcome"] >= high
        return Score(paid, is_won, {agent: fact})


def env_ids() -> list[str]:
    """Return the ids of the games that the adapter opens with this Python."""
    return [
        NAMESPACE + name
        for name, game in games().items()
        if any(not variant.refused for variant in game.open.values())
    ]


def factory_of(env_id: str) -> Callable[..., TextParallelEnv]:
    """Return the function that makes the environment with an id of this adapter.

    Raises:
        UnknownNameError: If TextArena has no such game; the message names the nearest one.
    """
    factory = functools.partial(make_env, game_of(env_id))
    vars(factory).update(__module__=__name__, config_type=TextArenaConfig)  # for lists of options
    return factory


def make_env(game: ArenaGame, **options: Any) -> TextParallelEnv:  # noqa: ANN401  checked against the config
    """Make the environment of a game.

    Args:
        game: The game.
        **options: Fields of `TextArenaConfig`, and `sandbox`, `limits` and `render_mode`; see
            `TextParallelEnv`.

    Raises:
        UnknownNameError: If there is no such option or variant.
        InvalidArgumentError: If the game is not on the list, or an option is outside its range.
        MissingPackageError: If TextArena is not installed.
    """
    shell = {name: options.pop(name) for name in SHELL_OPTIONS if name in options}
    family = TextArenaFamily.make(game, _config_of(options))
    load_textarena()
    return TextParallelEnv(family, env_id=NAMESPACE + game.name, **shell)


def _config_of(options: Mapping[str, Any]) -> TextArenaConfig:
    return build_config(TextArenaConfig, options)
