"""Children of the sessions' zygote: interpreters, and processes for one file call each."""

import json
import os
from collections.abc import Callable

from mlrl_envs.sandbox.sessions import cells, files
from mlrl_envs.sandbox.wire import frames
from mlrl_envs.sandbox.worker.children import LINK, Settings, limit_resources, take_descriptors

__all__ = ["prepare_session"]


def prepare_session(
    settings: Settings, seal: Callable[[], None], directory: str
) -> Callable[[bytes], Callable[[list[int]], None]]:
    """Return the `prepare` function of a sessions' zygote.

    With an empty payload the child becomes an interpreter. Otherwise the payload is a file call,
    a JSON list of kind, path and content, which the child performs.

    Args:
        settings: Limits of the worker.
        seal: Installs the last filter, after which the process cannot fork.
        directory: Working directory.
    """
    cpu = -int(-settings["cpu_seconds"] // 1)  # rounded up
    memory = settings["base_bytes"] + int(settings["memory_mib"] * (1 << 20))
    cap = int(settings["output_kib"] * 1024)

    def confine(descriptors: list[int]) -> None:
        link, sink = descriptors
        take_descriptors(link, sink, sink)
        os.chdir(directory)
        limit_resources(memory, cpu)
        seal()

    def run(payload: bytes, descriptors: list[int]) -> None:
        confine(descriptors)
        if not payload:
            cells.serve_cells(LINK, cap)
            return
        kind, path, content = json.loads(payload)
        succeeded, text = files.operate(kind, path, content, cap)
        encoded = text.encode("utf-8", "backslashreplace")[:cap]
        frames.send(LINK, (cells.SUCCEEDED if succeeded else cells.FAILED) + encoded)

    return lambda payload: lambda descriptors: run(payload, descriptors)
