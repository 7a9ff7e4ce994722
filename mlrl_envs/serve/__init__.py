"""Environment servers: environments of one machine, played from others over gRPC.

Needs the extra `mlrl[serve]`. `mlrl_envs.make("remote://host:port/mlrl/story-v1")` opens an
environment of a server; `mlrl serve env` or `serve_envs` starts one. The page "Servers" of the
documentation has the protocol and the threat model.
"""

import importlib
from typing import TYPE_CHECKING, Any

from mlrl_envs.errors import MissingPackageError
from mlrl_envs.serve.access import ServerConfig, Tokens, read_secret
from mlrl_envs.serve.address import Connection, remote_id

if TYPE_CHECKING:
    from mlrl_envs.serve.client import RemoteEnv
    from mlrl_envs.serve.server import EnvServer, serve_envs

__all__ = [
    "Connection",
    "EnvServer",
    "RemoteEnv",
    "ServerConfig",
    "Tokens",
    "read_secret",
    "remote_id",
    "serve_envs",
]

_LAZY = {"RemoteEnv": "client", "EnvServer": "server", "serve_envs": "server"}


def __getattr__(name: str) -> Any:  # noqa: ANN401  a class or a function
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(importlib.import_module(f"{__name__}.{_LAZY[name]}"), name)
    except ModuleNotFoundError as error:
        if str(error.name).partition(".")[0] in (
            "grpc",
            "grpc_health",
            "grpc_reflection",
            "google",
        ):
            raise MissingPackageError(
                "environment servers need gRPC: pip install 'mlrl[serve]'"
            ) from error
        raise
