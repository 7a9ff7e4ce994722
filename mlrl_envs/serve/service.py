"""Methods of an environment server: sessions of an owner, opened, stepped, replayed and read.

Work goes on when a call is cancelled, so that the client finds the result when it asks again.
"""

import asyncio
import logging
import secrets
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeAlias

from mlrl_envs.errors import MlrlError
from mlrl_envs.serve.batching import MicroBatcher, Played, Step
from mlrl_envs.serve.counters import Counters
from mlrl_envs.serve.failures import RequestError, failure_message
from mlrl_envs.serve.messages import MAX_BYTES, PROTOCOL, message, to_json
from mlrl_envs.serve.places import Place, Places
from mlrl_envs.serve.results import joint_of, played_message
from mlrl_envs.serve.sessions import Session, SessionStore

__all__ = ["EnvService"]

KEY_BYTES = 16
REPLY_BYTES = 48 << 20  # a reply must fit into a message, with its last item
UNKNOWN = "the session is not here (restarted, expired or evicted)"
Work = Coroutine[Any, Any, bytes]
Answer: TypeAlias = bytes | asyncio.Task[bytes] | Exception
"""The reply about a session, the task that makes it, or the reason why there is none."""

_log = logging.getLogger("mlrl.serve")


class EnvService:
    """Answers of a server; errors of an item are part of the reply.

    Args:
        places: Environments on offer.
        store: Sessions.
        batcher: Plays steps.
        max_items: Most items of a call.
    """

    def __init__(
        self,
        places: Places,
        store: SessionStore,
        batcher: MicroBatcher,
        *,
        max_items: int,
    ) -> None:
        self.places, self.store, self.batcher = places, store, batcher
        self.max_items = max_items
        self.boot_id = secrets.token_hex(8)
        self.counters = Counters()
        self._playing: dict[tuple[str, bytes], asyncio.Task[bytes]] = {}

    async def describe(self, _owner: str, request: Any) -> Any:  # noqa: ANN401  messages
        """Return what a client needs to know about an environment."""
        if request.protocol != PROTOCOL:
            raise RequestError(
                "refused",
                f"the server speaks protocol {PROTOCOL}, the client {request.protocol}; "
                "install the same version of mlrl on both sides",
            )
        place = await self.batcher.call(lambda: self.places.find(request.place))
        return message("DescribeReply")(
            description=to_json(place.description),
            boot_id=self.boot_id,
            protocol=PROTOCOL,
            max_items=self.max_items,
            max_bytes=MAX_BYTES,
        )

    async def open(self, owner: str, request: Any) -> Any:  # noqa: ANN401  messages
        """Start episodes."""
        self.store.close(owner, request.closed)
        place = await self.batcher.call(lambda: self.places.find(request.place))
        works = [
            self._once(owner, item.into, lambda item=item: self._open(owner, place, item, ()))  # type: ignore[misc]
            for item in request.items
        ]
        return await self._reply(works, "opened")

    async def step(self, owner: str, request: Any) -> Any:  # noqa: ANN401  messages
        """Play joint actions."""
        self.store.close(owner, request.closed)
        alone = len(request.items) == 1
        works = [self._begin(owner, item, alone=alone) for item in request.items]
        return await self._reply(works, "stepped")

    async def restore(self, owner: str, request: Any) -> Any:  # noqa: ANN401  messages
        """Play episodes again."""
        place = await self.batcher.call(lambda: self.places.find(request.place))
        works = [
            self._once(
                owner,
                item.into,
                lambda item=item: self._open(owner, place, item, item.turns),  # type: ignore[misc]
            )
            for item in request.items
        ]
        return await self._reply(works, "restored")

    async def view(self, owner: str, request: Any, read: Callable[[Any], Any]) -> Any:  # noqa: ANN401
        """Return what a function reads from sessions."""
        reply = message("ViewReply")()
        for key in request.keys:
            session, item = self.store.get(owner, key), reply.items.add()
            try:
                if session is None or session.env is None:
                    raise RequestError("unknown", UNKNOWN)
                env = session.env
                item.json = to_json(await self.batcher.call(lambda env=env: read(env)))  # type: ignore[misc]
            except Exception as error:  # noqa: BLE001  the code of an environment
                item.failure.CopyFrom(self.failed(error))
        return reply

    async def close(self, owner: str, request: Any) -> Any:  # noqa: ANN401  messages
        """Drop sessions."""
        return message("CloseReply")(closed=self.store.close(owner, request.keys))

    async def stats(self, _owner: str, _request: Any) -> Any:  # noqa: ANN401  messages
        """Return the counters of the server."""
        return message("StatsReply")(numbers=self.numbers())

    def numbers(self) -> dict[str, float]:
        """Return the counters and gauges of the server."""
        return {
            **self.counters.numbers(),
            "sessions": len(self.store),
            "sessions_evicted_total": self.store.evicted,
            "sessions_expired_total": self.store.expired,
            "steps_waiting": self.batcher.load,
            "batches_total": self.batcher.batches,
            "batched_steps_total": self.batcher.steps,
        }

    async def _reply(self, works: Sequence[Answer], name: str) -> Any:  # noqa: ANN401  a message
        reply, size = message("PlayReply")(boot_id=self.boot_id), 0
        for work in works:
            item = reply.items.add()
            try:
                if isinstance(work, Exception):
                    raise work
                data = work if isinstance(work, bytes) else await asyncio.shield(work)
                size += len(data)
                if size > REPLY_BYTES and len(reply.items) > 1:
                    raise RequestError("later", "the reply is full; ask again", retry=True)
                item.played.ParseFromString(data)
                self.counters.add(name)
            except Exception as error:  # noqa: BLE001  any environment
                item.failure.CopyFrom(self.failed(error))
        return reply

    def failed(self, error: BaseException) -> Any:  # noqa: ANN401  a message
        """Return the message about an error, count it, and log what clients must not see."""
        if not isinstance(error, MlrlError | RequestError):
            _log.error("a request failed", exc_info=error)
        failure = failure_message(error)
        self.counters.add(f"failed_{failure.kind}")
        return failure

    def _once(self, owner: str, into: bytes, work: Callable[[], Work]) -> Answer:
        """Return the reply of a session, or the task that makes it; it is made once."""
        known = self._known(owner, into)
        return self._started(owner, into, work()) if known is None else known

    def _known(self, owner: str, into: bytes) -> Answer | None:
        """Return the reply of a session, or the task that is making it, if there is one."""
        if len(into) != KEY_BYTES:
            return RequestError("refused", f"a key has {KEY_BYTES} bytes, got {len(into)}")
        if running := self._playing.get((owner, into)):
            return running
        session = self.store.get(owner, into)
        return None if session is None else session.reply

    def _started(self, owner: str, into: bytes, work: Work) -> "asyncio.Task[bytes]":
        task = asyncio.ensure_future(work)
        self._playing[owner, into] = task
        task.add_done_callback(lambda done: self._finished(owner, into, done))
        return task

    def _finished(self, owner: str, into: bytes, task: "asyncio.Task[bytes]") -> None:
        self._playing.pop((owner, into), None)
        if not task.cancelled():
            task.exception()  # the call that would read it may be gone

    def _begin(self, owner: str, item: Any, *, alone: bool) -> Answer:  # noqa: ANN401  a message
        """Return the reply to a step, or the task that makes it; a quick one is played at once."""
        known = self._known(owner, item.into)
        if known is not None:
            return known
        try:
            origin = self._origin(owner, item)
            step = Step(origin.place, origin.env, joint_of(item.joint))
            if not origin.place.forkable:
                origin.spent = item.into
            played = self.batcher.play_now(step) if alone else None
            if played is not None:
                return self._stepped(owner, item, origin, played)
        except Exception as error:  # noqa: BLE001  any environment
            return error
        return self._started(owner, item.into, self._queued(owner, item, origin, step))

    def _origin(self, owner: str, item: Any) -> Session:  # noqa: ANN401  a message
        """Return the session that a step starts from.

        Raises:
            RequestError: If it is unknown, or linear and its turn is played.
        """
        origin = self.store.get(owner, item.origin)
        if origin is None:
            raise RequestError("unknown", UNKNOWN)
        if not origin.place.forkable and (origin.spent or origin.env is None):
            raise RequestError(
                "played", "this environment cannot be copied, and the turn is played already"
            )
        return origin

    async def _queued(self, owner: str, item: Any, origin: Session, step: Step) -> bytes:  # noqa: ANN401
        return self._stepped(owner, item, origin, await self.batcher.submit(step))

    def _stepped(self, owner: str, item: Any, origin: Session, result: Played) -> bytes:  # noqa: ANN401
        """Keep the session that a step made, and return the reply; a failed step makes none."""
        env, played = result
        if isinstance(played, BaseException):
            origin.spent = b""
            raise played
        if not origin.place.forkable:
            origin.env = None
        session = Session(origin.place, env, played.SerializeToString())
        return self._keep(owner, item.into, session)

    async def _open(self, owner: str, place: Place, item: Any, turns: Sequence[Any]) -> bytes:  # noqa: ANN401
        """Start an episode and play its turns."""
        if turns and not place.deterministic:
            raise RequestError("refused", f"{place.env_id} does not repeat, the episode is lost")
        env, begun, generator = await self.batcher.call(lambda: place.begin(item.opening))
        played = played_message(env, (begun[0], {}, {}, {}, begun[1]), generator)
        for joint in turns:
            env, played = await self.batcher.submit(Step(place, env, joint_of(joint)))
            if isinstance(played, BaseException):
                raise played
        return self._keep(owner, item.into, Session(place, env, played.SerializeToString()))

    def _keep(self, owner: str, key: bytes, session: Session) -> bytes:
        self.store.put(owner, key, session)
        return session.reply
