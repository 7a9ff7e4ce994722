import json
import threading
from types import SimpleNamespace
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from mlrl_learners.serving import PolicyServerConfig
from mlrl_learners.serving.server import PolicyServer


def ask(url, body, headers=None, timeout=60):
    """Return status, headers and the body of the answer to JSON, or to bytes as they are."""
    data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
    known = {"content-type": "application/json", **(headers or {})}
    request = Request(url, data, known)  # noqa: S310  our own server
    try:
        with urlopen(request, timeout=timeout) as answer:  # noqa: S310
            return SimpleNamespace(
                status=answer.status, headers=answer.headers, text=answer.read().decode()
            )
    except HTTPError as error:
        with error:
            return SimpleNamespace(
                status=error.code, headers=error.headers, text=error.read().decode()
            )


@pytest.fixture(scope="session", name="ask")
def _ask():
    return ask


@pytest.fixture(scope="module")
def open_server():
    """Return a function that starts a policy server in this process."""
    running = []

    def start(model="tiny-random", **options):
        server = PolicyServer(PolicyServerConfig(model, **options))
        thread = threading.Thread(target=server.run)
        thread.start()
        running.append((server, thread))
        return server

    yield start
    for server, thread in running:
        server.stop()
        thread.join(30)
        assert not thread.is_alive()


@pytest.fixture(scope="module")
def server(open_server):
    return open_server()


@pytest.fixture(scope="module")
def post(server):
    """Return a function that posts JSON to the server, and returns what it answers."""

    def send(path, **body):
        answer = ask(server.url + path, {"model": "tiny-random", **body})
        assert answer.status == 200, answer.text
        return json.loads(answer.text)

    return send
