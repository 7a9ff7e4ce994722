import socket
import urllib.request
from contextlib import ExitStack
from urllib.parse import urlsplit

import pytest

pytest.importorskip("uvicorn")

from mlrl_learners.monitor import connections


@pytest.fixture
def connect(served):
    """Opens connections that send a part of a request."""
    with ExitStack() as stack:

        def opened(sent=b"GET / HT"):
            address = urlsplit(served)
            connection = socket.create_connection((address.hostname, address.port), timeout=60)
            stack.enter_context(connection)
            connection.sendall(sent)
            return connection

        yield opened


def is_closed(connection):
    """Wait for what the server sends, and return whether it closed the connection instead."""
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def test_half_open_connections_do_not_keep_others_out(monkeypatch, served, connect):
    monkeypatch.setattr(connections, "REQUEST_SECONDS", 600.0)  # not time closes them
    half_open = [connect() for _ in range(connections.MOST_WAITING + 20)]
    with urllib.request.urlopen(served) as answer:  # noqa: S310 - a server of ours
        assert answer.status == 200
    assert all(is_closed(each) for each in half_open[:20])


@pytest.mark.parametrize("sent", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: localhost\r\n"])
def test_a_connection_that_sends_no_whole_request_is_closed(monkeypatch, connect, sent):
    monkeypatch.setattr(connections, "REQUEST_SECONDS", 0.05)
    assert is_closed(connect(sent))
