"""Tests of the interpreter of a session, in one process."""

import subprocess
import sys

import pytest

from mlrl_envs.sandbox.sessions.cells import run_cell


@pytest.fixture
def run(monkeypatch):
    """Run cells in this process, and restore its streams afterwards."""
    for name in ("stdin", "stdout", "stderr"):
        monkeypatch.setattr(sys, name, getattr(sys, name))
    space = {}
    return lambda source, cap=1000: run_cell(source, space, cap)


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("1 + 1", "2\n"),
        ("x = 1", ""),
        ("None", ""),
        ("print(1); 2", "1\n2\n"),
        ("'a'", "'a'\n"),
        ("", ""),
        ("# nothing", ""),
        ("import sys; sys.stderr.write('oops'); None", "oops"),
    ],
)
def test_a_cell_shows_output_as_at_a_prompt(run, source, shown):
    assert run(source) == (True, shown)


def test_output_before_an_error_is_kept(run):
    assert run("print('so far')\n\nraise KeyError('k')") == (
        False,
        "so far\nKeyError: 'k' (line 3)",
    )


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("class E(Exception):\n    def __str__(self): raise E\nraise E", "E (line 3)"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt (line 1)"),
        ("class R:\n    def __repr__(self): raise ValueError('r')\nR()", "ValueError: r (line 2)"),
        ("def f():\n    f()\nf()", "RecursionError: maximum recursion depth exceeded"),
        ("\ud800", "UnicodeEncodeError"),
    ],
)
def test_every_exception_of_a_cell_is_shown(run, source, shown):
    fine, text = run(source)
    assert not fine
    assert text.startswith(shown)


def test_output_of_a_cell_is_limited(run):
    assert run("print('x' * 100)", 10) == (True, "x" * 10)


def test_nondeterministic_sources_are_replaced():
    script = (
        "import sys; from mlrl_envs.sandbox.sessions.cells import make_deterministic\n"
        "make_deterministic()\n"
        "import datetime, os, random, time, uuid\n"
        "print(random.random(), os.urandom(3), uuid.uuid4(), time.time(), time.time_ns(),\n"
        "    datetime.datetime.now(), datetime.datetime.utcnow(), datetime.date.today(),\n"
        "    time.localtime(), time.gmtime(), os.getpid(), time.perf_counter())\n"
        "begun = time.time(); time.sleep(0.01); print(round(time.time() - begun, 3))\n"
        "print(datetime.datetime(2001, 2, 3) - datetime.datetime(2001, 2, 1))\n"
    )
    shown = [subprocess.check_output([sys.executable, "-c", script]) for _ in range(2)]
    assert shown[0] == shown[1]
    assert shown[0].splitlines()[1:] == [b"0.011", b"2 days, 0:00:00"]
