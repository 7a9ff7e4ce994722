"""PettingZoo wrapper of a task family: seeding, turn counting and the five dicts of `step`.

The state is the task, the turns played and a random generator, so that environments are cheap to
copy, to pickle and to step as a batch. Prompts, rewards, feedback, and who acts when, belong to the
family. An agent that waits gets an observation and is not asked for an action; see
`mlrl_envs.shell.roster`.
"""

import copy
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from gymnasium import logger
from pettingzoo import ParallelEnv

from mlrl_envs.config import check_choice
from mlrl_envs.errors import ResetNeededError, unknown_name
from mlrl_envs.parsing.text import printable
from mlrl_envs.shell.arguments import checked_actions, checked_index, checked_options, checked_seed
from mlrl_envs.shell.infos import info_of
from mlrl_envs.shell.roster import NOBODY, Roster, deal_task, roster_of
from mlrl_envs.shell.runner import SharedSandbox, choose_sandbox
from mlrl_envs.shell.transcript import transcript
from mlrl_envs.spaces import UnicodeText
from mlrl_envs.types import (
    AgentID,
    Attempt,
    Info,
    ProgramRunner,
    StepResult,
    Task,
    TaskFamily,
    Turn,
)

__all__ = ["RenderMode", "TextParallelEnv"]

RenderMode = Literal["ansi", "human"]


class TextParallelEnv(ParallelEnv[AgentID, str, str]):  # type: ignore[misc]  # PettingZoo is untyped
    """A PettingZoo parallel environment whose observations and actions are `str`.

    Args:
        family: The tasks with their observations and scores.
        env_id: Id under which the environment is registered.
        sandbox: Runs the programs of agents; None uses the shared sandbox of the process.
        limits: Resource limits of each program in the shared sandbox; None uses the defaults.
        render_mode: `"ansi"` makes `render` return a transcript, `"human"` makes it print one.
    """

    def __init__(
        self,
        family: TaskFamily[Any],
        *,
        env_id: str,
        sandbox: ProgramRunner | None = None,
        limits: object = None,
        render_mode: RenderMode | None = None,
    ) -> None:
        if render_mode is not None:
            check_choice("render mode", render_mode, ("ansi", "human"))
        self.family = family
        self.sandbox = choose_sandbox(sandbox, limits)
        self.render_mode = render_mode
        self.metadata: dict[str, Any] = {
            "name": env_id,
            "render_modes": ["ansi", "human"],
            "is_parallelizable": True,
        }
        if getattr(family, "competitive", False):
            self.metadata["competitive"] = True
        self.possible_agents: list[AgentID] = list(family.agents)
        self.state_space = UnicodeText(max_length=10_000_000)
        self._spaces = {
            agent: (UnicodeText(), UnicodeText(max_length=4_000_000)) for agent in family.agents
        }
        self._np_random: np.random.Generator | None = None
        self._shares_generator = False  # with copies, until one of them draws
        self._task: Task | None = None
        self._turns: tuple[Turn, ...] = ()
        self._roster: Roster = NOBODY  # follows from the task and the turns

    @property
    def agents(self) -> list[AgentID]:
        """Agents still in the episode; none outside one."""
        return list(self._roster.agents)

    @property
    def acting(self) -> tuple[AgentID, ...]:
        """Agents that are asked at the next step; the others of `agents` wait."""
        return self._roster.acting

    @property
    def num_tasks(self) -> int:
        """Number of tasks in this split."""
        return len(self.family.tasks)

    @property
    def max_turns(self) -> int:
        """Maximum number of joint actions in an episode."""
        return self.family.max_turns

    @property
    def reward_range(self) -> tuple[float, float]:
        """Lowest and highest reward of one turn."""
        return self.family.reward_range

    @property
    def task(self) -> Task:
        """The current task, with its chance; it contains data that agents must not see."""
        return self._current_task()

    @property
    def turns(self) -> tuple[Turn, ...]:
        """The turns played so far in this episode."""
        return self._turns

    @property
    def np_random(self) -> Any:  # noqa: ANN401  a generator, or None
        """Generator of tasks and of the chance in them; None before the first `reset`."""
        if self._shares_generator:
            self.np_random = copy.deepcopy(self._np_random)
        return self._np_random

    @np_random.setter
    def np_random(self, generator: np.random.Generator | None) -> None:
        self._np_random, self._shares_generator = generator, False

    def action_space(self, agent: AgentID) -> UnicodeText:
        """Return the space of the actions of `agent`."""
        return self._agent_spaces(agent)[0]

    def observation_space(self, agent: AgentID) -> UnicodeText:
        """Return the space of the observations of `agent`."""
        return self._agent_spaces(agent)[1]

    def reset(
        self, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[dict[AgentID, str], dict[AgentID, Info]]:
        """Start an episode.

        Args:
            seed: Restarts the random draw of tasks and of the chance in them; None continues it.
            options: `{"task_index": i}` or `{"task_id": "..."}` chooses the task; other keys are
                ignored, as PettingZoo requires.

        Returns:
            The observation and the info of each agent.

        Raises:
            InvalidArgumentError: If an argument is of a wrong type or range, or no task has the id.
        """
        # Checked before anything is drawn, so that a refused reset changes nothing.
        seed, chosen = checked_seed(seed), self._chosen_task(checked_options(options) or {})
        if seed is not None or self._np_random is None:
            self.np_random = np.random.default_rng(seed)
        # Drawn before the task, so that a task has the same chance however it was chosen.
        chance = int(self.np_random.integers(2**63)) if hasattr(self.family, "deal") else 0
        index = int(self.np_random.integers(len(self.family.tasks))) if chosen is None else chosen
        self._task = deal_task(self.family, self.family.tasks[index], chance)
        self._turns = ()
        self._roster = roster_of(self.family, self._task, ())
        return self._observations(), self._infos()

    def step(self, actions: Mapping[AgentID, str]) -> StepResult:
        """Play one joint action.

        Args:
            actions: One text for each agent in `acting`; actions of others are ignored. Any text is
                valid; poor ones score low.

        Returns:
            Observations, rewards, terminations, truncations and infos of the agents that were in
            the episode before this step.

        Raises:
            ResetNeededError: If no episode is running.
            InvalidActionError: If an agent that acts is missing, an agent is unknown, or an action
                is not a `str`.
            InfraError: If the sandbox or a request to a model fails; the environment is unchanged.
        """
        (turn,) = self.score_batch([self], [self.attempt(actions)])
        return self.advance(turn)

    def attempt(self, actions: Mapping[AgentID, str]) -> Attempt[Any]:
        """Check a joint action and return it as an attempt to be scored; the state is unchanged."""
        task = self._current_task()
        if not self._roster.agents:
            raise ResetNeededError("the episode is over: call reset before step")
        checked = checked_actions(actions, self._roster.acting, self.possible_agents)
        return Attempt(task, self._turns, checked)

    @property
    def batch_key(self) -> object:
        """Equal for environments whose attempts are scored together: same family and sandbox."""
        sandbox = self.sandbox
        return id(self.family), hash(sandbox) if isinstance(sandbox, SharedSandbox) else id(sandbox)

    def score_batch(
        self,
        envs: Sequence["TextParallelEnv"],  # noqa: ARG002  attempts hold their states
        attempts: Sequence[Attempt[Any]],
        errors: str = "raise",  # noqa: ARG002  a family scores all or none
    ) -> list[Turn]:
        """Score the attempts of environments with this `batch_key`; their states are unchanged.

        Raises:
            InfraError: If the sandbox or a request to a model fails.
        """
        scores = self.family.score(attempts, self.sandbox)
        return [Turn(each.actions, score) for each, score in zip(attempts, scores, strict=True)]

    def advance(self, scored: Turn) -> StepResult:
        """Append a scored turn and return the result of `step`."""
        turns = (*self._turns, scored)
        roster = roster_of(self.family, self._current_task(), turns)
        self._turns, self._roster = turns, roster
        paid, done, cut = scored.score.components, set(roster.terminated), set(roster.truncated)
        return (
            self._observations(),
            {agent: scored.score.reward(agent) if agent in paid else 0.0 for agent in roster.told},
            {agent: agent in done for agent in roster.told},
            {agent: agent in cut for agent in roster.told},
            self._infos(),
        )

    def reference_actions(self) -> dict[AgentID, str] | None:
        """Return a correct action of each agent that acts, or None if the data has none."""
        task = self._current_task()
        if hasattr(self.family, "reference_at"):
            reference = self.family.reference_at(task, self._turns)
        else:
            reference = self.family.reference(task)
        return None if reference is None else dict(reference)

    def state(self) -> str:
        """Return the joint observation, for critics that see what all agents see."""
        observations = self._observations()
        return "\n\n".join(f"[{agent}]\n{text}" for agent, text in observations.items())

    def render(self) -> str | None:
        """Return the episode so far as a transcript (`ansi`), or print it (`human`)."""
        if self.render_mode is None:
            logger.warn("render was called without a render_mode; pass one to make")
            return None
        text = transcript(self.metadata["name"], self.family, self._current_task(), self._turns)
        return text if self.render_mode == "ansi" else print(text)

    def close(self) -> None:
        """Do nothing, because the sandbox outlives the environment; may be called twice."""

    def __deepcopy__(self, memo: dict[int, object]) -> "TextParallelEnv":
        # Task, turns, family and sandbox are immutable, so copies share them. They share the
        # generator until one of them draws: most copies only step, and its copy takes 0.1 ms.
        self._shares_generator = self._np_random is not None
        clone = object.__new__(type(self))  # copy.copy would pickle
        clone.__dict__.update(self.__dict__)
        memo[id(self)] = clone
        clone.metadata = copy.deepcopy(self.metadata, memo)
        clone.possible_agents = list(self.possible_agents)
        clone.state_space = copy.deepcopy(self.state_space, memo)
        clone._spaces = copy.deepcopy(self._spaces, memo)
        return clone

    def _current_task(self) -> Task:
        if self._task is None:
            raise ResetNeededError("there is no episode yet: call reset first")
        return self._task

    def _agent_spaces(self, agent: AgentID) -> tuple[UnicodeText, UnicodeText]:
        if agent not in self._spaces:
            raise unknown_name("agent", agent, self._spaces)
        return self._spaces[agent]

    def _chosen_task(self, options: dict[str, Any]) -> int | None:
        if "task_index" in options:
            return checked_index(options["task_index"], len(self.family.tasks))
        if "task_id" in options:
            ids = [task.task_id for task in self.family.tasks]
            if options["task_id"] not in ids:
                raise unknown_name("task_id", options["task_id"], ids)
            return ids.index(options["task_id"])
        return None

    def _observations(self) -> dict[AgentID, str]:
        task = self._current_task()
        return {
            agent: printable(self.family.observe(task, self._turns, agent))
            for agent in self._roster.told
        }

    def _infos(self) -> dict[AgentID, Info]:
        task = self._current_task()
        acting = set(self._roster.acting)
        return {
            agent: info_of(task, self._turns, agent, acts=agent in acting)
            for agent in self._roster.told
        }
