"""Closed environments: sessions are released when no copy uses them, and not before."""

import copy
import pickle
import time

import pytest

import mlrl_envs
from mlrl_envs.serve.link import Link


@pytest.fixture
def closed_keys(monkeypatch):
    """Keys of the sessions that clients tell servers to close at once."""
    keys, send = [], Link.send

    def recorded(link, address, method, request):
        if method == "Close":
            keys.extend(request.keys)
        return send(link, address, method, request)

    monkeypatch.setattr(Link, "send", recorded)
    return keys


@pytest.mark.parametrize(
    "copied", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))], ids=["copy", "pickle"]
)
def test_closing_a_copy_leaves_the_session_of_the_original(server, closed_keys, copied):
    env = server.make("mlrl/nim-v0")
    env.reset(seed=1)
    key = env._episode.session.key
    for _ in range(2):
        copied(env).close()
    assert key not in closed_keys
    env.close()
    env.close()
    assert closed_keys.count(key) == 1


def test_closing_the_original_leaves_the_session_of_a_copy(server, closed_keys):
    env = server.make("mlrl/nim-v0")
    env.reset(seed=1)
    fork, key = copy.deepcopy(env), env._episode.session.key
    env.close()
    assert key not in closed_keys
    fork.close()
    assert closed_keys.count(key) == 1


def test_closed_environment_goes_on_as_a_local_one(server):
    env, local = server.make("mlrl/story-v1"), mlrl_envs.make("mlrl/story-v1")
    for each in (env, local):
        each.reset(seed=1)
        each.close()
    assert env.state() == local.state()
    assert env.agents == local.agents
    assert env.reset() == local.reset()  # draws the next task on


def test_every_closed_session_is_released(start_server):
    server = start_server(ids=["mlrl/kuhn-v0"])
    env = server.make("mlrl/kuhn-v0", split="sample")
    for seed in range(200):
        env.reset(seed=seed)
        env.close()
    end = time.monotonic() + 30
    while server.numbers["sessions"] and time.monotonic() < end:
        time.sleep(0.05)
    assert server.numbers["sessions"] == 0
