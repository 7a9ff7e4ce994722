"""`mlrl serve`: serve environments or policies to other processes and machines."""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

from mlrl_envs.serve import ServerConfig
from mlrl_learners.cli.parser import at_least
from mlrl_learners.serving import PolicyServerConfig

if TYPE_CHECKING:
    from mlrl_envs.serve import EnvServer
    from mlrl_learners.serving.server import PolicyServer

__all__ = ["SECTIONS", "add_arguments", "run"]

SECTIONS: tuple[str, ...] = ()
DEFAULTS = ServerConfig(ids=("any",))
POLICY_DEFAULTS = PolicyServerConfig("any")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    _add_env(actions.add_parser("env", help="serve environments over gRPC"))
    _add_policy(actions.add_parser("policy", help="serve a model over OpenAI's protocol"))


def run(arguments: argparse.Namespace, _overrides: Sequence[str]) -> int:
    """Run the chosen action."""
    status: int = arguments.action(arguments)
    return status


def _add_env(env: argparse.ArgumentParser) -> None:
    env.add_argument("ids", nargs="+", help="environments of mlrl list")
    _add_access(env, port=50051, public="allow other machines; needs a token and TLS")
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


def _add_policy(policy: argparse.ArgumentParser) -> None:
    policy.add_argument("model", help="a run, a checkpoint, or a model or adapter")
    policy.add_argument("--host", default=POLICY_DEFAULTS.host, help="address to listen on")
    _add_access(policy, port=8000, public="allow other machines; needs a token")
    for name, text in (
        ("max-in-flight", "answers that may wait"),
        ("max-rows", "answers that are decoded at once"),
        ("batch-milliseconds", "how long a batch waits for requests"),
        ("drain-seconds", "time for running requests after SIGTERM"),
    ):
        default = getattr(POLICY_DEFAULTS, name.replace("-", "_"))
        policy.add_argument(f"--{name}", type=at_least(0), default=default, help=text)
    policy.add_argument("--watch", action="store_true", help="load new checkpoints of the run")
    policy.add_argument(
        "--reload-from", type=Path, help="clients may load weights below this folder"
    )
    for name, text in (
        ("device", "auto, cpu or cuda"),
        ("dtype", "float32, bfloat16 or float16"),
        ("precision", "float32, or bf16 for autocast"),
    ):
        policy.add_argument(f"--{name}", default=getattr(POLICY_DEFAULTS, name), help=text)
    policy.set_defaults(action=_serve_policy)


def _add_access(parser: argparse.ArgumentParser, *, port: int, public: str) -> None:
    """Add the options of both servers."""
    parser.add_argument("--port", type=at_least(0, 65535), default=port, help="0 for any free port")
    parser.add_argument("--public", action="store_true", help=public)
    parser.add_argument("--token-file", type=Path, help="file with one token a line")
    parser.add_argument("--tls-cert", type=Path, help="PEM file of the certificate chain")
    parser.add_argument("--tls-key", type=Path, help="PEM file of the private key")


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


def _serve_policy(arguments: argparse.Namespace) -> int:
    """Serve until interrupted."""
    from mlrl_learners.serving import serve_policy

    names = [field.name for field in fields(PolicyServerConfig)]
    given = {name: value for name, value in vars(arguments).items() if name in names}
    serve_policy(PolicyServerConfig(**given), _announce_policy)
    return 0


def _announce_policy(server: "PolicyServer") -> None:
    print(server.url, flush=True)
    names = ", ".join(server.batcher.models.names)
    print(f"mlrl: serving {names}; Ctrl-C ends it", file=sys.stderr, flush=True)
