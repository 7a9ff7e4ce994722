"""Policy server process: loads the models, listens, and drains on SIGTERM."""

import contextlib
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from mlrl_envs.serve import Tokens, read_secret
from mlrl_learners.algorithms.team_options import ComputeOptions
from mlrl_learners.errors import ConfigError
from mlrl_learners.monitor.hosts import family
from mlrl_learners.serving.batcher import Batcher
from mlrl_learners.serving.models import ServedModels, is_run
from mlrl_learners.serving.settings import PolicyServerConfig

if TYPE_CHECKING:
    import uvicorn

__all__ = ["PolicyServer", "serve_policy"]


class PolicyServer:
    """A policy server. It listens once it is constructed; `run` answers requests.

    Args:
        config: Settings.

    Attributes:
        config: Settings.
        batcher: Samples the answers.
        port: Port on which the server listens.

    Raises:
        ConfigError: If a package is missing, or `watch` is set for a model that is not a run.
        InvalidArgumentError: If the token file or a TLS file cannot be read.
        ModelNotFoundError: If the model does not exist.
        CheckpointError: If the run has no checkpoint.
        OSError: If the port is taken.
    """

    def __init__(self, config: PolicyServerConfig) -> None:
        try:
            import uvicorn

            from mlrl_learners.serving.app import make_app
        except ImportError as error:
            raise ConfigError(f"{error.name} is not installed: pip install 'mlrl[serve]'") from None
        Tokens(config.token_file)  # report a mistake before a model is loaded
        for name in ("tls_cert", "tls_key"):
            if getattr(config, name) is not None:
                read_secret(name, getattr(config, name))
        if config.watch and not is_run(Path(config.model)):
            raise ConfigError(f"--watch needs a run, got {config.model!r}")
        self.config = config
        self._listener = _listen(config.host, config.port)
        self.port: int = self._listener.getsockname()[1]
        compute = ComputeOptions(
            device=config.device,
            dtype=config.dtype,
            precision=config.precision,  # type: ignore[arg-type]  # checked by the policy
            max_rows=config.max_rows,
        )
        try:
            models = ServedModels(config.model, compute)
        except BaseException:
            self._listener.close()
            raise
        self.batcher = Batcher(
            models, max_rows=config.max_rows, batch_seconds=config.batch_milliseconds / 1000
        )
        self._server = uvicorn.Server(_server_config(make_app(self.batcher, config), config))

    @property
    def url(self) -> str:
        """Base URL of the API."""
        scheme = "http" if self.config.tls_cert is None else "https"
        host = f"[{self.config.host}]" if ":" in self.config.host else self.config.host
        return f"{scheme}://{host}:{self.port}/v1"

    def run(self) -> None:
        """Answer requests until `stop`, or until SIGTERM or SIGINT in the main thread."""
        try:
            with self._listener, _harmless_sigterm():
                self._server.run(sockets=[self._listener])
        finally:
            self.batcher.close()

    def stop(self) -> None:
        """Finish the requests in flight, and let `run` return."""
        self._server.should_exit = True


def serve_policy(config: PolicyServerConfig, announce: Callable[[PolicyServer], None]) -> None:
    """Serve a model until interrupted; raises the errors of `PolicyServer`.

    Args:
        config: Settings.
        announce: Called with the server once it listens.
    """
    server = PolicyServer(config)
    announce(server)
    server.run()


def _server_config(app: object, config: PolicyServerConfig) -> "uvicorn.Config":
    import uvicorn

    from mlrl_learners.monitor.connections import BoundedProtocol

    return uvicorn.Config(
        app,  # type: ignore[arg-type]
        http=BoundedProtocol,
        ws="none",
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=config.drain_seconds,
        ssl_certfile=config.tls_cert,
        ssl_keyfile=config.tls_key,
    )


def _listen(host: str, port: int) -> socket.socket:
    try:
        return socket.create_server((host, port), family=family(host))
    except OSError as error:
        raise OSError(f"cannot listen on {host} port {port}: {error.strerror}") from error


@contextlib.contextmanager
def _harmless_sigterm() -> Iterator[None]:
    """Ignore the SIGTERM that uvicorn raises again after it has drained the requests."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
