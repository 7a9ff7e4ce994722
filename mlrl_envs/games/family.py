"""Text environments of games: prompts, moves read from text, rewards and tasks.

An observation consists of the rules, what the agent may know, and the request to move. A reward is
the change of an agent's return. Tasks are seeds of the game's chance. No text raises an error: the
option `illegal` says what an answer costs that names no legal move.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from random import Random
from typing import Any, ClassVar, Generic, TypeVar

from mlrl_envs.config import SHELL_OPTIONS, build_config
from mlrl_envs.datasets.draws import Draws
from mlrl_envs.errors import unknown_name
from mlrl_envs.games.base import Game, tagged
from mlrl_envs.games.env import GameEnv
from mlrl_envs.games.options import GameConfig, GameTask, make_tasks
from mlrl_envs.games.position import Position, Step, note_of, step_of
from mlrl_envs.types import AgentID, Attempt, Json, ProgramRunner, Score, Turn

__all__ = ["GameConfig", "GameFamily", "GameTask"]

OVER = "The episode is over."
MAX_POSITIONS = 20_000


_positions: dict[tuple[Game[Any], int, tuple[Step, ...]], Position] = {}
# All agents of a step ask for the same position: found without a hash of all turns, the time of a
# step is linear in the number of agents.
_latest: dict[str, tuple[Sequence[Turn], GameTask, Game[Any], Position]] = {}


ConfigT = TypeVar("ConfigT", bound=GameConfig)


@dataclass(frozen=True)
class GameFamily(Generic[ConfigT]):
    """The episodes of one game, as pure functions of a task and the turns played.

    A subclass sets `env_id`, `config_type` and `game_type`. Fields of the game are options of the
    same name; `make_game` may be redefined.

    Attributes:
        env_id: The id of the environment.
        config_type: The dataclass of its options.
        game_type: The class of the game.
        config: The options.
        tasks: Every task of the split.
        game: The game.
    """

    env_id: ClassVar[str]
    config_type: ClassVar[type[GameConfig]] = GameConfig
    game_type: ClassVar[type[Game[Any]]]

    config: ConfigT
    tasks: tuple[GameTask, ...]
    game: Game[Any] = field(repr=False)

    @classmethod
    def make_env(cls, **options: Any) -> GameEnv:  # noqa: ANN401  checked against the config
        """Build the environment.

        Args:
            **options: Fields of `config_type`, and `sandbox`, `limits` and `render_mode`; see
                `TextParallelEnv`.

        Raises:
            UnknownNameError: If there is no such option.
            InvalidArgumentError: If an option is outside its range.
        """
        shell = {name: options.pop(name) for name in SHELL_OPTIONS if name in options}
        config = build_config(cls.config_type, options)
        name = cls.env_id.split("/")[-1].rpartition("-v")[0]
        family = cls(config, make_tasks(name, config), cls.make_game(config))  # type: ignore[arg-type]
        return GameEnv(family, env_id=cls.env_id, **shell)

    @classmethod
    def make_game(cls, config: GameConfig) -> Game[Any]:
        """Return the game with the options of `config`."""
        names = [each.name for each in fields(cls.game_type)]  # type: ignore[arg-type]
        return cls.game_type(**{name: getattr(config, name) for name in names})

    @property
    def agents(self) -> tuple[AgentID, ...]:
        """Names of the agents, in a fixed order."""
        return self.game.agents

    @property
    def max_turns(self) -> int:
        """Maximum number of turns of an episode."""
        longest = self.game.max_moves * (2 if self.config.illegal == "retry" else 1)
        limit = self.config.max_turns
        return longest if limit is None else min(limit, longest)

    @property
    def reward_range(self) -> tuple[float, float]:
        """Lowest and highest reward of one turn, with what an illegal move costs."""
        low, high = self.game.reward_range
        if self.config.illegal != "random":  # a game that ends, or goes on after a retry, pays 0
            low, high = min(low, 0.0), max(high, 0.0)
        return low - (0.0 if self.config.illegal == "lose" else self.config.illegal_penalty), high

    @property
    def competitive(self) -> bool:
        """Whether reference actions need not solve the task."""
        return not self.game.solvable or self.max_turns < self.game.max_moves

    def position(self, task: GameTask, turns: Sequence[Turn]) -> Position:
        """Return the position after `turns`; recent positions are cached."""
        latest = _latest.get("asked for")
        # A tuple of turns never changes, a list might.
        same = latest and latest[0] is turns and latest[1] is task and latest[2] is self.game
        if latest and same and isinstance(turns, tuple):
            return latest[3]
        position = self._position(task, turns)
        _latest["asked for"] = (turns, task, self.game, position)
        return position

    def _position(self, task: GameTask, turns: Sequence[Turn]) -> Position:
        steps = tuple(step_of(turn) for turn in turns)
        played = len(steps)
        while played and (self.game, task.seed, steps[:played]) not in _positions:
            played -= 1
        position = _positions.get((self.game, task.seed, steps[:played]))
        if position is None:
            position, played = Position(self.game.start(task.seed)), 0
        for number in range(played, len(steps)):
            position = self._after(position, steps[number])
            self._remember(task, steps[: number + 1], position)
        return position

    def acting(self, task: GameTask, turns: Sequence[Turn]) -> tuple[AgentID, ...]:
        """Return the agents that act next; () when the game is over."""
        return self._asked(self.position(task, turns))

    def left(self, task: GameTask, turns: Sequence[Turn]) -> dict[AgentID, str]:
        """Return the agents that have left, all of them when the game is over."""
        position = self.position(task, turns)
        over = not self._asked(position)
        gone = self.game.agents if over else self.game.left(position.state)
        return dict.fromkeys(gone, "terminated")

    def observe(self, task: GameTask, turns: Sequence[Turn], agent: AgentID) -> str:
        """Return the rules, what `agent` may know, and the request to move if it acts."""
        position = self.position(task, turns)
        parts = [self.game.rules(agent), self.game.view(position.state, agent)]
        note = note_of(turns, agent)
        if note:
            parts.append(note)
        asked = self._asked(position)
        if not asked or len(turns) >= self.max_turns:
            parts.append(OVER)
        elif agent in asked:
            parts.append(self.game.request(position.state, agent))
        return "\n\n".join(parts)

    def prompt(self, state: Any, agent: AgentID) -> str:  # noqa: ANN401  a state of the game
        """Return the observation of an agent that acts in `state`, after legal moves."""
        game = self.game
        return "\n\n".join((game.rules(agent), game.view(state, agent), game.request(state, agent)))

    def score(
        self,
        attempts: Sequence[Attempt[GameTask]],
        sandbox: ProgramRunner,  # noqa: ARG002  runs no programs
    ) -> list[Score]:
        """Play the moves of all attempts."""
        return [self._score(attempt) for attempt in attempts]

    def legal_actions(
        self, task: GameTask, turns: Sequence[Turn], agent: AgentID
    ) -> tuple[str, ...]:
        """Return the legal actions of `agent` as texts; () if it does not act."""
        position = self.position(task, turns)
        if agent not in self._asked(position):
            return ()
        return tuple(tagged(move) for move in self.game.legal(position.state, agent))

    def scripted_action(
        self,
        task: GameTask,
        turns: Sequence[Turn],
        agent: AgentID,
        *,
        script: str,
        seed: int = 0,
    ) -> str:
        """Return the action of a scripted player; see `GameEnv.scripted_action`."""
        scripts = self.game.scripts
        if script not in scripts:
            raise unknown_name("script", script, scripts)
        rng = Random(f"{task.seed}/{len(turns)}/{agent}/{seed}")  # noqa: S311  no secret
        return tagged(scripts[script](self.position(task, turns).state, agent, rng))

    def reference(self, task: GameTask) -> Mapping[AgentID, str]:
        """Return the first actions of the best script."""
        return self.reference_at(task, ())

    def reference_at(self, task: GameTask, turns: Sequence[Turn]) -> Mapping[AgentID, str]:
        """Return the actions of the best script for the agents that act."""
        best = list(self.game.scripts)[-1]
        return {
            agent: self.scripted_action(task, turns, agent, script=best)
            for agent in self.acting(task, turns)
        }

    def figures(self, task: GameTask, turns: Sequence[Turn]) -> Mapping[str, float]:
        """Return the measures of a game that is over."""
        return self.game.figures(self.position(task, turns).state)

    def _asked(self, position: Position) -> tuple[AgentID, ...]:
        if position.forfeited or self.game.solved(position.state):
            return ()
        acting = self.game.acting(position.state)
        if not position.pending:
            return acting
        moved = dict(position.pending)
        return tuple(agent for agent in acting if agent not in moved)

    def _score(self, attempt: Attempt[GameTask]) -> Score:
        task, turns = attempt.task, attempt.turns
        before = self.position(task, turns)
        step = tuple(
            (agent, *self._read(before, agent, attempt.actions[agent], task, len(turns)))
            for agent in self._asked(before)
        )
        after = self._after(before, tuple((agent, kind, move) for agent, kind, move, _ in step))
        losers = [agent for agent, kind, *_ in step if kind == "lose"]
        if losers:
            gains = dict(self.game.forfeit(before.state, losers))
        else:
            old, new = self.game.returns(before.state), self.game.returns(after.state)
            gains = {agent: float(new[agent] - old[agent]) for agent in self.agents}
        components = {agent: {"payoff": float(gains[agent])} for agent in self.agents}
        for agent, kind, _, is_legal in step:
            if kind == "move" and not is_legal:
                components[agent]["illegal"] = -float(self.config.illegal_penalty)
        diagnostics: dict[AgentID, dict[str, Json]] = {
            agent: {"kind": kind, "move": move, "legal": is_legal}
            for agent, kind, move, is_legal in step
        }
        return Score(components, not losers and self.game.solved(after.state), diagnostics)

    def _read(
        self, position: Position, agent: AgentID, text: str, task: GameTask, turn: int
    ) -> tuple[str, str, bool]:
        """Return the kind, the move, and whether the answer named it."""
        move = self.game.read(position.state, agent, text)
        if move is not None:
            return "move", move, True
        if self.config.illegal == "lose":
            return "lose", "", False
        if self.config.illegal == "retry" and agent not in position.retried:
            return "retry", "", False
        draws = Draws(f"{self.env_id}/illegal/{task.seed}/{turn}/{agent}")
        return "move", draws.pick(self.game.legal(position.state, agent)), False

    def _after(self, position: Position, step: Step) -> Position:
        if any(kind == "lose" for _, kind, _ in step):
            return Position(position.state, forfeited=True)
        moved = tuple((agent, move) for agent, kind, move in step if kind == "move")
        pending = (*position.pending, *moved)
        retried = tuple(agent for agent, kind, _ in step if kind == "retry")
        if retried:
            return Position(position.state, pending, retried)
        return Position(self.game.play(position.state, dict(pending)))

    def _remember(self, task: GameTask, steps: tuple[Step, ...], position: Position) -> None:
        if len(_positions) >= MAX_POSITIONS:
            _positions.clear()
        _positions[self.game, task.seed, steps] = position
