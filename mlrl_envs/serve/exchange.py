"""Batches of openings and steps, sent to servers until each has a result or an error.

A lost session is replayed from its opening and actions; a server that fails is asked again with
growing pauses, then another one. After the last one, all are asked in turn until `retry_seconds`
are over. A repeated step has the same key, so that it is played once.
"""

import functools
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import grpc

from mlrl_envs.errors import MlrlError, RemoteEnvError
from mlrl_envs.serve.describing import describe
from mlrl_envs.serve.failures import error_of
from mlrl_envs.serve.link import RETRY_KEY, Link, refusal_of
from mlrl_envs.serve.messages import MAX_BYTES, message
from mlrl_envs.serve.pauses import jitter, pause_after
from mlrl_envs.serve.results import Position, position_of

__all__ = ["CHUNK_BYTES", "Job", "Kind", "run_jobs"]

CHUNK_ITEMS = 256
CHUNK_BYTES = MAX_BYTES // 2
MAX_REPLAYS = 4
SILENT_SECONDS = 9.0  # below the time that pings take


@dataclass(slots=True)
class Job:
    """One `reset` or `step`, or a session to be replayed.

    Attributes:
        address: The server that is asked.
        opening: Message with the arguments of `reset`.
        into: Key of the session that the job makes.
        turns: Messages of the joint actions so far.
        origin: Key of the session that a step starts from; empty for a `reset`.
        joint: Message of the joint action of a step; None otherwise.
        seen: Observations at `origin`, which a replay must repeat.
        lost: Whether `origin` must be replayed first.
        replays: Number of replays since a job of the batch was done.
        failures: Number of failed calls since the last server that was new to the job.
        failed_at: Time of the first of them; a call to a busy server counts here.
        tried: Servers that failed.
        done: The result or the error; None before.
    """

    address: str
    opening: Any
    into: bytes
    turns: tuple[Any, ...] = ()
    origin: bytes = b""
    joint: Any = None
    seen: Any = None
    lost: bool = False
    replays: int = 0
    failures: int = 0
    failed_at: float = 0.0
    tried: set[str] = field(default_factory=set)
    done: Position | MlrlError | None = None

    @property
    def method(self) -> str:
        """The method to be called next."""
        if self.lost:
            return "Restore"
        return "Step" if self.origin else "Open"

    def item(self) -> Any:  # noqa: ANN401  a message
        """Return the message to be sent next."""
        if self.lost:
            return message("RestoreItem")(into=self.origin, opening=self.opening, turns=self.turns)
        if self.origin:
            return message("StepItem")(origin=self.origin, into=self.into, joint=self.joint)
        return message("OpenItem")(into=self.into, opening=self.opening)


@dataclass(frozen=True, slots=True)
class Kind:
    """What all jobs of a batch have in common.

    Attributes:
        place: Message with the id and the options.
        deterministic: Whether episodes can be replayed.
        fingerprint: Of data and scorer; all servers must have the same.
    """

    place: Any
    deterministic: bool
    fingerprint: Any


def run_jobs(link: Link, kind: Kind, jobs: Sequence[Job]) -> None:
    """Send jobs until each is done; results and errors are stored in them."""
    waiting = list(jobs)
    while waiting:
        chunks = list(_chunks(waiting))
        alone = len(chunks) == 1
        calls = [_send(link, kind, chunk, alone=alone) for chunk in chunks]
        pause, started = 0.0, time.monotonic()
        for chunk, call in zip(chunks, calls, strict=True):
            try:
                items = _reply(link, kind, chunk, call)
            except grpc.RpcError as error:
                silent = time.monotonic() - started > SILENT_SECONDS
                pause = max(pause, _failed(link, chunk, error, silent=silent))
                continue
            except MlrlError as error:
                for job in chunk:
                    job.done = error
                continue
            for job, item in zip(chunk, items, strict=True):
                _take(kind, job, item)
        left = [job for job in waiting if job.done is None]
        if len(left) < len(waiting):  # a server that keeps few sessions plays a batch in parts
            for job in left:
                job.replays = 0
        waiting = left
        if waiting and pause:
            time.sleep(pause)


def _chunks(jobs: Sequence[Job]) -> Iterator[list[Job]]:
    """Yield jobs for the same method of the same server, not too many at once."""
    groups: dict[tuple[str, str], list[Job]] = {}
    for job in jobs:
        groups.setdefault((job.address, job.method), []).append(job)
    for group in groups.values():
        chunk: list[Job] = []
        size = 0
        for job in group:
            own = job.joint.ByteSize() if job.joint is not None else 0
            own += sum(turn.ByteSize() for turn in job.turns) if job.lost else 0
            if chunk and (len(chunk) == CHUNK_ITEMS or size + own > CHUNK_BYTES):
                yield chunk
                chunk, size = [], 0
            chunk.append(job)
            size += own
        yield chunk


def _send(link: Link, kind: Kind, chunk: Sequence[Job], *, alone: bool) -> Callable[[], Any]:
    """Start a call, unless it is alone, and return what waits for its reply."""
    method, address = chunk[0].method, chunk[0].address
    fields: dict[str, Any] = {"items": [job.item() for job in chunk]}
    if method != "Step":
        fields["place"] = kind.place
    if method != "Restore":
        fields["closed"] = link.released(address)
    request = message(f"{method}Request")(**fields)
    if alone:
        return functools.partial(link.call, address, method, request)
    return link.start(address, method, request)


def _reply(link: Link, kind: Kind, chunk: Sequence[Job], call: Callable[[], Any]) -> Sequence[Any]:
    address = chunk[0].address
    try:
        reply = call()
        _check_same(link, kind, chunk[0], reply.boot_id)
    except grpc.RpcError as error:
        refusal = refusal_of(error, address)
        if refusal is None:
            raise
        raise refusal from None
    if len(reply.items) != len(chunk):
        raise RemoteEnvError(f"environment server {address} answered another number of items")
    return reply.items  # type: ignore[no-any-return]  # gRPC is untyped


def _check_same(link: Link, kind: Kind, job: Job, boot_id: str) -> None:
    """Check that a server has the data and the scorer that the environment was made with.

    It is asked at its first episode, after a failure or a start, and when it replays an episode.

    Raises:
        RemoteEnvError: If it has not.
    """
    if job.method == "Step":
        return
    address, known = job.address, link.fingerprints[job.address]
    key = (boot_id, kind.place.env_id, kind.place.options)
    told = known.get(key) if job.method == "Open" else None
    if told is None:
        known[key] = told = describe(link, kind.place, address)["fingerprint"]
    if told != kind.fingerprint:
        raise RemoteEnvError(
            f"environment server {address} has other tasks or another scorer than before; "
            "run the same version of mlrl and of the data on all servers"
        )


def _take(kind: Kind, job: Job, item: Any) -> None:  # noqa: ANN401  a message
    """Store the result of a job, or prepare what it needs next."""
    if item.HasField("played"):
        position = position_of(item.played)
        if not job.lost:
            job.done = position
        elif job.seen is not None and position.result[0] != job.seen:
            job.done = RemoteEnvError(
                f"environment server {job.address}: the replayed episode differs from the lost one"
            )
        else:
            job.lost = False
            if not job.origin or job.joint is None:
                job.done = position
        return
    failure = item.failure
    if failure.kind in ("unknown", "played"):
        _replay(kind, job, failure)
    elif not failure.retry:
        job.done = error_of(failure, job.address)


def _replay(kind: Kind, job: Job, failure: Any) -> None:  # noqa: ANN401  a message
    job.replays += 1
    if job.replays > MAX_REPLAYS or (job.turns and not kind.deterministic):
        job.done = error_of(failure, job.address)
        return
    if failure.kind == "played":  # a linear session goes on once; the fork gets one of its own
        job.origin = secrets.token_bytes(16)
    job.lost = True


def _failed(link: Link, chunk: Sequence[Job], error: Any, *, silent: bool) -> float:  # noqa: ANN401
    """Note the failure of a call and return the seconds to wait before the next one."""
    now, address = time.monotonic(), chunk[0].address
    wait = dict(error.trailing_metadata() or ()).get(RETRY_KEY)
    limit = link.connection.deadline_seconds if wait else link.connection.retry_seconds
    text = " ".join(f"{error.code().name}: {error.details()}".split())[:200]
    link.fingerprints[address].clear()  # it may come back as another version
    after = link.addresses.index(address) + 1
    rest = [*link.addresses[after:], *link.addresses[: after - 1]]
    for job in chunk:
        job.failed_at = job.failed_at or now
        job.failures += 0 if wait else 1
        job.tried.add(address)
        untried = [each for each in rest if each not in job.tried]
        late = now - job.failed_at > limit
        if not untried and (late or (link.is_given_up() and not wait)):
            link.mark_down(address)
            link.give_up()
            job.done = RemoteEnvError(
                f"environment server {address} does not answer ({text}); is it running?"
            )
            continue
        # A stopped machine accepts calls and does not answer.
        leaves = silent or job.failures >= link.connection.retries or link.is_down(address)
        if not rest or not (late or (leaves and not wait)):
            continue
        link.mark_down(address)
        others = untried or rest
        job.address = next((each for each in others if not link.is_down(each)), others[0])
        job.lost = bool(job.origin)
        if untried:
            job.failures, job.failed_at = 0, 0.0
    if wait:
        return jitter(int(wait) / 1_000)
    return pause_after(max(job.failures for job in chunk))
