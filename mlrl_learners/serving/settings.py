"""Settings of a policy server, and checks for servers that other machines can reach."""

import os
from dataclasses import dataclass

from mlrl_envs.config import check_int, check_number
from mlrl_envs.hosts import is_loopback
from mlrl_learners.errors import ConfigError

__all__ = ["PolicyServerConfig"]


@dataclass(frozen=True)
class PolicyServerConfig:
    """Settings of a policy server.

    Attributes:
        model: A run, a checkpoint, a model or an adapter, given as a folder or a name.
        host: Address to listen on.
        port: Port to listen on; 0 for any free one.
        public: Allow a `host` that other machines can reach; requires `token_file`.
        token_file: File with one access token per line; clients must send one of them.
        tls_cert: PEM file with the certificate chain of the server.
        tls_key: PEM file with its private key.
        max_in_flight: Maximum number of answers queued or being sampled; requests beyond it are
            refused.
        max_rows: Maximum number of sequences decoded at once.
        batch_milliseconds: Maximum time that the first request of a batch waits for more requests.
        reload_from: Folder from which `POST /v1/reload` may load weights; None refuses reloads.
        watch: Load new checkpoints of the run as they appear.
        watch_seconds: Interval between checks for a new checkpoint.
        drain_seconds: Time for requests in flight to finish after SIGTERM.
        device: `"auto"` (a GPU if there is one), or an argument of `torch.device`.
        dtype: Number type of the weights: `"float32"`, `"bfloat16"` or `"float16"`.
        precision: Number type of the computation: `"float32"`, or `"bf16"` for autocast.
    """

    model: str
    host: str = "127.0.0.1"
    port: int = 0
    public: bool = False
    token_file: str | os.PathLike[str] | None = None
    tls_cert: str | os.PathLike[str] | None = None
    tls_key: str | os.PathLike[str] | None = None
    max_in_flight: int = 4_096
    max_rows: int = 64
    batch_milliseconds: int = 2
    reload_from: str | os.PathLike[str] | None = None
    watch: bool = False
    watch_seconds: float = 2.0
    drain_seconds: int = 30
    device: str = "auto"
    dtype: str = "float32"
    precision: str = "float32"

    def __post_init__(self) -> None:
        """Check ranges and combinations.

        Raises:
            InvalidArgumentError: If a value is outside its range, TLS lacks a file, or the server
                could be reached by other machines without `public` or without a token.
        """
        for name, low, high in (
            ("port", 0, 65_535),
            ("max_in_flight", 1, 1_000_000),
            ("max_rows", 1, 65_536),
            ("batch_milliseconds", 0, 10_000),
            ("drain_seconds", 0, 86_400),
        ):
            check_int(name, getattr(self, name), low, high)
        check_number("watch_seconds", self.watch_seconds)
        if not self.watch_seconds > 0:
            raise ConfigError(f"watch_seconds must be above 0, got {self.watch_seconds}")
        if (self.tls_cert is None) != (self.tls_key is None):
            raise ConfigError("TLS needs both --tls-cert and --tls-key")
        if not (self.public or is_loopback(self.host)):
            raise ConfigError(
                f"other machines can reach {self.host!r}; add --public and --token-file"
            )
        if self.public and self.token_file is None:
            raise ConfigError(
                "a public server needs --token-file; without --public it listens on this machine"
            )
