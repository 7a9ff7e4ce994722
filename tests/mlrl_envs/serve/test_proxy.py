"""A network that loses, delays, cuts and repeats: episodes are equal, programs run once."""

import asyncio
import random
import threading
import time

import pytest

import mlrl_envs
from mlrl_envs.sandbox import Outcome
from mlrl_envs.serve import Connection
from mlrl_envs.serve.link import Link

ENV_ID = "tests/counted-programs-v0"
CODE = "```python\ndef {name}(*args):\n    return {number}\n```"


class CountingSandbox:
    """Counts the programs that it pretends to run, each for a while."""

    seconds = 0.0

    def __init__(self):
        self.sources = []

    def run_many(self, programs):
        self.sources += [program.source for program in programs]
        time.sleep(self.seconds)
        return [Outcome("failed", len(p.source) % 3, 3) for p in programs]


SANDBOX = CountingSandbox()


def make_env(sandbox=SANDBOX, **options):
    return mlrl_envs.make("mlrl/humaneval-v1", split="sample", num_aux=0, max_turns=4,
                          sandbox=sandbox, **options)  # fmt: skip


class Proxy:
    """Forwards bytes between clients and a server; `spoil` may change what happens to a piece.

    `spoil` gets the size of a piece and whether the server sent it, and returns seconds to wait, or
    a negative number to forward only a part and cut the connection.
    """

    def __init__(self, port):
        self.target, self.spoil, self.cuts = port, lambda size, answers: 0.0, 0
        started = threading.Event()

        def run():
            self.loop = asyncio.new_event_loop()
            server = self.loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", 0))
            self.port = server.sockets[0].getsockname()[1]
            started.set()
            self.loop.run_forever()

        threading.Thread(target=run, daemon=True).start()
        assert started.wait(30)

    async def _serve(self, reader, writer):
        up_reader, up_writer = await asyncio.open_connection("127.0.0.1", self.target)

        async def pump(source, sink, answers):
            while data := await source.read(65_536):
                wait = self.spoil(len(data), answers)
                if wait < 0:
                    self.cuts += 1
                    sink.write(data[: len(data) // 2])
                    writer.transport.abort()
                    up_writer.transport.abort()
                    return
                if wait:
                    await asyncio.sleep(wait)
                sink.write(data)
                await sink.drain()

        try:
            await asyncio.gather(pump(reader, up_writer, False), pump(up_reader, writer, True))
        except (OSError, ConnectionError):
            pass
        finally:
            writer.close()
            up_writer.close()


@pytest.fixture(scope="module", autouse=True)
def counted_id():
    mlrl_envs.register(ENV_ID, make_env)


@pytest.fixture
def proxy(start_server):
    server = start_server(ids=[ENV_ID])
    SANDBOX.sources, SANDBOX.seconds = [], 0.0
    return Proxy(server.server.port)


def open_env(proxy, **connection):
    settings = Connection(**{"deadline_seconds": 60, "retry_seconds": 60, **connection})
    return mlrl_envs.make(f"remote://127.0.0.1:{proxy.port}/{ENV_ID}", connection=settings)


def play_both(env, num_steps=4):
    """Play an episode remotely and locally, compare all results and the programs that ran."""
    alone = CountingSandbox()
    local = make_env(sandbox=alone)
    options = {"task_index": 0}
    assert env.reset(seed=1, options=options) == local.reset(seed=1, options=options)
    name = local.family.tasks[0].entry_point
    for number in range(num_steps):
        actions = {"main": CODE.format(name=name, number=number)}
        assert env.step(actions) == local.step(actions)
        assert env.state() == local.state()
    assert SANDBOX.sources == alone.sources
    assert len(SANDBOX.sources) >= num_steps


def test_reply_that_comes_after_the_deadline_is_asked_for_again(proxy):
    late = iter([0.0, 0.0, 0.0, 6.0])
    proxy.spoil = lambda size, answers: next(late, 0.0) if answers and size > 200 else 0.0
    play_both(open_env(proxy, deadline_seconds=4))


def test_step_that_is_repeated_while_it_runs_is_run_once(proxy):
    env = open_env(proxy, deadline_seconds=1)
    SANDBOX.seconds = 1.5
    play_both(env, num_steps=2)


def test_first_call_is_repeated_when_its_connection_is_cut(proxy):
    cuts = iter([True, True])
    proxy.spoil = lambda size, answers: -1.0 if answers and next(cuts, False) else 0.0
    play_both(open_env(proxy), num_steps=1)
    assert proxy.cuts == 2


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_cuts_at_random_places_change_nothing(proxy, seed):
    numbers = random.Random(seed)
    proxy.spoil = lambda size, answers: -1.0 if numbers.random() < 0.06 else 0.0
    for _ in range(3):
        SANDBOX.sources = []
        play_both(open_env(proxy, retries=50))
    assert proxy.cuts


@pytest.mark.slow
def test_delays_of_every_message_change_nothing(proxy):
    numbers = random.Random(0)
    proxy.spoil = lambda size, answers: 0.2 * numbers.random()
    play_both(open_env(proxy))


@pytest.mark.parametrize("together", [False, True], ids=["one after another", "at once"])
def test_calls_that_arrive_twice_are_played_once(proxy, monkeypatch, together):
    def twice(link, address, method, request):
        first = link.send(address, method, request)
        if not together:
            first.result()
        second = link.send(address, method, request)
        first.result()
        return second.result()

    monkeypatch.setattr(Link, "call", twice)
    play_both(open_env(proxy))
