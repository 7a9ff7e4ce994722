"""Start of an environment server."""

import asyncio
import socket

import pytest


@pytest.fixture
def taken_port():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        yield taken.getsockname()[1]


def test_taken_port_of_metrics_is_named_before_the_server_is_made(taken_port, capsys):
    from mlrl_envs.serve import EnvServer, ServerConfig

    server = EnvServer(ServerConfig(["mlrl/story-v1"], metrics_port=taken_port, sandbox=False))
    with pytest.raises(OSError, match=f"{taken_port}; is the metrics port taken"):
        asyncio.run(server.start())
    del server
    assert "Traceback" not in capsys.readouterr().err
