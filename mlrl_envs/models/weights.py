"""Requests that make a server load other weights from a folder that it can read.

The trainer writes a folder and asks the server by the protocol of its program:

- `mlrl`: `POST /v1/reload` of `mlrl serve policy --reload-from FOLDER`, for models and adapters.
- `vllm`: `POST /collective_rpc` with the method `reload_weights`, then `POST /reset_prefix_cache`;
  both exist with `VLLM_SERVER_DEV_MODE=1`. For adapters `POST /v1/load_lora_adapter` with
  `load_inplace`, which exists with `VLLM_ALLOW_RUNTIME_LORA_UPDATING=1`.
- `sglang`: `POST /update_weights_from_disk`, for whole models.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, get_args

from mlrl_envs.errors import EndpointError
from mlrl_envs.models.client import Connection, failure, open_client, send

__all__ = ["WeightProtocol", "load_weights", "weight_requests"]

WeightProtocol = Literal["mlrl", "vllm", "sglang"]


def weight_requests(
    protocol: WeightProtocol, model: str, folder: Path, version: int, *, is_adapter: bool
) -> list[tuple[str, Mapping[str, Any]]]:
    """Return paths and bodies of the requests that load weights, in order.

    Args:
        protocol: The program of the server.
        model: Name of the model, or of the adapter, on the server.
        folder: Absolute path of a folder of `transformers`, or of `peft` for an adapter.
        version: Number of the weights, which answers of SGLang name.
        is_adapter: Whether the folder holds an adapter.

    Raises:
        EndpointError: If the program has no request for adapters.
    """
    path = str(folder)
    if protocol == "mlrl":
        return [("/v1/reload", {"path": path})]
    if protocol == "sglang":
        if is_adapter:
            raise EndpointError("sglang cannot replace an adapter by its folder; serve with vllm")
        fields = {"model_path": path, "weight_version": str(version), "flush_cache": True}
        return [("/update_weights_from_disk", fields)]
    if is_adapter:
        fields = {"lora_name": model, "lora_path": path, "load_inplace": True}
        return [("/v1/load_lora_adapter", fields)]
    reload = {"method": "reload_weights", "kwargs": {"weights_path": path}}
    return [("/collective_rpc", reload), ("/reset_prefix_cache", {})]


def load_weights(
    server: Connection,
    protocol: WeightProtocol,
    folder: Path,
    version: int,
    *,
    is_adapter: bool = False,
) -> None:
    """Make a server load weights; returns when it has loaded them.

    Args:
        server: Address of the server, and name of the model or adapter on it.
        protocol: The program of the server.
        folder: Absolute path of a folder of `transformers`, or of `peft` for an adapter.
        version: Number of the weights.
        is_adapter: Whether the folder holds an adapter.

    Raises:
        EndpointError: If the server cannot be reached, or refuses.
    """
    import httpx

    if protocol not in get_args(WeightProtocol):
        raise EndpointError(f"no server program {protocol!r}; known: mlrl, vllm, sglang")
    root = server.base_url.rstrip("/").removesuffix("/v1")
    asked = weight_requests(protocol, server.model, folder, version, is_adapter=is_adapter)
    with open_client(server) as client:
        for path, body in asked:
            reply = send(
                server,
                lambda path=path, body=body: client.post(  # type: ignore[misc]  # bound values
                    f"{root}{path}", cast_to=httpx.Response, body=body
                ),
            )
            _check(server, path, reply)


def _check(server: Connection, path: str, reply: Any) -> None:  # noqa: ANN401 - of httpx
    """Raise an error if a reply of status 200 says that loading failed, as SGLang's may."""
    try:
        fields = reply.json()
    except ValueError:  # vLLM answers without a body, or in plain text
        return
    if isinstance(fields, Mapping) and fields.get("success") is False:
        cause = f"{path} failed: {fields.get('message', 'no reason given')}"
        raise failure(server, cause, "check that the server reads the same folder as the trainer")
