"""The environment server: gRPC on one event loop, with health, reflection, metrics and draining."""

import asyncio
import contextlib
import functools
import itertools
import logging
import signal
from collections.abc import Awaitable, Callable
from typing import Any

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from mlrl_envs.serve.access import ServerConfig, Tokens, read_secret
from mlrl_envs.serve.batching import MicroBatcher
from mlrl_envs.serve.counters import serve_metrics
from mlrl_envs.serve.failures import RequestError
from mlrl_envs.serve.messages import MAX_BYTES, METHODS, SERVICE, message
from mlrl_envs.serve.places import Places
from mlrl_envs.serve.service import EnvService
from mlrl_envs.serve.sessions import SessionStore

__all__ = ["FAILURE_KEY", "RETRY_KEY", "EnvServer", "serve_envs"]

FAILURE_KEY = "mlrl-failure-bin"
RETRY_KEY = "mlrl-retry-ms"
SELF_TEST_SECONDS = 60
_COUNTED = ("Open", "Step", "Restore")
_OPTIONS = [
    ("grpc.max_receive_message_length", MAX_BYTES),
    ("grpc.max_send_message_length", 2 * MAX_BYTES),
    ("grpc.so_reuseport", 0),  # a second server on the same port is a mistake
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.min_recv_ping_interval_without_data_ms", 5_000),
]
_log = logging.getLogger("mlrl.serve")
_numbers = itertools.count()


class EnvServer:
    """A server, to be started inside an event loop.

    Args:
        config: The settings.
    """

    def __init__(self, config: ServerConfig) -> None:
        self.config = config
        self.tokens = Tokens(config.token_file)
        self.store = SessionStore(config.max_sessions, config.session_seconds)
        self.batcher = MicroBatcher()
        self.service = EnvService(
            Places(config.ids, trust_options=config.trust_options),
            self.store,
            self.batcher,
            max_items=config.max_items,
        )
        self.port = self.metrics_port = 0
        self._health = health.aio.HealthServicer()
        self._tasks: list[asyncio.Task[None]] = []
        self._metrics: asyncio.Server | None = None

    async def start(self) -> None:
        """Test the sandbox, then listen.

        Raises:
            InvalidArgumentError: If a file of TLS cannot be read.
            OSError: If a port is taken.
        """
        healthy = await self._self_test()  # before gRPC starts threads: workers are processes
        await self._serve_metrics()
        self._server = grpc.aio.server(options=_OPTIONS)
        self._server.add_generic_rpc_handlers([self._handlers()])
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        reflection.enable_server_reflection(
            (SERVICE, health.SERVICE_NAME, reflection.SERVICE_NAME), self._server
        )
        address = f"{self.config.host}:{self.config.port}"
        try:
            if self.config.tls_cert is None or self.config.tls_key is None:
                self.port = self._server.add_insecure_port(address)
            else:
                key = read_secret("tls_key", self.config.tls_key)
                chain = read_secret("tls_cert", self.config.tls_cert)
                credentials = grpc.ssl_server_credentials([(key, chain)])
                self.port = self._server.add_secure_port(address, credentials)
        except RuntimeError as error:
            raise OSError(f"cannot listen on {address}; is the port taken, or TLS bad?") from error
        await self._server.start()
        await self._set_health(healthy=healthy)
        self._tasks = [asyncio.ensure_future(self._reap()), asyncio.ensure_future(self._watch())]

    async def stop(self) -> None:
        """Refuse new calls, wait for running ones, and end."""
        await self._health.enter_graceful_shutdown()
        await self._server.stop(self.config.drain_seconds)
        for task in self._tasks:
            task.cancel()
        if self._metrics is not None:
            self._metrics.close()
        self.batcher.close()

    async def _serve_metrics(self) -> None:
        port = self.config.metrics_port
        if port is None:
            return
        try:
            self._metrics = await serve_metrics(self.service.numbers, "127.0.0.1", port)
        except OSError as error:
            text = f"cannot listen on 127.0.0.1:{port}; is the metrics port taken?"
            raise OSError(text) from error
        self.metrics_port = self._metrics.sockets[0].getsockname()[1]

    def _handlers(self) -> Any:  # noqa: ANN401  gRPC is untyped
        handlers = {}
        for name, (request, reply) in METHODS.items():
            handlers[name] = grpc.unary_unary_rpc_method_handler(
                functools.partial(self._answer, name),
                request_deserializer=message(request).FromString,  # type: ignore[attr-defined]
                response_serializer=message(reply).SerializeToString,  # type: ignore[attr-defined]
            )
        return grpc.method_handlers_generic_handler(SERVICE, handlers)

    async def _answer(self, name: str, request: Any, context: Any) -> Any:  # noqa: ANN401  gRPC
        metadata = dict(context.invocation_metadata() or ())
        owner = self.tokens.owner_of(str(metadata.get("authorization", "")))
        if owner is None:
            self.service.counters.add("unauthenticated")
            await context.abort(grpc.StatusCode.UNAUTHENTICATED, "the server needs a known token")
        await self._admit(name, request, context)
        self.batcher.callers += 1
        try:
            return await self._method(name)(str(owner), request)
        except Exception as error:  # noqa: BLE001  any environment, and any request
            data = self.service.failed(error).SerializeToString()
            context.set_trailing_metadata(((FAILURE_KEY, data),))
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "see the failure")
        finally:
            self.batcher.callers -= 1

    async def _admit(self, name: str, request: Any, context: Any) -> None:  # noqa: ANN401  gRPC
        """Refuse calls with too many items, and calls while too many steps wait."""
        items = len(getattr(request, "items", ())) if name in _COUNTED else 0
        if items > self.config.max_items:
            text = f"at most {self.config.max_items} items a call, got {items}"
            await context.abort(grpc.StatusCode.OUT_OF_RANGE, text)
        load = self.batcher.load
        if items and load and load + items > self.config.max_in_flight:
            self.service.counters.add("refused_calls")
            context.set_trailing_metadata(((RETRY_KEY, str(100 + min(load, 5_000))),))
            text = f"{load} steps are waiting; try again"
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, text)

    def _method(self, name: str) -> Callable[[str, Any], Awaitable[Any]]:
        if name == "Reference" and not self.config.references:
            raise RequestError(
                "refused", "reference answers are not served; start it with --references"
            )
        views: dict[str, Callable[[Any], object]] = {
            "State": _state,
            "Render": _rendered,
            "Reference": lambda env: getattr(env, "reference_actions", lambda: None)(),
        }
        if name in views:
            return functools.partial(self.service.view, read=views[name])
        return getattr(self.service, name.lower())  # type: ignore[no-any-return]

    async def _set_health(self, *, healthy: bool) -> None:
        status = health_pb2.HealthCheckResponse
        for name in ("", SERVICE):
            await self._health.set(name, status.SERVING if healthy else status.NOT_SERVING)

    async def _reap(self) -> None:
        while True:
            await asyncio.sleep(min(10.0, self.config.session_seconds / 4))
            self.store.expire()

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(SELF_TEST_SECONDS)
            await self._set_health(healthy=await self._self_test())

    async def _self_test(self) -> bool:
        if not self.config.sandbox:
            return True
        try:
            return await asyncio.get_running_loop().run_in_executor(None, _run_program)
        except Exception as error:  # noqa: BLE001  whatever fails, the server is not healthy
            _log.warning("the sandbox runs no programs, so the server is not healthy: %s", error)
            return False


def serve_envs(config: ServerConfig, announce: Callable[[EnvServer], None] | None = None) -> None:
    """Serve environments until SIGTERM or SIGINT, then drain.

    Args:
        config: The settings.
        announce: Called once with the server, when it listens.

    Raises:
        InvalidArgumentError: If a file cannot be read.
        UnknownNameError: If there is no environment of an id.
        OSError: If the port is taken.
    """
    asyncio.run(_serve(config, announce))


async def _serve(config: ServerConfig, announce: Callable[[EnvServer], None] | None) -> None:
    server = EnvServer(config)
    await server.start()
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        with contextlib.suppress(NotImplementedError, RuntimeError):  # not in the main thread
            loop.add_signal_handler(number, ended.set)
    if announce is not None:
        announce(server)
    await ended.wait()
    await server.stop()


def _state(env: Any) -> Any:  # noqa: ANN401  any environment
    """Return the joint observation; empty where the environment has none."""
    try:
        return env.state() if hasattr(env, "state") else ""
    except NotImplementedError:  # of PettingZoo's class
        return ""


def _rendered(env: Any) -> str | None:  # noqa: ANN401  any environment
    previous = getattr(env, "render_mode", None)
    env.render_mode = "ansi"
    try:
        text = env.render()
    finally:
        env.render_mode = previous
    return text if isinstance(text, str) else None


def _run_program() -> bool:
    """Run a program that no cache knows."""
    from mlrl_envs import sandbox

    number = next(_numbers)
    source = f"def answer():\n    return {number}\n"
    return sandbox.run(source, f"assert answer() == {number}\n").status == "passed"
