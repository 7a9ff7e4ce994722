"""Channels of a client to its servers."""

import socket

import pytest


@pytest.fixture
def unused_port():
    with socket.socket() as taken:  # bound, but does not listen
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


def test_server_of_this_machine_is_not_reached_through_a_proxy(
    start_server, unused_port, monkeypatch
):
    server = start_server(ids=["mlrl/story-v1"])
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{unused_port}")
    monkeypatch.delenv("no_proxy", raising=False)
    env = server.make("mlrl/story-v1", connection={"retries": 1})
    assert env.reset(seed=1)
