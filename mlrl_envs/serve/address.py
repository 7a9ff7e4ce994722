"""Addresses of servers, ids of their environments, and settings of a client."""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mlrl_envs.config import build_config, check_int, check_number, checked_path
from mlrl_envs.errors import InvalidArgumentError

__all__ = ["SCHEME", "Connection", "as_connection", "host_of", "remote_id", "split_id"]

SCHEME = "remote://"
TOKEN_VARIABLE, CA_VARIABLE = "MLRL_SERVE_TOKEN_FILE", "MLRL_SERVE_CA_FILE"
MAX_RETRIES = 1_000
_ADDRESS = re.compile(r"(\[[0-9a-fA-F:.]+\]|[\w.-]+):(\d{1,5})")


@dataclass(frozen=True)
class Connection:
    """Settings of a client.

    Attributes:
        token_file: A file with the token; None reads the variable `MLRL_SERVE_TOKEN_FILE`.
        ca_file: PEM file with the certificates that the server's is checked against, which turns
            TLS on; None reads the variable `MLRL_SERVE_CA_FILE`.
        tls: Whether to use TLS with the certificates of the system.
        deadline_seconds: Time limit of a call.
        retry_seconds: How long calls are repeated after the first failure of the last server; all
            servers are asked in turn.
        retries: How many calls to a server fail before another one is asked.
    """

    token_file: str | None = None
    ca_file: str | None = None
    tls: bool = False
    deadline_seconds: float = 300.0
    retry_seconds: float = 60.0
    retries: int = 5

    def __post_init__(self) -> None:
        """Read the variables, and check ranges.

        Raises:
            InvalidArgumentError: If a value has the wrong type or is not above 0.
        """
        for name, variable in (("token_file", TOKEN_VARIABLE), ("ca_file", CA_VARIABLE)):
            given = checked_path(name, getattr(self, name)) or os.environ.get(variable) or None
            object.__setattr__(self, name, given)
        for name in ("deadline_seconds", "retry_seconds"):
            check_number(name, getattr(self, name))
            if getattr(self, name) <= 0:
                raise InvalidArgumentError(f"{name} must be above 0, got {getattr(self, name)}")
        check_int("retries", self.retries, 1, MAX_RETRIES)
        if not isinstance(self.tls, bool):
            raise InvalidArgumentError(f"tls must be true or false, got {self.tls!r}")


def as_connection(value: Connection | Mapping[str, Any] | None) -> Connection:
    """Return a connection, given as one, as a mapping of its fields, or as None.

    Raises:
        UnknownNameError: If there is no such field.
        InvalidArgumentError: If `value` or a field has the wrong type.
    """
    if isinstance(value, Connection):
        return value
    if not isinstance(value, Mapping | None):
        raise InvalidArgumentError(
            f"connection must be a mapping such as {{'retries': 5}}, got {value!r}"
        )
    return build_config(Connection, value or {})


def split_id(env_id: str) -> tuple[tuple[str, ...], str]:
    """Return the addresses and the id of `remote://host:port[,host:port…]/ID`.

    Raises:
        InvalidArgumentError: If it is not of this form.
    """
    places, _, name = env_id.removeprefix(SCHEME).partition("/")
    addresses = tuple(each.strip() for each in places.split(","))
    for address in addresses:
        match = _ADDRESS.fullmatch(address)
        if match is None or not 0 < int(match[2]) < 65_536:
            raise InvalidArgumentError(f"a server is host:port, got {address!r} in {env_id!r}")
    if not name:
        raise InvalidArgumentError(f"{env_id!r} lacks an id: remote://host:port/mlrl/story-v1")
    return tuple(dict.fromkeys(addresses)), name


def remote_id(env_id: str, server: str | Sequence[str] | None) -> str:
    """Return the id of an environment on a server, or on this machine.

    Args:
        env_id: The id.
        server: `host:port`, several of them, or None for this machine.

    Raises:
        InvalidArgumentError: If an address is not `host:port`.
    """
    if not server:
        return env_id
    addresses = [server] if isinstance(server, str) else list(server)
    found = f"{SCHEME}{','.join(addresses)}/{env_id}"
    split_id(found)
    return found


def host_of(address: str) -> str:
    """Return the host of `host:port`, without the brackets of an IPv6 address."""
    return address.rpartition(":")[0].strip("[]")
