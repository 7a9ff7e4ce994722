"""Calls that ask servers for the description of an environment."""

import time
from typing import Any

import grpc

from mlrl_envs.errors import RemoteEnvError
from mlrl_envs.serve.link import Link, refusal_of
from mlrl_envs.serve.messages import PROTOCOL, from_json, message
from mlrl_envs.serve.pauses import pause_after

__all__ = ["describe", "describe_any"]


def describe(link: Link, place: Any, address: str) -> dict[str, Any]:  # noqa: ANN401  a message
    """Return the description of an environment by a server.

    Raises:
        MlrlError: If the server refuses, or its protocol differs.
        grpc.RpcError: If it cannot be reached.
    """
    request = message("DescribeRequest")(place=place, protocol=PROTOCOL)
    try:
        reply = link.call(address, "Describe", request)
    except grpc.RpcError as error:
        refusal = refusal_of(error, address)
        if refusal is None:
            raise
        raise refusal from None
    return {**from_json(reply.description), "boot_id": reply.boot_id}


def describe_any(link: Link, place: Any) -> dict[str, Any]:  # noqa: ANN401  a message
    """Return the description by the first server that answers.

    A call whose connection is lost is repeated, at most `Connection.retries` times; if a server has
    answered before, it may have been started again, and all are asked for `retry_seconds`.

    Raises:
        RemoteEnvError: If none does.
    """
    failures: dict[str, str] = {}
    end = time.monotonic() + link.connection.retry_seconds
    while True:
        for address in link.addresses:
            found = _describe_again(link, place, address, failures)
            if found is not None:
                return found
        if time.monotonic() > end:
            link.give_up()
        if not link.has_answered or link.is_given_up():
            break
    text = " ".join("; ".join(failures.values()).split())[:300]
    raise RemoteEnvError(f"no environment server answers ({text}); start one: mlrl serve env")


def _describe_again(
    link: Link,
    place: Any,  # noqa: ANN401  a message
    address: str,
    failures: dict[str, str],
) -> dict[str, Any] | None:
    """Return the description by a server; None if it does not answer, which is noted."""
    for attempt in range(1 + link.connection.retries):
        try:
            return describe(link, place, address)
        except grpc.RpcError as error:
            failures[address] = f"{address}: {error.code().name}: {error.details()}"
            if attempt and error.code() is not grpc.StatusCode.UNAVAILABLE:
                break
        time.sleep(pause_after(attempt))
    link.mark_down(address)
    return None
