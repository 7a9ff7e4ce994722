"""Channels of a client to its servers, and the keys of sessions that it no longer needs."""

import collections
import contextlib
import functools
import itertools
import os
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

import grpc

from mlrl_envs.errors import InvalidArgumentError, MlrlError, RemoteEnvError
from mlrl_envs.hosts import is_loopback
from mlrl_envs.serve.access import read_secret
from mlrl_envs.serve.address import Connection, host_of
from mlrl_envs.serve.failures import error_of
from mlrl_envs.serve.messages import MAX_BYTES, METHODS, SERVICE, message

__all__ = ["FAILURE_KEY", "RETRY_KEY", "Link", "Session", "link_to", "refusal_of"]

FAILURE_KEY = "mlrl-failure-bin"
RETRY_KEY = "mlrl-retry-ms"
DOWN_SECONDS = 30
MAX_CLOSED = 4_096
_OPTIONS = [
    ("grpc.max_receive_message_length", 2 * MAX_BYTES),
    ("grpc.max_send_message_length", MAX_BYTES),
    # A server that is stopped or unplugged answers no pings.
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 5_000),
    ("grpc.http2.ping_timeout_ms", 10_000),  # a minute by default, whatever keepalive says
    ("grpc.min_reconnect_backoff_ms", 3_000),  # also the time limit of a connection attempt
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 3_000),
]
_Code = grpc.StatusCode


class Session:
    """A session of a server; it is released when no environment refers to it any more.

    Args:
        link: The link to the server.
        key: The key.
        address: The server that holds it, or held it last.
        owned: Whether to release it.
    """

    __slots__ = ("__weakref__", "address", "key", "link", "owned")

    def __init__(self, link: "Link", key: bytes, address: str, *, owned: bool = True) -> None:
        self.link, self.key, self.address, self.owned = link, key, address, owned

    def __del__(self) -> None:
        if self.owned:
            self.link.closed[self.address].append(self.key)


class Link:
    """Connections to some servers; one for all environments of a process.

    Args:
        addresses: The servers.
        connection: The settings.

    Raises:
        InvalidArgumentError: If a file cannot be read, or a token would be sent without TLS.
    """

    def __init__(self, addresses: tuple[str, ...], connection: Connection) -> None:
        self.addresses, self.connection = addresses, connection
        self.closed: dict[str, collections.deque[bytes]] = {
            address: collections.deque(maxlen=MAX_CLOSED) for address in addresses
        }
        self.fingerprints: dict[str, dict[object, object]] = {each: {} for each in addresses}
        """For each server, fingerprints by its start and the environment."""
        self.has_answered = False
        """Whether any server has answered a call."""
        self._down: dict[str, float] = {}
        self._given_up = 0.0
        self._turn = itertools.count()
        self._lock = threading.Lock()
        self._sessions: weakref.WeakValueDictionary[bytes, Session] = weakref.WeakValueDictionary()
        self._methods: dict[tuple[str, str], Any] = {}
        self._channels: list[Any] = []
        self._pid = os.getpid()
        self._metadata = self._credentials()

    def session(self, key: bytes, address: str) -> Session:
        """Return the session with a key; there is one for all environments that refer to it."""
        with self._lock:
            found = self._sessions.get(key)
            if found is None:
                self._sessions[key] = found = Session(self, key, address)
            found.address = address
            return found

    def choose(self) -> str:
        """Return the next server that is not known to be down."""
        up = [each for each in self.addresses if not self.is_down(each)] or self.addresses
        return up[next(self._turn) % len(up)]

    def is_down(self, address: str) -> bool:
        """Return whether a server failed a short while ago."""
        return self._down.get(address, 0.0) > time.monotonic()

    def mark_down(self, address: str) -> None:
        """Avoid a server for a while."""
        self._down[address] = time.monotonic() + DOWN_SECONDS

    def is_given_up(self) -> bool:
        """Return whether, a short while ago, no server had answered for `retry_seconds`."""
        return self._given_up > time.monotonic()

    def give_up(self) -> None:
        """Do not wait for servers for 30 seconds, unless one answers; later calls add no time."""
        if not self.is_given_up():
            self._given_up = time.monotonic() + DOWN_SECONDS

    def released(self, address: str) -> list[bytes]:
        """Return keys of sessions on a server that may be closed, once."""
        keys, waiting = [], self.closed[address]
        with self._lock:
            while waiting:
                keys.append(waiting.popleft())
        return [key for key in keys if key not in self._sessions]

    def send(self, address: str, method: str, request: Any) -> Any:  # noqa: ANN401  gRPC
        """Start a call and return its future."""
        seconds = self.connection.deadline_seconds
        return self._method(address, method).future(
            request, timeout=seconds, metadata=self._metadata
        )

    def start(self, address: str, method: str, request: Any) -> Callable[[], Any]:  # noqa: ANN401
        """Start a call and return what waits for its reply and returns it, as `call` does."""
        sent, future = self._metadata, self.send(address, method, request)

        def wait() -> Any:  # noqa: ANN401  gRPC
            try:
                reply = future.result()
            except grpc.RpcError as error:
                if not self._renews(error, sent):
                    raise
                return self.call(address, method, request)
            self._answered(address)
            return reply

        return wait

    def call(self, address: str, method: str, request: Any) -> Any:  # noqa: ANN401  gRPC
        """Return the reply to a call; cheaper than a future, for which gRPC starts a thread.

        A call with a refused token is repeated once if the file holds another one by now.

        Raises:
            grpc.RpcError: If the call fails.
        """
        sent, seconds = self._metadata, self.connection.deadline_seconds
        play = functools.partial(self._method(address, method), request, timeout=seconds)
        try:
            reply = play(metadata=sent)
        except grpc.RpcError as error:
            if not self._renews(error, sent):
                raise
            reply = play(metadata=self._metadata)
        self._answered(address)
        return reply

    def _answered(self, address: str) -> None:
        self._down.pop(address, None)
        self._given_up = 0.0
        self.has_answered = True

    def _renews(self, error: Any, sent: object) -> bool:  # noqa: ANN401  an error of gRPC
        """Return whether a call failed because of its token, and there is another one by now."""
        if error.code() is not _Code.UNAUTHENTICATED:
            return False
        with contextlib.suppress(InvalidArgumentError):  # it may be written just now
            self._metadata = self._credentials()
        return self._metadata != sent

    def _method(self, address: str, name: str) -> Any:  # noqa: ANN401  gRPC
        with self._lock:
            if self._pid != os.getpid():  # channels do not survive a fork
                self._methods, self._channels, self._pid = {}, [], os.getpid()
            if (address, name) not in self._methods:
                channel = self._channel(address)
                for each, (request, reply) in METHODS.items():
                    self._methods[address, each] = channel.unary_unary(
                        f"/{SERVICE}/{each}",
                        request_serializer=message(request).SerializeToString,  # type: ignore[attr-defined]
                        response_deserializer=message(reply).FromString,  # type: ignore[attr-defined]
                    )
            return self._methods[address, name]

    def _channel(self, address: str) -> Any:  # noqa: ANN401  gRPC
        options = _OPTIONS
        if is_loopback(host_of(address)):  # a proxy would get the token in the clear
            options = [*_OPTIONS, ("grpc.enable_http_proxy", 0)]
        if self._uses_tls:
            roots = None
            if self.connection.ca_file is not None:
                roots = read_secret("ca_file", self.connection.ca_file)
            credentials = grpc.ssl_channel_credentials(roots)
            channel = grpc.secure_channel(address, credentials, options=options)
        else:
            channel = grpc.insecure_channel(address, options=options)
        self._channels.append(channel)
        return channel

    @property
    def _uses_tls(self) -> bool:
        return self.connection.tls or self.connection.ca_file is not None

    def _credentials(self) -> tuple[tuple[str, str], ...]:
        if self.connection.token_file is None:
            return ()
        far = [each for each in self.addresses if not is_loopback(host_of(each))]
        if far and not self._uses_tls:
            raise InvalidArgumentError(
                f"the token would be sent to {far[0]} in the clear: set ca_file, or tls=True"
            )
        token = read_secret("token_file", self.connection.token_file).decode("utf-8", "replace")
        words = token.split()
        if len(words) != 1 or not words[0].isascii():
            raise InvalidArgumentError(f"{self.connection.token_file!r} must hold one token")
        return (("authorization", f"Bearer {words[0]}"),)


@functools.lru_cache(maxsize=256)
def link_to(addresses: tuple[str, ...], connection: Connection) -> Link:
    """Return the link of this process to some servers."""
    return Link(addresses, connection)


def refusal_of(error: Any, address: str) -> MlrlError | None:  # noqa: ANN401  an error of gRPC
    """Return the error of a call that would fail again; None for one that may be repeated."""
    trailing = dict(error.trailing_metadata() or ())
    if FAILURE_KEY in trailing:
        return error_of(message("Failure").FromString(trailing[FAILURE_KEY]), address)  # type: ignore[attr-defined]
    code = error.code()
    if code is _Code.UNAUTHENTICATED:
        return RemoteEnvError(
            f"environment server {address} wants a known token: set token_file, or the variable "
            "MLRL_SERVE_TOKEN_FILE"
        )
    if code is _Code.RESOURCE_EXHAUSTED and RETRY_KEY not in trailing:
        return RemoteEnvError(
            f"environment server {address}: a message is larger than {MAX_BYTES >> 20} MiB"
        )
    passing = (
        *(_Code.UNAVAILABLE, _Code.DEADLINE_EXCEEDED, _Code.RESOURCE_EXHAUSTED, _Code.ABORTED),
        *(_Code.CANCELLED, _Code.INTERNAL),
    )
    if code in passing and "CERTIFICATE_VERIFY_FAILED" not in str(error.details()):
        return None
    return RemoteEnvError(f"environment server {address} refused: {_line(error)}")


def _line(error: Any) -> str:  # noqa: ANN401  an error of gRPC
    return " ".join(f"{error.code().name}: {error.details()}".split())[:300]
