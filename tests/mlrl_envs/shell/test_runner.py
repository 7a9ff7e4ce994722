import pickle
import sys

from mlrl_envs.sandbox import Limits, Program
from mlrl_envs.shell.runner import SharedSandbox


def test_equal_limits_make_equal_runners():
    assert SharedSandbox() == SharedSandbox()
    assert hash(SharedSandbox(Limits(wall_seconds=3.0))) == hash(
        SharedSandbox(Limits(wall_seconds=3.0))
    )
    assert SharedSandbox() != SharedSandbox(Limits(wall_seconds=3.0))


def test_pickle_carries_the_limits():
    runner = SharedSandbox(Limits(wall_seconds=3.0))
    assert pickle.loads(pickle.dumps(runner)) == runner


def test_nothing_to_run_starts_nothing(monkeypatch):
    monkeypatch.setitem(sys.modules, "mlrl_envs.sandbox", None)
    assert SharedSandbox().run_many([]) == []


def test_programs_run_in_order():
    programs = [
        Program(f"def f():\n    return {n}", "assert f() == 1", "asserts", ("f",)) for n in (0, 1)
    ]
    assert [outcome.passed for outcome in SharedSandbox().run_many(programs)] == [0, 1]
