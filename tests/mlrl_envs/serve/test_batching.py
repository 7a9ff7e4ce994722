"""Steps that are played at once, in the thread that asks, and those that are queued."""

import asyncio
import threading
import time

import pytest

from mlrl_envs.serve.batching import MicroBatcher, Step, play
from mlrl_envs.serve.messages import message
from mlrl_envs.serve.places import QUICK_SECONDS, QUICK_STEPS, Pace, Places


@pytest.fixture
def step():
    place = Places(["mlrl/matrix-v0"]).find(message("Place")(env_id="mlrl/matrix-v0"))
    env, _, _ = place.begin(message("Opening")(seed="1"))
    return Step(place, env, dict.fromkeys(env.agents, "a"))


@pytest.fixture
def batcher():
    made = MicroBatcher()
    yield made
    made.close()


def quicken(place):
    for _ in range(QUICK_STEPS):
        place.pace.note(0.0)


def test_an_environment_is_quick_while_no_step_takes_long():
    pace = Pace()
    for _ in range(QUICK_STEPS):
        assert not pace.is_quick
        pace.note(QUICK_SECONDS / 2)
    assert pace.is_quick
    pace.note(2 * QUICK_SECONDS)
    assert not pace.is_quick


def test_played_steps_are_timed(step):
    play([step])
    seen = step.place.pace.quick_steps
    assert seen in (0, 1)  # a slow machine
    slow = Step(step.place, Sleeping(), step.actions)
    play([slow])
    assert step.place.pace.quick_steps == 0


def test_a_quick_step_alone_is_played_at_once_and_is_the_same(step, batcher):
    assert batcher.play_now(step) is None
    quicken(step.place)
    env, played = batcher.play_now(step)
    assert (batcher.steps, batcher.batches) == (1, 1)
    assert env is not step.env
    assert played == asyncio.run(queued(batcher, step))[1]


def test_steps_are_queued_while_others_wait_or_play(step, batcher):
    quicken(step.place)
    batcher.callers = 2
    assert batcher.play_now(step) is None
    batcher.callers, batcher.load = 1, 1
    assert batcher.play_now(step) is None
    batcher.load = 0
    assert batcher.play_now(step) is not None


def test_a_step_is_not_played_beside_work_of_the_thread(step, batcher):
    begun, go_on = threading.Event(), threading.Event()

    async def both():
        work = asyncio.ensure_future(batcher.call(lambda: (begun.set(), go_on.wait(60))))
        await asyncio.get_running_loop().run_in_executor(None, begun.wait, 60)
        quicken(step.place)
        beside = batcher.play_now(step)
        go_on.set()
        await work
        return beside

    assert asyncio.run(both()) is None


async def queued(batcher, step):
    return await batcher.submit(step)


class Sleeping:
    """An environment whose step takes longer than a quick one."""

    agents: tuple = ()

    def step(self, actions):
        time.sleep(2 * QUICK_SECONDS)
        return {}, {}, {}, {}, {}
