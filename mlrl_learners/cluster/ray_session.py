"""Ray from the start of a run to its end: started here, or a cluster that is connected to.

Ray that is started here has a temporary folder of its own for logs and its token, and ends with the
run on every exit; nothing is detached. The actors of a run end with it on a cluster, too.
"""

import contextlib
import functools
import logging
import os
import secrets
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from mlrl_envs.errors import MissingPackageError
from mlrl_learners.config.ray import RayConfig
from mlrl_learners.errors import ConfigError, SamplerError

__all__ = ["open_ray"]

MAX_FOLDER = 30  # characters; Ray's sockets lie below it, and their paths have at most 107
REACH_SECONDS = 30  # for a head that is starting; Ray itself retries for ten minutes
TOKEN_NAMES = ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH", "RAY_AUTH_MODE")
QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}


@contextlib.contextmanager
def open_ray(config: RayConfig) -> Iterator[Any]:
    """Yield the package `ray`, connected inside the block.

    Args:
        config: Address of the cluster, and what samplers need.

    Raises:
        MissingPackageError: If Ray is not installed.
        ConfigError: If Ray is in use in this process, was imported too early or has read another
            token, or the cluster is too small.
        SamplerError: If Ray does not start, or nothing answers at the address.
    """
    with contextlib.ExitStack() as stack:
        stack.enter_context(_same_signal_handlers())
        stack.enter_context(_environment(QUIET))
        folder = None if config.address else stack.enter_context(_folder())
        if folder is not None:
            stack.enter_context(_own_token(folder))
        ray = _package()
        if ray.is_initialized():
            raise ConfigError("Ray is in use in this process: call ray.shutdown() first")
        if config.address:
            _check_token()
            _reach(ray, config.address)
        stack.callback(ray.shutdown)  # also of what a start that failed has left
        try:
            ray.init(**_arguments(config, folder))
        except Exception as error:  # a node that is late raises `Exception` itself
            where = f"at {config.address}" if config.address else "on this machine"
            raise SamplerError(f"Ray does not start {where}: {_reason(error)}") from error
        _check_size(ray, config)
        yield ray


def _package() -> Any:  # noqa: ANN401 - an optional package
    try:
        import ray
    except ImportError as error:
        raise MissingPackageError(
            f"engine ray needs the package ray ({error}): pip install 'mlrl[ray]'"
        ) from None
    return ray


def _check_token() -> None:
    """Refuse to connect with the token of Ray that this process started for an earlier run."""
    if _token.cache_info().currsize and any(name in os.environ for name in TOKEN_NAMES):
        raise ConfigError(
            "this process has started Ray for an earlier run with a token of its own, and Ray "
            "reads its token once: connect to the cluster in a new process"
        )


def _reach(ray: Any, address: str) -> None:  # noqa: ANN401
    """Wait until something listens at an address.

    Raises:
        SamplerError: If nothing does in `REACH_SECONDS`.
    """
    host, _, port = address.rpartition(":")
    if not host:
        return  # `auto`: Ray looks for the head of this machine
    host = host.strip("[]")
    if host in ("localhost", "127.0.0.1", "::1"):
        host = ray.util.get_node_ip_address()  # where Ray connects to for these
    deadline = time.monotonic() + REACH_SECONDS
    while True:
        try:
            socket.create_connection((host, int(port)), timeout=REACH_SECONDS).close()
            return
        except (OSError, OverflowError) as error:
            if time.monotonic() > deadline:
                raise SamplerError(
                    f"nothing answers at {address} ({error}): start a head there with "
                    f"`ray start --head --port {port}`, or correct ray.address"
                ) from None
            time.sleep(1)


def _reason(error: Exception) -> str:
    """Return what an error of Ray says, and the end of what its cause says, in one line."""
    reason = " ".join(str(error).split())[:300]
    cause = " ".join(str(error.__cause__ or "").split())[-200:]
    return f"{reason}: {cause}" if cause else reason


def _arguments(config: RayConfig, folder: Path | None) -> dict[str, Any]:
    quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
    if folder is None:
        return {"address": config.address, **quiet}
    # Samplers may be more than cores: they are then slower, but not refused.
    cores = max(os.cpu_count() or 1, _cores(config))
    return {
        "address": "local",
        "num_cpus": cores,
        "include_dashboard": False,
        "_temp_dir": str(folder),
        **quiet,
    }


def _cores(config: RayConfig) -> int:
    """Return the cores that all processes reserve."""
    return config.samplers * config.threads + config.rollouts


def _check_size(ray: Any, config: RayConfig) -> None:  # noqa: ANN401
    """Refuse more processes than a cluster has room for: they would be waited for."""
    total = ray.cluster_resources()
    samplers = f"ray.samplers {config.samplers}"
    several = ["ray.samplers"] if config.samplers > 1 else []
    if total.get("GPU", 0) < config.samplers * config.gpus:
        raise _too_small(
            f"{total.get('GPU', 0):g} GPUs",
            f"{samplers} of ray.gpus {config.gpus:g} need {config.samplers * config.gpus:g}",
            [*several, "ray.gpus"],
        )
    if total.get("CPU", 0) < _cores(config):
        threads = f" of ray.threads {config.threads}" if config.threads > 1 else ""
        players = f" and ray.rollouts {config.rollouts}" if config.rollouts else ""
        asking = {"ray.threads": config.threads > 1, "ray.rollouts": config.rollouts > 0}
        raise _too_small(
            f"{total.get('CPU', 0):g} CPUs",
            f"{samplers}{threads}{players} need {_cores(config)}",
            [*several, *(name for name, is_asking in asking.items() if is_asking)],
        )


def _too_small(has: str, need: str, options: Sequence[str]) -> ConfigError:
    lower = f"lower {', '.join(options)}, or " if options else ""
    return ConfigError(f"the cluster has {has}, and {need}: {lower}use a larger cluster")


@contextlib.contextmanager
def _own_token(folder: Path) -> Iterator[None]:
    """Let Ray that is started inside the block use a token in a folder, unless the user has one.

    Raises:
        ConfigError: If Ray was imported before it could read a token.
    """
    if any(name in os.environ for name in TOKEN_NAMES):
        yield
        return
    if "ray._raylet" in sys.modules and not _token.cache_info().currsize:
        raise ConfigError(
            "the package ray was imported without the authentication that mlrl starts it with, "
            "which it reads only then: import it after training has begun, or set RAY_AUTH_MODE "
            "and RAY_AUTH_TOKEN before it"
        )
    (folder / "token").touch(mode=0o600)
    (folder / "token").write_text(_token())
    values = {"RAY_AUTH_TOKEN_PATH": str(folder / "token"), "RAY_AUTH_MODE": "token"}
    with _environment(values):
        yield


@functools.cache
def _token() -> str:
    """Return the token of this process; Ray reads it once, so that later runs share it."""
    return secrets.token_hex(32)


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    """Yield a new folder that only this user can read, removed afterwards."""
    parent = tempfile.gettempdir()
    short = parent if len(parent) <= MAX_FOLDER else "/tmp"  # noqa: S108 - of this user alone
    path = Path(tempfile.mkdtemp(prefix="mlrl-", dir=short))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


@contextlib.contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextlib.contextmanager
def _same_signal_handlers() -> Iterator[None]:
    """Keep Ray's handler of SIGTERM, which ends the process at once, to the block."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if before is not None:  # None: not installed by Python, which cannot restore it
            signal.signal(signal.SIGTERM, before)
