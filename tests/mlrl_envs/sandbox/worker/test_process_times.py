"""Tests of the times that the kernel counts for the processes of a worker."""

import os
import signal
import sys
import time
from pathlib import Path

import pytest

from mlrl_envs.sandbox.jail.syscalls import die_with_parent
from mlrl_envs.sandbox.worker.process_times import ProcessTimes, ThreadTimes, Times

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")


def start(work, count):
    """Start children that run `work` until they are killed."""
    children = []
    for _ in range(count):
        child = os.fork()
        if child == 0:
            try:
                die_with_parent()
                work()
            finally:
                os._exit(0)
        children.append(child)
    return children


def wait_for_state(children, state):
    for child in children:
        while state not in Path(f"/proc/{child}/stat").read_text().rpartition(")")[2]:
            time.sleep(0.01)


def look_after(seconds, work, count=1, state="R"):
    """Return the first and last times of children that run `work`, from a state on."""
    children, table = start(work, count), ProcessTimes()
    try:
        time.sleep(0.1)
        wait_for_state(children, state)
        first = only(table.read(time.monotonic()), children)
        time.sleep(seconds)
        last = only(table.read(time.monotonic()), children)
    finally:
        table.close()
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    return first, last


def only(times, children):
    pids = [str(child) for child in children]
    return Times(
        times.now,
        {pid: times.ran[pid] for pid in pids},
        {pid: times.threads[pid] for pid in pids},
    )


def spin():
    while True:
        pass


def test_a_running_process_runs_or_waits():
    first, last = look_after(0.3, spin)
    assert last.ran_since(first) + last.waited_since(first) > 0.2


def test_a_sleeping_process_neither_runs_nor_waits():
    first, last = look_after(0.3, lambda: time.sleep(60), state="S")
    assert last.ran_since(first) < 0.05
    assert last.waited_since(first) < 0.1


def test_two_processes_on_one_core_wait_for_each_other():
    core = {min(os.sched_getaffinity(0))}

    def compete():
        os.sched_setaffinity(0, core)
        spin()

    first, last = look_after(0.5, compete, count=2)
    wall = last.now - first.now
    assert last.waited_since(first) > 0.5 * wall
    assert last.waited_since(first) + last.ran_since(first) == pytest.approx(2 * wall, abs=0.2)


def test_processes_that_ended_and_a_closed_table_are_no_error():
    table = ProcessTimes()
    table.close()
    assert table.read(1.0) == Times(1.0, {}, {})
    table.close()


def test_a_thread_that_got_no_processor_since_the_last_look_waits():
    def at(now, runnable):
        return Times(now, {"7": 0.0}, {"7": {"7": ThreadTimes(b"5 5 5", 1.0, 2.0, runnable)}})

    assert at(6.0, runnable=True).waited_since(at(2.0, runnable=True)) == 4.0
    assert at(6.0, runnable=False).waited_since(at(2.0, runnable=False)) == 0.0


def test_of_each_process_only_the_longest_wait_counts():
    threads = {str(n): ThreadTimes(b"", float(n), 0.0, runnable=False) for n in range(4)}
    later = Times(9.0, {"7": 0.0}, {"7": threads})
    assert later.waited_since(Times(1.0, {}, {})) == 3.0


def test_a_thread_that_ended_while_its_process_waited_counts_what_was_left():
    def at(now, names, runnable=True):
        one = ThreadTimes(b"5 5 5", 0.0, now, runnable)
        return Times(now, {"7": now / 10}, {"7": dict.fromkeys(names, one)})

    assert at(2.0, "13").waited_since(at(1.0, "12")) == pytest.approx(0.9)
    assert at(2.0, "13", runnable=False).waited_since(at(1.0, "12")) == 0
    assert at(2.0, "123").waited_since(at(1.0, "12")) == 0


def test_a_folder_that_is_not_procfs_shows_no_process(tmp_path):
    table = ProcessTimes()
    table.close()
    table._proc = os.open(tmp_path, os.O_RDONLY)
    assert table.read(1.0) == Times(1.0, {}, {})
    table.close()


@pytest.mark.parametrize("counts", [b"0 0 0\n", b"", None])
def test_a_kernel_that_does_not_count_shows_no_waiting(counts, monkeypatch):
    read = ProcessTimes._read

    def read_other(table, path):
        if not path.endswith("schedstat"):
            return read(table, path)
        if counts is None:
            raise FileNotFoundError(path)
        return counts

    monkeypatch.setattr(ProcessTimes, "_read", read_other)
    first, last = look_after(0.3, spin)
    assert last.waited_since(first) == 0
    assert last.ran_since(first) >= 0
    assert not any(last.threads.values())
