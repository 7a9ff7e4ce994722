"""Episode of a client: the session on a server, and what is needed to play it again."""

import hashlib
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import grpc

from mlrl_envs.errors import InvalidArgumentError, MlrlError, RemoteEnvError
from mlrl_envs.serve.exchange import Job, Kind, run_jobs
from mlrl_envs.serve.failures import error_of
from mlrl_envs.serve.link import Link, Session, refusal_of
from mlrl_envs.serve.messages import from_json, message, to_json
from mlrl_envs.serve.results import Position
from mlrl_envs.shell.arguments import checked_seed
from mlrl_envs.types import AgentID

__all__ = [
    "RemoteEpisode",
    "begun_episode",
    "opening_job",
    "read_view",
    "send_released",
    "unpacked",
]

KEY_BYTES = 16


@dataclass(frozen=True, slots=True)
class RemoteEpisode:
    """An episode after `reset` or `step`.

    Attributes:
        session: The session.
        opening: Message with the arguments of `reset`, complete with a seed or a generator.
        joints: Messages of the joint actions so far.
        agents: Agents still in the episode.
        acting: Those of them that are asked next.
        seen: The observations, which a replay must repeat.
        generator: State of the generator of tasks after `reset`; empty if the server gives none.
    """

    session: Session
    opening: Any
    joints: tuple[Any, ...]
    agents: tuple[AgentID, ...]
    acting: tuple[AgentID, ...]
    seen: Mapping[AgentID, str]
    generator: bytes

    def step_job(self, joint: Any, kind: Kind) -> Job:  # noqa: ANN401  a message
        """Return the request of a step.

        Equal steps from a session make the same session, unless scores are drawn anew each time.
        """
        data = self.session.key + joint.SerializeToString()
        data += b"" if kind.deterministic else secrets.token_bytes(KEY_BYTES)
        job = self.replay_job()
        job.into = hashlib.blake2b(data, digest_size=KEY_BYTES).digest()
        job.joint, job.lost = joint, False
        return job

    def replay_job(self) -> Job:
        """Return the request that makes the session again."""
        return Job(
            address=self.session.address,
            opening=self.opening,
            into=b"",
            turns=self.joints,
            origin=self.session.key,
            seen=self.seen,
            lost=True,
        )

    def after(self, link: Link, job: Job, position: Position) -> "RemoteEpisode":
        """Return the episode after a step."""
        return replace(
            self,
            session=link.session(job.into, job.address),
            joints=(*self.joints, job.joint),
            agents=position.agents,
            acting=position.acting,
            seen=dict(position.result[0]),
        )

    def without_claim(self) -> "RemoteEpisode":
        """Return the episode of a closed environment; copies that are open keep the session."""
        held = self.session
        return replace(self, session=Session(held.link, held.key, held.address, owned=False))

    def packed(self) -> tuple[Any, ...]:
        """Return values that can be pickled."""
        joints = [joint.SerializeToString() for joint in self.joints]
        opening = self.opening.SerializeToString()
        rest = (self.agents, self.acting, dict(self.seen), self.generator)
        return (self.session.key, self.session.address, opening, joints, *rest)


def unpacked(link: Link, values: tuple[Any, ...]) -> RemoteEpisode:
    """Return an episode from its packed values; another process releases its session."""
    key, address, opening, joints, *rest = values
    return RemoteEpisode(
        Session(link, key, address, owned=False),
        message("Opening").FromString(opening),  # type: ignore[attr-defined]
        tuple(message("Joint").FromString(joint) for joint in joints),  # type: ignore[attr-defined]
        *rest,
    )


def opening_job(
    link: Link,
    last: RemoteEpisode | None,
    seed: int | None,
    options: Mapping[str, Any] | None,
) -> Job:
    """Return the request of a `reset`.

    Without a seed, tasks are drawn on from the last episode's generator. A server of another kind
    of environment has none; the next seed then follows from the last one.

    Raises:
        InvalidArgumentError: If the seed is out of range or the options are not JSON.
    """
    opening = message("Opening")(has_options=options is not None)
    if options is not None:
        try:
            opening.options = to_json(dict(options))
        except (TypeError, ValueError) as error:
            raise InvalidArgumentError(f"options of reset are JSON values: {error}") from error
    checked = checked_seed(seed)
    if checked is not None:
        opening.seed = str(checked)
    elif last is None:
        opening.seed = str(secrets.randbits(63))
    elif last.generator:
        opening.generator = last.generator
    else:
        digest = hashlib.blake2b(f"{last.opening.seed} again".encode(), digest_size=7).digest()
        opening.seed = str(int.from_bytes(digest, "big"))
    return Job(link.choose(), opening, secrets.token_bytes(KEY_BYTES))


def begun_episode(link: Link, job: Job, position: Position) -> RemoteEpisode:
    """Return the episode that a `reset` began."""
    return RemoteEpisode(
        session=link.session(job.into, job.address),
        opening=job.opening,
        joints=(),
        agents=position.agents,
        acting=position.acting,
        seen=dict(position.result[0]),
        generator=position.generator,
    )


def read_view(link: Link, kind: Kind, episode: RemoteEpisode, method: str) -> Any:  # noqa: ANN401  JSON
    """Return what a server reads from a session; a lost one is replayed first.

    A call that fails is repeated, at most `Connection.retries` times.

    Raises:
        MlrlError: If the server does not answer, or refuses.
    """
    session, found = episode.session, "no answer"
    for _ in range(1 + link.connection.retries):
        request = message("ViewRequest")(keys=[session.key])
        try:
            (item,) = link.call(session.address, method, request).items
        except grpc.RpcError as error:
            refusal = refusal_of(error, session.address)
            if refusal is not None:
                raise refusal from None
            found = str(error.details())
        else:
            if not item.HasField("failure"):
                return from_json(item.json)
            if item.failure.kind != "unknown":
                raise error_of(item.failure, session.address)
            found = item.failure.message
        job = episode.replay_job()
        run_jobs(link, kind, [job])
        if isinstance(job.done, MlrlError):
            raise job.done
        session.address = job.address
    raise RemoteEnvError(f"environment server {session.address} lost a session: {found}")


def send_released(link: Link, address: str) -> None:
    """Tell a server which sessions are no longer needed, without waiting for its answer."""
    keys = link.released(address)
    if keys:
        future = link.send(address, "Close", message("CloseRequest")(keys=keys))
        # A callback keeps the future until the reply comes; gRPC cancels calls of lost futures.
        future.add_done_callback(lambda _: None)
