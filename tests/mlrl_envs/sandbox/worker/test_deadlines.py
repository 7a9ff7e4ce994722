"""Tests of own time and of the deadline of a request."""

import pytest

from mlrl_envs.sandbox.worker import deadlines
from mlrl_envs.sandbox.worker.deadlines import SLACK, OverloadError, OwnTime, RequestDeadline
from mlrl_envs.sandbox.worker.process_times import ThreadTimes, Times


def times(now, ran=0.0, waited=0.0):
    thread = ThreadTimes(b"", waited, now, runnable=False)
    return Times(now, {"7": ran}, {"7": {"7": thread}})


class Machine:
    """Fake clock, one process, and the part of a processor that trials get."""

    def __init__(self):
        self.now = self.ran = self.waited = 0.0
        self.share = 1.0
        self.ran_in_trials = 0.0
        self.looks = []

    def read(self, now):
        self.looks.append(now)
        return times(now, self.ran, self.waited)

    def spend(self, seconds):
        """Compute as a trial does; meanwhile, the process waits."""
        self.now += seconds / self.share
        self.waited += seconds / self.share
        self.ran += self.ran_in_trials
        return seconds

    def go(self, seconds, running=0.0, waiting=0.0):
        """Advance the clock; the process runs and waits in the given parts of the time."""
        self.now += seconds
        self.ran += seconds * running
        self.waited += seconds * waiting

    def look_for(self, own, seconds, running=0.0, waiting=0.0, step=0.0):
        """Look ten times a second and return the last own times of run and step."""
        for _ in range(round(10 * seconds)):
            self.go(0.1, running, waiting)
            last = own.look(self.now, step)
        return last


@pytest.fixture
def machine(monkeypatch):
    machine = Machine()
    monkeypatch.setattr(deadlines.time, "monotonic", lambda: machine.now)
    monkeypatch.setattr(deadlines, "spend", machine.spend)
    return machine


def test_a_sleeping_program_uses_wall_time(machine):
    own = OwnTime(machine.read, 0.0)
    assert machine.look_for(own, 3) == pytest.approx((3.0, 3.0))
    assert own.waited() == 0


def test_a_running_program_uses_processor_time(machine):
    assert machine.look_for(OwnTime(machine.read, 0.0), 3, 1.0) == pytest.approx((3.0, 3.0))


def test_waiting_for_a_processor_does_not_count(machine):
    machine.share = 0.2
    own = OwnTime(machine.read, 0.0)
    run, step = machine.look_for(own, 10, 0.2, 0.8)
    assert run == step == pytest.approx(2.0, abs=0.1)
    assert own.waited() == pytest.approx(machine.now - 2.0, abs=0.1)


def test_own_time_is_at_least_the_processor_time(machine):
    run, _ = machine.look_for(OwnTime(machine.read, 0.0), 3, 1.0, 10.0)
    assert run == pytest.approx(3.0, abs=0.2)


def test_own_time_is_at_most_the_wall_time(machine):
    assert machine.look_for(OwnTime(machine.read, 0.0), 3, 2.0)[0] == pytest.approx(3.0)


@pytest.mark.parametrize("share", [1.0, 0.5, 0.1])
def test_a_program_that_gives_its_processor_away_gains_little(machine, share):
    machine.share = share
    own = OwnTime(machine.read, 0.0)
    run, step = machine.look_for(own, 30, 0.0001, 0.9999)
    assert run == step == pytest.approx(machine.now * share / SLACK, rel=0.1)


def test_trials_count_the_processor_time_of_the_program(machine):
    machine.share, machine.ran_in_trials = 0.5, 0.02
    run, _ = machine.look_for(OwnTime(machine.read, 0.0), 30, 0.0, 1.0)
    assert run == pytest.approx(machine.now / SLACK, rel=0.1)


def test_a_new_step_starts_from_zero_and_counts_waiting_from_the_look_before(machine):
    own = OwnTime(machine.read, 0.0)
    machine.look_for(own, 2, 1.0)
    machine.go(0.1, 0.5, 0.5)
    run, step = own.look(machine.now, 2.0)
    assert run == pytest.approx(2.05)
    assert step == pytest.approx(0.05)


def test_a_process_that_is_missing_in_a_look_is_not_counted_again():
    seen = iter([times(0.1, 5.0, 7.0), Times(0.2, {}, {}), times(0.3, 5.1, 7.1)])
    own = OwnTime(lambda _now: next(seen), 0.0)
    for now in (0.1, 0.2):
        own.look(now, 0.0)
    assert own.look(0.3, 0.0) == pytest.approx((0.2, 0.2))


def test_without_counts_of_the_kernel_own_time_is_wall_time():
    own = OwnTime(lambda now: Times(now, {}, {}), 1.0)
    assert own.look(4.0, 2.0) == (3.0, 2.0)


def test_only_a_machine_that_gives_no_processor_to_a_trial_is_overloaded(machine):
    own = OwnTime(machine.read, 0.0)
    machine.look_for(own, 0.9, 0.0, 1.0)
    machine.share = 0.01
    assert own.is_overload(0.2)
    machine.share = 0.5
    other = OwnTime(machine.read, machine.now)
    machine.look_for(other, 0.9, 0.0, 1.0)
    assert not other.is_overload(0.2)


def test_the_message_of_an_overload_names_the_times_and_the_fix(machine):
    own = OwnTime(machine.read, 0.0)
    assert (own.wall(), own.waited()) == (0.0, 0.0)
    own.look(0.0, 0.0)
    machine.share = 0.02
    machine.go(40.0, 0.03, 0.95)
    own.look(machine.now, 0.0)
    assert own.wall() == pytest.approx(41.0)
    text = own.overload_text()
    assert "in 41.0 s a program ran for 1.2 s and waited 39.0 s" in text
    assert "max_stretch" in text


@pytest.mark.parametrize(("share", "error"), [(0.01, OverloadError), (0.5, TimeoutError)])
def test_a_request_that_waits_too_long_is_an_overload_if_the_machine_is_to_blame(
    machine, share, error
):
    machine.share = share
    deadline = RequestDeadline(machine.read, 2.0, 20.0)
    with pytest.raises(error):  # noqa: PT012  the error comes at a time that depends on trials
        for _ in range(500):
            machine.go(0.1, 0.001, 0.999)
            deadline.check()
    assert machine.now >= (40.0 if error is OverloadError else 2.0 * SLACK / share)


def test_a_request_is_only_measured_when_a_look_is_due(machine):
    deadline = RequestDeadline(machine.read, 0.25, 20.0)
    assert deadline.check() == pytest.approx(0.1)
    assert not machine.looks
    machine.now = 0.2
    assert deadline.check() == pytest.approx(0.05)
    assert machine.looks == [0.2]
    machine.now = 0.3
    with pytest.raises(TimeoutError):
        deadline.check()
