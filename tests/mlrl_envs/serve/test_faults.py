"""Lost, repeated and delayed messages, lost sessions and servers: episodes do not change."""

import asyncio
import copy
import threading
from dataclasses import replace

import pytest

import mlrl_envs
from mlrl_envs.errors import RemoteEnvError
from mlrl_envs.serve import Connection

FAST = Connection(deadline_seconds=60, retry_seconds=5, retries=2)
TEXTS = {"setup": "A fox waits.", "story": "The fox waited for the snow."}


def played_steps(server):
    return server.numbers["batched_steps_total"]


class Proxy:
    """Forwards bytes to a server, until it is told to lose what the server answers."""

    def __init__(self, port):
        self.target, self.drop = port, False
        started = threading.Event()
        self.loop = asyncio.new_event_loop()

        def run():
            asyncio.set_event_loop(self.loop)
            server = self.loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", 0))
            self.port = server.sockets[0].getsockname()[1]
            started.set()
            self.loop.run_forever()

        threading.Thread(target=run, daemon=True).start()
        started.wait()

    async def _serve(self, reader, writer):
        up_reader, up_writer = await asyncio.open_connection("127.0.0.1", self.target)

        async def pump(source, sink, answers):
            while data := await source.read(65_536):
                if answers and self.drop and len(data) > 200:  # a reply, not a ping
                    self.drop = False
                    writer.transport.abort()
                    return
                sink.write(data)
                await sink.drain()

        try:
            await asyncio.gather(pump(reader, up_writer, False), pump(up_reader, writer, True))
        except OSError:
            pass
        finally:
            up_writer.close()


def test_step_whose_reply_is_lost_is_played_once(server):
    proxy = Proxy(server.server.port)
    env = mlrl_envs.make(f"remote://127.0.0.1:{proxy.port}/mlrl/story-v1", connection=FAST)
    local = mlrl_envs.make("mlrl/story-v1")
    env.reset(seed=1)
    local.reset(seed=1)
    before = played_steps(server)
    proxy.drop = True
    assert env.step(TEXTS) == local.step(TEXTS)
    assert not proxy.drop
    assert played_steps(server) == before + 1


def test_two_copies_with_the_same_action_are_played_once(server):
    env = server.make("mlrl/story-v1")
    env.reset(seed=1)
    before = played_steps(server)
    first, second = mlrl_envs.step_many([env, copy.deepcopy(env)], [TEXTS, TEXTS])
    assert first == second
    assert played_steps(server) == before + 1


def test_lost_sessions_are_replayed(server):
    remote, local = server.make("mlrl/nim-v0"), mlrl_envs.make("mlrl/nim-v0")
    remote.reset(seed=5)
    local.reset(seed=5)
    while local.agents:
        actions = local.reference_actions()
        assert remote.step(actions) == local.step(actions)
        server.forget()
        assert remote.state() == local.state()


def test_restarted_server_goes_on_with_the_episode(start_server):
    first = start_server(ids=["mlrl/nim-v0"])
    port = first.server.port
    env, local = first.make("mlrl/nim-v0"), mlrl_envs.make("mlrl/nim-v0")
    env.reset(seed=5)
    local.reset(seed=5)
    first.stop()
    start_server(ids=["mlrl/nim-v0"], port=port)
    actions = local.reference_actions()
    assert env.step(actions) == local.step(actions)


def test_other_server_takes_over_where_one_dies(start_server):
    one, other = (start_server(ids=["mlrl/story-v1"]) for _ in range(2))
    name = f"remote://{one.address},{other.address}/mlrl/story-v1"
    envs = mlrl_envs.make_vec(name, 6, connection=FAST, max_turns=2).envs
    twins = mlrl_envs.make_vec("mlrl/story-v1", 6, max_turns=2).envs
    seeds, options = list(range(6)), [None] * 6
    begun = mlrl_envs.reset_many(envs, seeds, options)
    assert begun == mlrl_envs.reset_many(twins, seeds, options)
    assert one.numbers["sessions"] == other.numbers["sessions"] == 3
    one.stop()
    actions = [{agent: f"{text} {seed}" for agent, text in TEXTS.items()} for seed in seeds]
    assert mlrl_envs.step_many(envs, actions) == mlrl_envs.step_many(twins, actions)


def test_no_server_is_an_error_of_the_infrastructure(start_server):
    server = start_server(ids=["mlrl/story-v1"])
    connection = replace(FAST, retry_seconds=0.5)
    env = mlrl_envs.make(f"remote://{server.address}/mlrl/story-v1", connection=connection)
    env.reset(seed=1)
    server.stop()
    with pytest.raises(RemoteEnvError, match="does not answer"):
        env.step(TEXTS)
    with pytest.raises(RemoteEnvError, match="start one: mlrl serve env"):
        server.make("mlrl/story-v1", connection=FAST)


def test_server_with_another_scorer_does_not_go_on_with_an_episode(server, monkeypatch):
    env = server.make("mlrl/story-v1", max_turns=2)
    env.reset(seed=1)
    for place in server.server.service.places._places.values():
        monkeypatch.setitem(place.description, "fingerprint", {"data": "other", "scorer": "x"})
    server.forget()
    with pytest.raises(RemoteEnvError, match="other tasks or another scorer"):
        env.step(TEXTS)


def test_other_servers_must_have_the_same_scorer(start_server, monkeypatch):
    one, other = (start_server(ids=["mlrl/story-v1"]) for _ in range(2))
    env = mlrl_envs.make(f"remote://{one.address},{other.address}/mlrl/story-v1")
    other.make("mlrl/story-v1")
    (place,) = other.server.service.places._places.values()
    monkeypatch.setitem(place.description, "fingerprint", {"data": "other", "scorer": "x"})
    envs = [copy.deepcopy(env) for _ in range(2)]
    found = mlrl_envs.reset_many(envs, [1, 2], [None] * 2, errors="return")
    assert sorted(type(each) is RemoteEnvError for each in found) == [False, True]


def _restart_with_another_scorer(server, monkeypatch):
    """Change what a server says as a restart does that no call of its clients meets."""
    for place in server.server.service.places._places.values():
        monkeypatch.setitem(place.description, "fingerprint", {"data": "other", "scorer": "x"})
    server.server.service.boot_id = "another"
    server.forget()


def test_other_scorer_after_a_restart_is_noticed_at_the_next_reset(start_server, monkeypatch):
    server = start_server(ids=["mlrl/story-v1"])
    env = server.make("mlrl/story-v1")
    env.reset(seed=1)
    _restart_with_another_scorer(server, monkeypatch)
    with pytest.raises(RemoteEnvError, match="other tasks or another scorer"):
        env.reset(seed=2)


def test_environment_made_after_a_restart_vouches_for_itself_only(start_server, monkeypatch):
    server = start_server(ids=["mlrl/story-v1"])
    old = server.make("mlrl/story-v1")
    old.reset(seed=1)
    _restart_with_another_scorer(server, monkeypatch)
    server.make("mlrl/story-v1").reset(seed=1)
    with pytest.raises(RemoteEnvError, match="other tasks or another scorer"):
        old.reset(seed=2)


def test_server_is_asked_for_its_scorer_once(start_server, monkeypatch):
    server = start_server(ids=["mlrl/story-v1"])
    env = server.make("mlrl/story-v1")
    env.reset(seed=1)
    monkeypatch.setattr("mlrl_envs.serve.exchange.describe", None)
    env.reset(seed=2)


def test_server_that_answers_again_is_asked_again_after_a_lost_reply(server):
    proxy = Proxy(server.server.port)
    env = mlrl_envs.make(f"remote://127.0.0.1:{proxy.port}/mlrl/story-v1", connection=FAST)
    local = mlrl_envs.make("mlrl/story-v1")
    env._link.mark_down(f"127.0.0.1:{proxy.port}")
    assert env.reset(seed=1) == local.reset(seed=1)
    proxy.drop = True
    assert env.step(TEXTS) == local.step(TEXTS)
    assert not proxy.drop


def test_server_that_keeps_few_sessions_costs_no_episode(start_server):
    server = start_server(ids=["mlrl/story-v1"], max_sessions=3)
    envs = mlrl_envs.make_vec(f"remote://{server.address}/mlrl/story-v1", 30, max_turns=2).envs
    twins = mlrl_envs.make_vec("mlrl/story-v1", 30, max_turns=2).envs
    for each in (envs, twins):
        mlrl_envs.reset_many(each, range(30), [None] * 30)
    for _ in range(2):
        assert mlrl_envs.step_many(envs, [TEXTS] * 30) == mlrl_envs.step_many(twins, [TEXTS] * 30)
