"""Load on a policy server: answers a second and latency, by number of clients.

`python -m benchmarks.serving.policies [--model tiny-random] [--requests 128]` starts a server,
sends it completions of 32 tokens from 1, 8 and 64 clients at once, each over a connection of its
own, and prints JSON. `one request` asks for 64 answers at once, so that its cost is that of the
engine. The clients run on the same cores.
"""

import argparse
import http.client
import json
import re
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

CLIENTS = (1, 8, 64)
TOKENS = 32
PROMPT = "The ferryman waited for the snow to end, and the fox waited with him. " * 3


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="tiny-random")
    parser.add_argument("--requests", type=int, default=128, help="of each number of clients")
    given = parser.parse_args(argv)
    command = [sys.executable, "-m", "mlrl_learners", "serve", "policy", given.model, "--port", "0"]
    started = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None  # noqa: S101  a pipe
        port = _port_of(process.stdout)
        found: dict[str, Any] = {"start_seconds": round(time.perf_counter() - started, 1)}
        _ask(port, given.model, [0], 1, [])  # the first call compiles and allocates
        for number in CLIENTS:
            found[f"{number} clients"] = _load(port, given.model, given.requests, number, 1)
        found["one request"] = _load(port, given.model, 1, 1, max(CLIENTS))
        found["memory_mib"] = round(_memory(process.pid))
        process.terminate()
    print(json.dumps(found, indent=2))
    return 0


def _port_of(lines: Any) -> int:  # noqa: ANN401  a text stream
    for line in lines:
        if place := re.search(r"http://[^:/]+:(\d+)", line):
            return int(place[1])
    raise RuntimeError("the server ended before it named its address")


def _load(port: int, model: str, requests: int, clients: int, answers: int) -> dict[str, float]:
    """Send requests from several clients, and return the figures."""
    seconds: list[float] = []
    shares = np.array_split(np.arange(requests), clients)
    threads = [
        threading.Thread(target=_ask, args=(port, model, share.tolist(), answers, seconds))
        for share in shares
    ]
    started = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    whole = time.perf_counter() - started
    if len(seconds) != requests:
        raise RuntimeError(f"{requests - len(seconds)} of {requests} requests failed")
    rate = requests * answers / whole
    median, slow = np.percentile(seconds, [50, 95])
    return {
        "answers_per_second": round(rate, 1),
        "tokens_per_second": round(rate * TOKENS),
        "latency_p50": round(float(median), 3),
        "latency_p95": round(float(slow), 3),
    }


def _ask(port: int, model: str, seeds: Sequence[int], answers: int, seconds: list[float]) -> None:
    """Send one request after another, and append their seconds."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    for seed in seeds:
        body = {"model": model, "prompt": PROMPT, "max_tokens": TOKENS, "n": answers, "seed": seed}
        started = time.perf_counter()
        headers = {"Content-Type": "application/json"}
        connection.request("POST", "/v1/completions", json.dumps(body), headers)
        reply = connection.getresponse()
        text = reply.read()
        if reply.status != http.client.OK:
            raise RuntimeError(f"status {reply.status}: {text[:200]!r}")
        seconds.append(time.perf_counter() - started)
    connection.close()


def _memory(pid: int) -> float:
    text = Path(f"/proc/{pid}/status").read_text()
    return int(text.partition("VmRSS:")[2].split()[0]) / 1_024


if __name__ == "__main__":
    sys.exit(main())
