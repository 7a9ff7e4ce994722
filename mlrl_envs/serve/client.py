"""`RemoteEnv`: an environment of a server that behaves as one of this process.

The state is an opening and the actions since, so that environments can be copied and pickled. A
copy refers to the same session; a step makes a new one.
"""

import copy
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from gymnasium import logger

from mlrl_envs.config import check_choice
from mlrl_envs.errors import (
    InvalidArgumentError,
    MissingPackageError,
    MlrlError,
    RemoteEnvError,
    ResetNeededError,
)
from mlrl_envs.serve.address import Connection, as_connection, split_id
from mlrl_envs.serve.described import DescribedEnv
from mlrl_envs.shell.arguments import checked_actions
from mlrl_envs.types import AgentID, Info, ResetResult, StepResult
from mlrl_envs.workflows import with_graph

try:
    from mlrl_envs.serve.describing import describe_any
    from mlrl_envs.serve.episode import (
        RemoteEpisode,
        begun_episode,
        opening_job,
        read_view,
        send_released,
        unpacked,
    )
    from mlrl_envs.serve.exchange import CHUNK_BYTES, Job, Kind, run_jobs
    from mlrl_envs.serve.link import link_to
    from mlrl_envs.serve.messages import message, to_json
    from mlrl_envs.serve.results import Position, joint_message
except ModuleNotFoundError as error:
    raise MissingPackageError(
        f"remote environments need gRPC ({error.name} is missing): pip install 'mlrl[serve]'"
    ) from error

__all__ = ["RemoteEnv", "factory_of"]


def factory_of(env_id: str) -> "Callable[..., RemoteEnv]":
    """Return the function that makes the environment with an id `remote://host:port/ID`.

    Raises:
        InvalidArgumentError: If the id is not of this form.
    """
    addresses, name = split_id(env_id)
    return functools.partial(RemoteEnv, addresses, name)


class RemoteEnv(DescribedEnv):
    """A parallel environment of servers.

    Args:
        addresses: Servers, `host:port`; episodes are dealt to them.
        env_id: Id of the environment.
        connection: Settings, or a mapping of them.
        render_mode: As of `TextParallelEnv`.
        **options: Options of the environment, made of JSON values.

    Raises:
        RemoteEnvError: If no server answers.
        UnknownNameError: If the server offers no such environment, or there is no such option.
        InvalidArgumentError: If an option has a bad value or may not be set by clients, or the file
            of a workflow, which is read here, cannot be read.
    """

    parallel_steps = True  # several threads may step environments at the same time

    def __init__(
        self,
        addresses: Sequence[str],
        env_id: str,
        *,
        connection: Connection | Mapping[str, Any] | None = None,
        render_mode: str | None = None,
        **options: Any,  # noqa: ANN401  of the environment
    ) -> None:
        if render_mode is not None:
            check_choice("render mode", render_mode, ("ansi", "human"))
        self.render_mode = render_mode
        options = with_graph(options)
        try:
            self._place = message("Place")(env_id=env_id, options=to_json(options))
        except (TypeError, ValueError) as error:
            raise InvalidArgumentError(f"options of a server are JSON values: {error}") from error
        self._addresses, self._connection = tuple(addresses), as_connection(connection)
        self._link = link_to(self._addresses, self._connection)
        super().__init__(describe_any(self._link, self._place))
        self._kind = Kind(self._place, self._told["deterministic"], self._told["fingerprint"])
        self._episode: RemoteEpisode | None = None

    @property
    def agents(self) -> list[AgentID]:
        """Agents still in the episode; none outside one."""
        return [] if self._episode is None else list(self._episode.agents)

    @property
    def acting(self) -> tuple[AgentID, ...]:
        """Agents that are asked at the next step."""
        return () if self._episode is None else self._episode.acting

    @property
    def batch_key(self) -> object:
        """Equal for environments of the same servers with the same options."""
        return id(self._link), self._place.env_id, self._place.options

    def reset(
        self, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[dict[AgentID, str], dict[AgentID, Info]]:
        """Start an episode; see `TextParallelEnv.reset`.

        Raises:
            InvalidArgumentError: If the seed or an option is out of range.
            RemoteEnvError: If no server answers.
        """
        (found,) = self.reset_batch([self], [seed], [options])
        if isinstance(found, MlrlError):
            raise found
        return found

    def step(self, actions: Mapping[AgentID, str]) -> StepResult:
        """Play one joint action; see `TextParallelEnv.step`.

        Raises:
            ResetNeededError: If no episode is running.
            InvalidActionError: See `TextParallelEnv.step`.
            InfraError: If the server, its sandbox or its models fail; the environment is unchanged.
        """
        (job,) = self.score_batch([self], [self.attempt(actions)])
        return self.advance(job)

    @staticmethod
    def reset_batch(
        envs: "Sequence[RemoteEnv]",
        seeds: Sequence[int | None],
        options: Sequence[Mapping[str, Any] | None],
    ) -> list[ResetResult | MlrlError]:
        """Start episodes in environments with the same `batch_key`; errors are returned."""
        found: list[ResetResult | MlrlError | None] = [None] * len(envs)
        jobs: dict[int, Job] = {}
        for number, (env, seed, chosen) in enumerate(zip(envs, seeds, options, strict=True)):
            try:
                jobs[number] = opening_job(env._link, env._episode, seed, chosen)  # noqa: SLF001
            except MlrlError as error:
                found[number] = error
        if jobs:
            run_jobs(envs[0]._link, envs[0]._kind, list(jobs.values()))  # noqa: SLF001
        for number, job in jobs.items():
            if isinstance(job.done, Position):
                envs[number]._episode = begun_episode(envs[0]._link, job, job.done)  # noqa: SLF001
                found[number] = job.done.begun
            else:
                found[number] = job.done
        return cast("list[ResetResult | MlrlError]", found)

    def attempt(self, actions: Mapping[AgentID, str]) -> Job:
        """Check a joint action and return the request; the state is unchanged."""
        episode = self._current()
        if not episode.agents:
            raise ResetNeededError("the episode is over: call reset before step")
        joint = joint_message(checked_actions(actions, episode.acting, self.possible_agents))
        if joint.ByteSize() > CHUNK_BYTES:
            raise RemoteEnvError(
                f"the joint action has {joint.ByteSize()} bytes; a server takes {CHUNK_BYTES}"
            )
        return episode.step_job(joint, self._kind)

    def score_batch(
        self,
        envs: "Sequence[RemoteEnv]",  # noqa: ARG002  attempts hold their episodes
        attempts: Sequence[Job],
        errors: str = "raise",
    ) -> list[Any]:
        """Send the requests of environments with this `batch_key`.

        Raises:
            InfraError: If one fails, unless errors are returned.
        """
        run_jobs(self._link, self._kind, attempts)
        found = [job.done if isinstance(job.done, MlrlError) else job for job in attempts]
        for each in found:
            if isinstance(each, MlrlError) and errors == "raise":
                raise each
        return found

    def advance(self, scored: Job) -> StepResult:
        """Take the session that a request made and return the result of `step`."""
        position = cast("Position", scored.done)
        self._episode = self._current().after(self._link, scored, position)
        return position.result

    def reference_actions(self) -> dict[AgentID, str] | None:
        """Return a correct action of each agent that acts, or None if the data has none.

        Raises:
            RefusedError: If the server keeps them.
            RemoteEnvError: If no server answers.
        """
        return cast("dict[AgentID, str] | None", self._view("Reference"))

    def state(self) -> str:
        """Return the joint observation."""
        return str(self._view("State"))

    def render(self) -> str | None:
        """Return the episode so far as a transcript (`ansi`), or print it (`human`)."""
        if self.render_mode is None:
            logger.warn("render was called without a render_mode; pass one to make")
            return None
        text = cast("str | None", self._view("Render"))
        return text if self.render_mode == "ansi" else print(text)

    def close(self) -> None:
        """Give the session up; the server drops it once no copy uses it. May be called twice."""
        if self._episode is not None:
            address = self._episode.session.address
            self._episode = self._episode.without_claim()
            send_released(self._link, address)

    def __deepcopy__(self, memo: dict[int, object]) -> "RemoteEnv":
        # The episode is immutable, so copies share it and its session.
        clone = object.__new__(type(self))  # copy.copy would pickle
        clone.__dict__.update(self.__dict__)
        memo[id(self)] = clone
        clone.metadata = copy.deepcopy(self.metadata, memo)
        clone.possible_agents = list(self.possible_agents)
        clone.state_space = copy.deepcopy(self.state_space, memo)
        clone._spaces = copy.deepcopy(self._spaces, memo)
        return clone

    def __getstate__(self) -> dict[str, Any]:
        state = {**self.__dict__, "_place": self._place.SerializeToString()}
        del state["_link"], state["_kind"]
        state["_episode"] = None if self._episode is None else self._episode.packed()
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._place = message("Place").FromString(state["_place"])  # type: ignore[attr-defined]
        self._link = link_to(self._addresses, self._connection)
        self._kind = Kind(self._place, self._told["deterministic"], self._told["fingerprint"])
        packed = state["_episode"]
        self._episode = None if packed is None else unpacked(self._link, packed)

    def _view(self, method: str) -> Any:  # noqa: ANN401  JSON
        return read_view(self._link, self._kind, self._current(), method)

    def _current(self) -> RemoteEpisode:
        if self._episode is None:
            raise ResetNeededError("there is no episode yet: call reset first")
        return self._episode
