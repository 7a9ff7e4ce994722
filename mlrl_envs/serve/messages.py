"""Message classes and method names of the protocol, made from the compiled schema."""

import base64
import json
from collections.abc import Callable, Mapping
from typing import Any

from google.protobuf import descriptor_pool, message_factory

from mlrl_envs.serve.descriptor import SERIALIZED

__all__ = [
    "FILE",
    "MAX_BYTES",
    "MAX_ITEMS",
    "METHODS",
    "PROTOCOL",
    "SERVICE",
    "from_bytes",
    "from_json",
    "message",
    "to_bytes",
    "to_json",
]

PROTOCOL = 1
SERVICE = "mlrl.serve.v1.Environments"
MAX_ITEMS = 1_024
MAX_BYTES = 64 << 20

# Reflection looks services up in the default pool.
FILE = descriptor_pool.Default().AddSerializedFile(base64.b64decode(SERIALIZED))
_TYPES = {
    name: message_factory.GetMessageClass(descriptor)
    for name, descriptor in FILE.message_types_by_name.items()
}
METHODS: Mapping[str, tuple[str, str]] = {
    method.name: (method.input_type.name, method.output_type.name)
    for method in FILE.services_by_name["Environments"].methods
}
"""Names of the request and the reply of each method."""


def message(name: str) -> Callable[..., Any]:
    """Return the class of the messages with this name."""
    return _TYPES[name]  # type: ignore[no-any-return]  # protobuf is untyped


def to_bytes(text: str) -> bytes:
    """Encode any `str`, lone surrogates included."""
    return text.encode("utf-8", "surrogatepass")


def from_bytes(data: bytes) -> str:
    """Decode what `to_bytes` returned.

    Raises:
        ValueError: If `data` is not such an encoding.
    """
    return data.decode("utf-8", "surrogatepass")


def to_json(value: object) -> bytes:
    """Encode a JSON value as ASCII; keys keep their order.

    Raises:
        ValueError: If the value is not JSON.
        TypeError: Likewise.
    """
    return json.dumps(value, allow_nan=False, separators=(",", ":")).encode("ascii")


def from_json(data: bytes) -> Any:  # noqa: ANN401  any JSON value
    """Decode a JSON value; empty data are None.

    Raises:
        ValueError: If `data` is not JSON.
    """
    return json.loads(data.decode("utf-8")) if data else None  # faster than of bytes
