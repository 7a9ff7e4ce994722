"""Several environments as one: each episode is played by one member of the mixture.

A member has a name, a weight and its own tasks. The tasks of all members form one list, in which
the members are interleaved in proportion to their weights until their tasks run out; `task_groups`
gives the weights to training loops. Observations, rewards, terminations and truncations are those
of the member; task ids start with its name. The member of an episode follows from the task if
`reset` names one, and from the seed otherwise. Members with batched scoring keep it.
"""

import copy
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from pettingzoo import ParallelEnv

from mlrl_envs.errors import ResetNeededError, unknown_name
from mlrl_envs.mixtures.members import Member, checked, interleaved
from mlrl_envs.shell.arguments import (
    check_joint_action,
    checked_index,
    checked_options,
    checked_seed,
)
from mlrl_envs.shell.fingerprint import fingerprint
from mlrl_envs.shell.roster import acting_agents
from mlrl_envs.spaces import UnicodeText
from mlrl_envs.types import AgentID, Info, ResetResult, StepResult, TextEnv, is_batched

__all__ = ["MIXTURE", "Member", "MixtureEnv"]

MIXTURE = "env-mixture"
"""Id of mixtures for `mlrl_envs.make`; `mixture` alone is a workflow."""
MAX_SEED = 2**31


class MixtureEnv(ParallelEnv[AgentID, str, str]):  # type: ignore[misc]  # PettingZoo is untyped
    """An environment whose episodes are those of its members.

    Args:
        members: At least one member; names must differ.

    Raises:
        InvalidArgumentError: If there is no member, two have the same name, or a weight is not
            above 0.
    """

    def __init__(self, members: Sequence[Member]) -> None:
        self.members = checked(members)
        self.possible_agents: list[AgentID] = list(
            dict.fromkeys(agent for each in members for agent in each.env.possible_agents)
        )
        self.state_space = max(
            (each.env.state_space for each in members), key=lambda space: space.max_length
        )
        self._order = interleaved([(each.num_tasks, each.weight) for each in members])
        self._np_random: np.random.Generator | None = None
        self._member: Member | None = None  # of the episode, with its copy of the environment
        self._acting: tuple[AgentID, ...] = ()

    @property
    def metadata(self) -> dict[str, Any]:
        """Metadata of the mixture, with flags of the episode's member, or else of any member."""
        played = [self._member] if self._member else self.members
        shared = {
            key: True
            for key in ("competitive", "artificial_limit")
            if any(each.env.metadata.get(key) for each in played)
        }
        modes = [each.env.metadata.get("render_modes", []) for each in self.members]
        shown = [mode for mode in modes[0] if all(mode in others for others in modes)]
        return {"name": MIXTURE, "render_modes": shown, "is_parallelizable": True, **shared}

    @property
    def render_mode(self) -> str | None:
        """Render mode of the episode's member, or else of the first one."""
        return getattr((self._member or self.members[0]).env, "render_mode", None)

    @property
    def agents(self) -> list[AgentID]:
        """Agents still in the episode; empty before the first one."""
        return list(self._member.env.agents) if self._member else []

    @property
    def acting(self) -> tuple[AgentID, ...]:
        """Agents that are asked at the next step; the others of `agents` wait."""
        return self._acting

    @property
    def episode_agents(self) -> list[AgentID]:
        """Agents that can act in this episode: those of its member."""
        return list(self._playing.possible_agents)

    @property
    def episode_env(self) -> str:
        """Name of the member that plays this episode; empty before the first one."""
        return self._member.name if self._member else ""

    @property
    def num_tasks(self) -> int:
        """Total number of tasks of all members."""
        return len(self._order)

    @property
    def task_groups(self) -> list[tuple[float, list[int]]]:
        """Weight and task indices of each member."""
        groups: list[list[int]] = [[] for _ in self.members]
        for index, (number, _) in enumerate(self._order):
            groups[number].append(index)
        return [(each.weight, group) for each, group in zip(self.members, groups, strict=True)]

    @property
    def max_turns(self) -> int:
        """Largest turn limit of the members."""
        return max(each.env.max_turns for each in self.members)

    @property
    def reward_range(self) -> tuple[float, float]:
        """Lowest and highest reward of a turn in any member."""
        lows, highs = zip(*(each.env.reward_range for each in self.members), strict=True)
        return min(lows), max(highs)

    @property
    def fingerprint(self) -> dict[str, str]:
        """Hashes of the data and the scorers of all members; see `mlrl_envs.fingerprint`."""
        found = [(each.name, fingerprint(each.env)) for each in self.members]
        return {
            key: hashlib.sha256(
                repr([(name, hashes.get(key)) for name, hashes in found]).encode()
            ).hexdigest()
            for key in ("data", "scorer")
        }

    def action_space(self, agent: AgentID) -> UnicodeText:
        """Return the space of the actions of `agent`."""
        return self._with(agent).action_space(agent)

    def observation_space(self, agent: AgentID) -> UnicodeText:
        """Return the space of the observations of `agent`."""
        return self._with(agent).observation_space(agent)

    def reset(
        self, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> ResetResult:
        """Start an episode of a member.

        Args:
            seed: Seed of the member, the task and the episode; None continues the random state.
            options: `{"task_index": i}` or `{"task_id": "NAME/ID"}` chooses member and task.

        Raises:
            InvalidArgumentError: If the seed or the index is out of range, or the member or task
                does not exist.
        """
        seed = checked_seed(seed)
        # Drawn from a copy, so that a refused reset changes nothing.
        generator = copy.deepcopy(self._np_random)
        if seed is not None or generator is None:
            generator = np.random.default_rng(seed)
        weights = np.array([each.weight for each in self.members])
        # Draw both even if the task is given, so that its episode has the same randomness.
        drawn = int(generator.choice(len(weights), p=weights / weights.sum()))
        chance = int(generator.integers(MAX_SEED))
        number, chosen = self._choose(drawn, checked_options(options) or {})
        member = self.members[number]
        env = copy.deepcopy(member.env)
        observations, infos = env.reset(seed=chance, options=chosen)
        self._np_random, self._member = generator, replace(member, env=env)
        self._acting = acting_agents(env.agents, infos)
        return observations, self._named(infos)

    def step(self, actions: Mapping[AgentID, str]) -> StepResult:
        """Play one joint action; actions of agents of other members are ignored."""
        return self._result(self._playing.step(self._own(actions)))

    @property
    def batch_key(self) -> object:
        """Key that is equal for episodes that can be scored in one batch."""
        if self._member is None or not is_batched(self._member.env):
            return id(self)
        # Differs from the key of the member itself, because `score_batch` takes only mixtures.
        return MIXTURE, self._member.env.batch_key

    def attempt(self, actions: Mapping[AgentID, str]) -> Any:  # noqa: ANN401  as in BatchedEnv
        """Check a joint action, and return the attempt that `score_batch` takes."""
        env = self._playing
        own = self._own(actions)
        return env.attempt(own) if is_batched(env) else own

    def score_batch(
        self, envs: Sequence["MixtureEnv"], attempts: Sequence[Any], errors: str = "raise"
    ) -> list[Any]:
        """Score attempts of episodes with the same `batch_key`; the episodes do not change."""
        played = [each._playing for each in envs]  # noqa: SLF001  environments of this class
        if is_batched(played[0]):
            return played[0].score_batch(played, attempts, errors)
        copies = [copy.deepcopy(env) for env in played]
        steps = [env.step(each) for env, each in zip(copies, attempts, strict=True)]
        return list(zip(copies, steps, strict=True))

    def advance(self, scored: Any) -> StepResult:  # noqa: ANN401  as in BatchedEnv
        """Apply a scored attempt, and return the result of `step`."""
        env = self._playing
        if is_batched(env):
            return self._result(env.advance(scored))
        assert self._member is not None  # noqa: S101  an episode is playing
        stepped, result = scored
        self._member = replace(self._member, env=stepped)
        return self._result(result)

    def reference_actions(self) -> dict[AgentID, str] | None:
        """Return correct actions of the agents that act; None if there are none."""
        return self._playing.reference_actions()

    def state(self) -> str:
        """Return the joint observation."""
        return self._playing.state()

    def render(self) -> str | None:
        """Return or print the transcript of the episode, as its member does."""
        env: Any = self._playing  # `render` is PettingZoo's; `TextEnv` does not ask for it
        text: str | None = env.render()
        return text

    def close(self) -> None:
        """Close all members."""
        for each in self.members:
            each.env.close()

    def __deepcopy__(self, memo: dict[int, object]) -> "MixtureEnv":
        # `reset` copies the member that it plays, so copies of the mixture can share its members.
        clone = copy.copy(self)
        memo[id(self)] = clone
        clone.possible_agents = list(self.possible_agents)
        clone._np_random = copy.deepcopy(self._np_random, memo)  # noqa: SLF001  a copy of this object
        if self._member is not None:
            env = copy.deepcopy(self._member.env, memo)
            clone._member = replace(self._member, env=env)  # noqa: SLF001  a copy of this object
        return clone

    @property
    def _playing(self) -> TextEnv:
        if self._member is None:
            raise ResetNeededError("there is no episode yet: call reset first")
        return self._member.env

    def _own(self, actions: Mapping[AgentID, str]) -> dict[AgentID, str]:
        """Return the actions without those of agents that belong only to other members."""
        check_joint_action(actions)
        others = {*self.possible_agents} - {*self._playing.possible_agents}
        return {agent: text for agent, text in actions.items() if agent not in others}

    def _with(self, agent: AgentID) -> TextEnv:
        for each in ([self._member] if self._member else []) + list(self.members):
            if agent in each.env.possible_agents:
                return each.env
        raise unknown_name("agent", agent, self.possible_agents)

    def _choose(self, drawn: int, options: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """Return the index of a member, and the options of its `reset`."""
        if "task_index" in options:
            number, task = self._order[checked_index(options["task_index"], len(self._order))]
            has_tasks = hasattr(self.members[number].env, "num_tasks")
            return number, {"task_index": task} if has_tasks else {}
        if "task_id" in options:
            names = [each.name for each in self.members]
            name, _, inner = str(options["task_id"]).partition("/")
            if name not in names:
                raise unknown_name("environment of the mixture", name, names)
            return names.index(name), {"task_id": inner}
        return drawn, {}

    def _named(self, infos: Mapping[AgentID, Info]) -> dict[AgentID, Info]:
        assert self._member is not None  # noqa: S101  an episode is playing
        name = self._member.name
        return {
            agent: {**info, "task_id": f"{name}/{info.get('task_id', '')}"}
            for agent, info in infos.items()
        }

    def _result(self, result: StepResult) -> StepResult:
        """Return the result of a step that the member has played, with the names of the mixture."""
        self._acting = acting_agents(self.agents, result[4])
        return (*result[:4], self._named(result[4]))
