"""How long calls wait for a server that is away, on a clock that only pauses move."""

import grpc
import pytest

from mlrl_envs.errors import RemoteEnvError
from mlrl_envs.serve import Connection
from mlrl_envs.serve.describing import describe_any
from mlrl_envs.serve.exchange import Job, Kind, run_jobs
from mlrl_envs.serve.link import RETRY_KEY, Link
from mlrl_envs.serve.messages import message


class Refusal(grpc.RpcError):
    def __init__(self, trailing=()):
        self.trailing = trailing

    def code(self):
        return grpc.StatusCode.UNAVAILABLE

    def details(self):
        return "gone"

    def trailing_metadata(self):
        return self.trailing


class Calls:
    """A link whose calls fail, on a clock that only pauses move.

    Args:
        up_at: For each server, the time from which it answers.

    Attributes:
        busy_at: For some servers, the time from which they ask to wait.
        call_seconds: How long a call takes to fail.
    """

    def __init__(self, monkeypatch, up_at, **settings):
        self.now, self.asked, self.up_at = 100.0, [], up_at
        self.busy_at, self.call_seconds = {}, 0.0
        self.link = Link(tuple(up_at), Connection(**settings))
        for module in ("describing", "exchange", "link"):
            monkeypatch.setattr(f"mlrl_envs.serve.{module}.time", self)
        monkeypatch.setattr("mlrl_envs.serve.exchange._check_same", lambda *_: None)
        monkeypatch.setattr(Job, "item", lambda self: {})
        self.link._method = lambda address, method: lambda *_, **__: self._answer(address, method)

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds

    def _answer(self, address, method):
        self.asked.append(address)
        if self.now < self.up_at[address]:
            self.now += self.call_seconds
            is_busy = self.now >= self.busy_at.get(address, NEVER)
            raise Refusal(((RETRY_KEY, "1000"),) if is_busy else ())
        if method == "Describe":
            return message("DescribeReply")(description=b"{}")
        failure = message("Failure")(kind="other", message="answered")
        return message("PlayReply")(items=[message("PlayItem")(failure=failure)])

    def run(self):
        """Return the error of a job, the servers that it asked and its seconds."""
        self.asked, began = [], self.now
        job = Job(next(iter(self.up_at)), None, b"k" * 16)
        run_jobs(self.link, Kind(None, deterministic=True, fingerprint={}), [job])
        return str(job.done), self.asked, self.now - began


NEVER = float("inf")


def test_each_server_is_asked_some_times_and_then_all_in_turn_for_some_seconds(monkeypatch):
    names = a, b, c = "127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"
    calls = Calls(monkeypatch, dict.fromkeys(names, NEVER), retries=3)
    error, asked, seconds = calls.run()
    assert "does not answer" in error
    assert asked[:9] == [a] * 3 + [b] * 3 + [c] * 3
    assert asked[9:24] == [a, b, c] * 5
    assert 60 < seconds < 65
    assert len(asked) < 60  # pauses grow


@pytest.mark.parametrize("back", ["127.0.0.1:1", "127.0.0.1:2"])
def test_any_server_that_is_back_is_found(monkeypatch, back):
    times = {"127.0.0.1:1": NEVER, "127.0.0.1:2": NEVER, back: 110.0}
    error, asked, seconds = Calls(monkeypatch, times).run()
    assert "answered" in error
    assert asked[-1] == back
    assert seconds < 20


def test_server_that_is_back_and_busy_is_waited_for(monkeypatch):
    calls = Calls(monkeypatch, {"127.0.0.1:1": 180.0, "127.0.0.1:2": NEVER}, retries=2)
    calls.busy_at["127.0.0.1:1"] = 120.0
    error, asked, _ = calls.run()
    assert "answered" in error
    assert set(asked[-30:]) == {"127.0.0.1:1"}


def test_every_server_is_asked_if_calls_fail_slowly(monkeypatch):
    names = [f"127.0.0.1:{port}" for port in range(1, 9)]
    calls = Calls(monkeypatch, {**dict.fromkeys(names, NEVER), names[2]: 150.0})
    calls.call_seconds = 12.0
    assert "answered" in calls.run()[0]
    assert set(calls.asked) == set(names)


@pytest.mark.parametrize("is_down", [False, True])
def test_only_server_may_be_away_for_the_time_of_retries(monkeypatch, is_down):
    calls = Calls(monkeypatch, {"127.0.0.1:1": 155.0}, retries=2)
    if is_down:
        calls.link.mark_down("127.0.0.1:1")
    assert "answered" in calls.run()[0]


def test_next_call_does_not_wait_where_one_has_waited(monkeypatch):
    calls = Calls(monkeypatch, {"127.0.0.1:1": NEVER})
    assert calls.run()[2] > 60
    assert calls.run()[1:] == (["127.0.0.1:1"], 0.0)
    calls.up_at["127.0.0.1:1"] = calls.now
    assert "answered" in calls.run()[0]
    calls.up_at["127.0.0.1:1"] = calls.now + 20
    assert "answered" in calls.run()[0]


def test_failed_calls_do_not_put_off_the_next_wait(monkeypatch):
    calls = Calls(monkeypatch, {"127.0.0.1:1": NEVER})
    calls.run()
    calls.now += 20
    assert calls.run()[2] == 0.0
    calls.now += 11
    calls.up_at["127.0.0.1:1"] = calls.now + 20
    assert "answered" in calls.run()[0]


def test_server_is_waited_for_by_a_new_environment_if_it_has_answered_before(monkeypatch):
    calls = Calls(monkeypatch, {"127.0.0.1:1": 120.0})
    with pytest.raises(RemoteEnvError, match="start one: mlrl serve env"):
        describe_any(calls.link, None)
    assert calls.now < 110
    assert "answered" in calls.run()[0]
    calls.up_at["127.0.0.1:1"] = calls.now + 50
    assert describe_any(calls.link, None) == {"boot_id": ""}
    calls.up_at["127.0.0.1:1"] = NEVER
    began = calls.now
    with pytest.raises(RemoteEnvError, match="start one: mlrl serve env"):
        describe_any(calls.link, None)
    assert 60 < calls.now - began < 70
