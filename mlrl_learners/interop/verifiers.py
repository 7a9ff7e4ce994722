"""mlrl environments as `verifiers` environments, for its evaluation command and prime-rl.

`verifiers` finds an environment by module name. Put this into a module of your own:

    from mlrl_learners.interop.verifiers import MlrlEnv, MlrlHarness, MlrlTaskset

    __all__ = ["MlrlEnv", "MlrlHarness", "MlrlTaskset"]

The evaluated model plays every agent. Each agent has its own conversation and its own trace, with
the rewards of that agent. If `seat` names an agent, the model plays only that one, and the others
give empty answers. Observations and answers are user and assistant messages, which `MlrlHarness`
sends from this process, without a program or tools. Failures of infrastructure are errors of the
episode.

Requires `verifiers` 0.4 (its interface `verifiers.v1`), which is not a dependency of mlrl.
"""

import asyncio
import contextlib
import copy
from collections.abc import Iterator, Mapping
from typing import Any

import httpx
import verifiers.v1 as vf
from pydantic import Field
from verifiers.v1.dialects.chat import message_to_wire

import mlrl_envs
from mlrl_learners.errors import unknown_name
from mlrl_learners.interop.tasks import make_counted
from mlrl_learners.play.steps import acting_observations
from mlrl_learners.types import AgentID

__all__ = [
    "MlrlData",
    "MlrlEnv",
    "MlrlEnvConfig",
    "MlrlHarness",
    "MlrlHarnessConfig",
    "MlrlTask",
    "MlrlTaskset",
    "MlrlTasksetConfig",
]

REWARD = "mlrl_reward"
SOLVED = "mlrl_solved"


class MlrlTasksetConfig(vf.TasksetConfig):  # type: ignore[misc]  # verifiers is no dependency
    """The environment and its options."""

    env_id: str = ""
    """Id of a registered environment."""
    options: dict[str, Any] = Field(default_factory=dict)
    """Options of the environment, such as `split`."""
    seat: str = ""
    """The agent that the model plays; empty for all of them."""
    seed: int = 0
    """Seed of every episode."""


class MlrlData(vf.TaskData):  # type: ignore[misc]
    """One task of an environment."""

    task_index: int


class MlrlTask(vf.Task[MlrlData, vf.State, vf.TaskConfig]):  # type: ignore[misc]
    """A task. It is scored by `MlrlEnv`, not by the task itself."""


class MlrlTaskset(vf.Taskset[MlrlTask, MlrlTasksetConfig]):  # type: ignore[misc]
    """All tasks of a split."""

    def load(self) -> Iterator[MlrlTask]:
        """Yield the tasks in the order of the environment."""
        config = self.config
        env = make_counted(config.env_id, config.options)
        for index in range(env.num_tasks):
            name = f"{config.env_id}#{index}"
            yield MlrlTask(MlrlData(name=name, prompt=None, task_index=index), config.task)


class MlrlHarnessConfig(vf.HarnessConfig):  # type: ignore[misc]
    """Settings of `MlrlHarness`, which has no options of its own."""


class MlrlHarness(vf.Harness[MlrlHarnessConfig]):  # type: ignore[misc]
    """Sends each user message to the model once, with the conversation before it."""

    APPENDS_SYSTEM_PROMPT = True
    SUPPORTS_RESUME = True
    EXECUTES_CODE = False
    NEEDS_CONTAINER = False

    async def launch(
        self,
        ctx: vf.ModelContext,
        trace: vf.Trace,  # noqa: ARG002  what verifiers passes
        runtime: vf.Runtime,  # noqa: ARG002
        endpoint: str,
        secret: str,
        mcp_urls: Mapping[str, str],  # noqa: ARG002
        data: vf.TaskData,
    ) -> vf.ProgramResult:
        """Send the conversation to the model; verifiers records the answer."""
        system, prompt = self.resolve_prompt(data)
        messages = [{"role": "system", "content": system}] if system else []
        messages += [message_to_wire(each) for each in prompt]
        async with httpx.AsyncClient(timeout=None) as client:  # noqa: S113  verifiers' limits apply
            answer = await client.post(
                f"{endpoint}/chat/completions",
                json={"model": ctx.model, "messages": messages},
                headers={"authorization": f"Bearer {secret}"},
            )
        status = 0 if answer.is_success else 1
        return vf.ProgramResult(
            exit_code=status, stdout="", stderr="" if not status else answer.text
        )


class MlrlEnvConfig(vf.EnvConfig):  # type: ignore[misc]
    """The player: one model for all agents."""

    player: vf.AgentConfig = vf.AgentConfig(runtime={"type": "subprocess"})


class MlrlEnv(vf.Env[MlrlEnvConfig]):  # type: ignore[misc]
    """Plays episodes of an environment with conversations of the model.

    Raises:
        UnknownNameError: If `seat` is not an agent of the environment.
    """

    def __init__(self, config: MlrlEnvConfig) -> None:
        super().__init__(config)
        chosen = self.taskset.config
        self._made = mlrl_envs.make(chosen.env_id, **chosen.options)
        agents: list[AgentID] = list(self._made.possible_agents)
        if chosen.seat and chosen.seat not in agents:
            raise unknown_name("agent", chosen.seat, agents)
        self._seats = [chosen.seat] if chosen.seat else agents

    async def run(self, task: MlrlTask, agents: Any) -> None:  # noqa: ANN401  untyped
        """Play one episode, and record what each agent earned on its trace."""
        env = copy.deepcopy(self._made)
        episode = _Episode(env, self._seats)
        options = {"task_index": task.data.task_index}
        await asyncio.to_thread(episode.reset, self.taskset.config.seed, options)
        async with contextlib.AsyncExitStack() as stack:
            players: dict[AgentID, Any] = {}
            while episode.asked:
                for agent in episode.asked:
                    if agent not in players:
                        opened = agents.player.interaction(task)
                        players[agent] = await stack.enter_async_context(opened)
                turns = [players[agent].turn(text) for agent, text in episode.asked.items()]
                segments = await asyncio.gather(*turns)
                if any(segment.terminated for segment in segments):
                    break  # a limit of the run or a failure; the trace records which
                replies = [segment.last_reply for segment in segments]
                actions = dict(zip(episode.asked, replies, strict=True))
                await asyncio.to_thread(episode.step, actions)
            env.close()
        for agent, player in players.items():
            player.trace.record_reward(REWARD, episode.rewards[agent], 1.0)
            player.trace.record_metric(SOLVED, float(episode.is_solved))
            player.trace.info["mlrl_agent"] = agent


class _Episode:
    """State of an episode, shared by the conversations of its agents.

    Args:
        env: Environment of the episode.
        seats: Agents that the model plays.

    Attributes:
        asked: Observations of the agents that the model plays next; empty at the end.
        rewards: Sum of the rewards of each agent that the model plays.
        is_solved: Whether the environment has reported the task as solved.
    """

    def __init__(self, env: Any, seats: list[AgentID]) -> None:  # noqa: ANN401
        self._env, self._seats = env, seats
        self.asked: dict[AgentID, str] = {}
        self.rewards = dict.fromkeys(seats, 0.0)
        self.is_solved = False

    def reset(self, seed: int, options: Mapping[str, int]) -> None:
        """Start the episode, and play until the model's first turn."""
        observations, infos = self._env.reset(seed=seed, options=dict(options))
        self._look(observations, infos)

    def step(self, actions: Mapping[AgentID, str]) -> None:
        """Play a turn, and continue until the model's next one; other agents give empty answers."""
        others = dict.fromkeys(self._acting, "")
        observations, rewards, *_, infos = self._env.step({**others, **actions})
        for agent in self._seats:
            self.rewards[agent] += float(rewards.get(agent, 0.0))
        self.is_solved |= any(bool(info.get("solved")) for info in infos.values())
        self._look(observations, infos)

    def _look(
        self, observations: Mapping[AgentID, str], infos: Mapping[AgentID, Mapping[str, Any]]
    ) -> None:
        self._acting = acting_observations(self._env.agents, observations, infos)
        self.asked = {a: text for a, text in self._acting.items() if a in self._seats}
        if self._acting and not self.asked:
            self.step({})
