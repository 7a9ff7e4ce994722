"""Tests of own time and of the deadline of a request."""

import pytest

from mlrl_envs.sandbox.worker import deadlines
from mlrl_envs.sandbox.worker.deadlines import OverloadError, OwnTime, RequestDeadline
from mlrl_envs.sandbox.worker.process_times import ThreadTimes, Times


def times(now, ran=0.0, waited=0.0):
    thread = ThreadTimes(b"", waited, now, runnable=False)
    return Times(now, {"7": ran}, {"7": {"7": thread}})


def own_times(*looks, start=0.0, steps=None):
    """Return the own time of run and step after the last look, given as (now, ran, waited)."""
    seen = iter([times(*look) for look in looks])
    own = OwnTime(lambda _now: next(seen), start)
    steps = steps or [start] * len(looks)
    return [own.look(look[0], step) for look, step in zip(looks, steps, strict=True)][-1]


def test_a_sleeping_program_uses_wall_time():
    assert own_times((0.1, 0.0, 0.0), (3.0, 0.0, 0.0)) == (3.0, 3.0)


def test_a_running_program_uses_processor_time():
    assert own_times((0.1, 0.1, 0.0), (3.0, 3.0, 0.0)) == (3.0, 3.0)


def test_waiting_for_a_processor_does_not_count():
    run, step = own_times((0.1, 0.02, 0.08), (10.0, 2.0, 7.98))
    assert run == step == pytest.approx(10.0 - 7.9)


def test_own_time_is_at_least_the_processor_time():
    assert own_times((0.0, 0.0, 0.0), (3.0, 2.5, 40.0))[0] == pytest.approx(2.5)


def test_own_time_is_at_most_the_wall_time():
    assert own_times((0.0, 0.0, 0.0), (3.0, 6.0, 0.0))[0] == 3.0


def test_a_new_step_starts_from_zero_and_counts_waiting_from_the_look_before():
    run, step = own_times((0.1, 0.1, 0.0), (2.0, 2.0, 0.0), (2.1, 2.05, 0.5), steps=[0.0, 0.0, 1.9])
    assert run == pytest.approx(2.1 - 0.5, abs=0.5)
    assert step == pytest.approx(0.0, abs=1e-9)


def test_without_counts_of_the_kernel_own_time_is_wall_time():
    own = OwnTime(lambda now: Times(now, {}, {}), 1.0)
    assert own.look(4.0, 2.0) == (3.0, 2.0)


def test_the_message_of_an_overload_names_the_times_and_the_fix():
    seen = iter([times(0.1), times(40.0, 1.5, 38.0)])
    own = OwnTime(lambda _now: next(seen), 0.0)
    assert (own.wall(), own.waited()) == (0.0, 0.0)
    own.look(0.1, 0.0)
    own.look(40.0, 0.0)
    assert (own.wall(), own.waited()) == (40.0, 38.0)
    text = own.overload_text()
    assert "ran for 1.5 s and waited 38.0 s" in text
    assert "max_stretch" in text


def test_a_request_that_waits_too_long_is_an_overload(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(deadlines.time, "monotonic", lambda: clock[0])
    deadline = RequestDeadline(lambda now: times(now, 0.1, now), 0.5, 20.0)
    for clock[0] in (0.2, 5.0, 9.9):
        deadline.check()
    clock[0] = 10.1
    with pytest.raises(OverloadError, match="overloaded"):
        deadline.check()


def test_a_request_is_only_measured_when_a_look_is_due(monkeypatch):
    clock, looks = [0.0], []
    monkeypatch.setattr(deadlines.time, "monotonic", lambda: clock[0])
    deadline = RequestDeadline(lambda now: looks.append(now) or times(now), 0.25, 20.0)
    assert deadline.check() == pytest.approx(0.1)
    assert not looks
    clock[0] = 0.2
    assert deadline.check() == pytest.approx(0.05)
    assert looks == [0.2]
    clock[0] = 0.3
    with pytest.raises(TimeoutError):
        deadline.check()
