"""`mlrl serve`: serve environments to other processes and machines."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mlrl_envs.serve import ServerConfig
from mlrl_learners.cli.parser import at_least

if TYPE_CHECKING:
    from mlrl_envs.serve import EnvServer

__all__ = ["SECTIONS", "add_arguments", "run"]

SECTIONS: tuple[str, ...] = ()
DEFAULTS = ServerConfig(ids=("any",))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    env = actions.add_parser("env", help="serve environments over gRPC")
    env.add_argument("ids", nargs="+", help="environments of mlrl list")
    env.add_argument("--port", type=at_least(0, 65535), default=50051, help="0 for any free port")
    env.add_argument(
        "--public", action="store_true", help="allow other machines; needs a token and TLS"
    )
    env.add_argument("--token-file", type=Path, help="file with one token a line")
    env.add_argument("--tls-cert", type=Path, help="PEM file of the certificate chain")
    env.add_argument("--tls-key", type=Path, help="PEM file of the private key")
    for name, text in (
        ("max-sessions", "sessions to keep"),
        ("session-seconds", "idle sessions expire after this"),
        ("max-in-flight", "steps that may wait"),
    ):
        default = getattr(DEFAULTS, name.replace("-", "_"))
        env.add_argument(f"--{name}", type=at_least(1), default=default, help=text)
    env.add_argument("--references", action="store_true", help="serve reference answers")
    env.add_argument(
        "--trust-options", action="store_true", help="clients may name files, code and addresses"
    )
    env.add_argument("--no-sandbox", action="store_true", help="do not test the sandbox")
    env.add_argument("--metrics-port", type=at_least(0, 65535), help="Prometheus metrics")
    env.set_defaults(action=_serve_env)


def run(arguments: argparse.Namespace, _overrides: Sequence[str]) -> int:
    """Run the chosen action."""
    status: int = arguments.action(arguments)
    return status


def _serve_env(arguments: argparse.Namespace) -> int:
    """Serve until interrupted."""
    from mlrl_envs.serve import serve_envs

    names = (
        "port", "public", "token_file", "tls_cert", "tls_key", "metrics_port",
        "max_sessions", "session_seconds", "max_in_flight", "references", "trust_options",
    )  # fmt: skip
    config = ServerConfig(
        ids=arguments.ids,
        sandbox=not arguments.no_sandbox,
        **{name: getattr(arguments, name) for name in names},
    )
    serve_envs(config, _announce)
    return 0


def _announce(server: "EnvServer") -> None:
    host = "HOST" if server.config.public else "127.0.0.1"
    for env_id in server.config.ids:
        print(f"remote://{host}:{server.port}/{env_id}", flush=True)
    if server.config.metrics_port is not None:
        print(f"mlrl: metrics at http://127.0.0.1:{server.metrics_port}/metrics", file=sys.stderr)
    print("mlrl: Ctrl-C ends it", file=sys.stderr, flush=True)
