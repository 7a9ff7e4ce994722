"""How long calls wait for a server that is away, on a clock that only pauses move."""

import grpc
import pytest

from mlrl_envs.errors import RemoteEnvError
from mlrl_envs.serve import Connection
from mlrl_envs.serve.describing import describe_any
from mlrl_envs.serve.exchange import Job, Kind, run_jobs
from mlrl_envs.serve.link import Link
from mlrl_envs.serve.messages import message


class Refusal(grpc.RpcError):
    def code(self):
        return grpc.StatusCode.UNAVAILABLE

    def details(self):
        return "gone"

    def trailing_metadata(self):
        return ()


class Calls:
    """A link whose calls fail, on a clock that only pauses move.

    Args:
        up_at: For each server, the time from which it answers.
    """

    def __init__(self, monkeypatch, up_at, **settings):
        self.now, self.asked, self.up_at = 100.0, [], up_at
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
            raise Refusal
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


def test_server_is_left_after_some_retries_and_the_last_one_after_some_seconds(monkeypatch):
    calls = Calls(monkeypatch, {"127.0.0.1:1": NEVER, "127.0.0.1:2": NEVER}, retries=3)
    error, asked, seconds = calls.run()
    assert "127.0.0.1:2 does not answer" in error
    assert asked[:4] == ["127.0.0.1:1"] * 3 + ["127.0.0.1:2"]
    assert set(asked[3:]) == {"127.0.0.1:2"}
    assert 60 < seconds < 65
    assert len(asked) < 60  # pauses grow


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
