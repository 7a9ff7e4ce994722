"""Starts of Ray that fail, with a stand-in for the package."""

import signal
import socket
import sys
from dataclasses import dataclass, field

import pytest

from mlrl_learners.cluster import ray_session
from mlrl_learners.config.ray import RayConfig
from mlrl_learners.errors import ConfigError, SamplerError


@dataclass
class FailingRay:
    error: Exception
    calls: list = field(default_factory=list)

    def is_initialized(self):
        return False

    def init(self, **arguments):
        raise self.error

    def shutdown(self):
        self.calls.append("shutdown")


@pytest.mark.parametrize(
    "error",
    [
        Exception("The current node timed out during startup.\nIt was late."),
        ConnectionError("The current node timed out during startup. It was late."),
    ],
)
def test_ray_that_does_not_start_is_an_error_of_one_line_and_leaves_nothing(monkeypatch, error):
    ray = FailingRay(error)
    monkeypatch.setattr(ray_session, "_package", lambda: ray)
    said = "Ray does not start on this machine: The current node timed out during startup. It was"
    with (
        pytest.raises(SamplerError, match=said),
        ray_session.open_ray(RayConfig(enabled=True)),
    ):
        pass
    assert ray.calls == ["shutdown"]


def test_ray_that_was_imported_too_early_to_read_a_token_is_refused_unless_the_user_has_one(
    monkeypatch,
):
    ray = FailingRay(ConnectionError("late"))
    monkeypatch.setattr(ray_session, "_package", lambda: ray)
    monkeypatch.setitem(sys.modules, "ray._raylet", ray)
    ray_session._token.cache_clear()
    for name in ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH", "RAY_AUTH_MODE"):
        monkeypatch.delenv(name, raising=False)
    with (
        pytest.raises(ConfigError, match="import it after training has begun, or set RAY_AUTH"),
        ray_session.open_ray(RayConfig(enabled=True)),
    ):
        pass
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    with (
        pytest.raises(SamplerError, match="late"),
        ray_session.open_ray(RayConfig(enabled=True)),
    ):
        pass


def test_a_cluster_is_refused_in_a_process_whose_ray_has_read_another_token(monkeypatch):
    ray = FailingRay(ConnectionError("late"))
    monkeypatch.setattr(ray_session, "_package", lambda: ray)
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    ray_session._token.cache_clear()
    ray_session._token()  # as a run that starts Ray does
    with (
        pytest.raises(ConfigError, match="connect to the cluster in a new process"),
        ray_session.open_ray(RayConfig(enabled=True, address="head:6379")),
    ):
        pass
    ray_session._token.cache_clear()


def test_an_address_at_which_nothing_listens_is_an_error_that_names_it(monkeypatch):
    ray = FailingRay(AssertionError("is not asked"))
    monkeypatch.setattr(ray_session, "_package", lambda: ray)
    monkeypatch.setattr(ray_session, "REACH_SECONDS", 0.1)
    monkeypatch.setattr(ray_session.time, "sleep", lambda seconds: None)
    with socket.socket() as bound:  # bound, but not listening: no other process can take the port
        bound.bind(("127.0.0.2", 0))
        address = f"127.0.0.2:{bound.getsockname()[1]}"
        with (
            pytest.raises(SamplerError, match=rf"nothing answers at {address} .*ray start --head"),
            ray_session.open_ray(RayConfig(enabled=True, address=address)),
        ):
            pass


def test_an_error_of_ray_is_told_with_its_cause():
    error = ConnectionError("Failed to connect to Ray cluster at HOST:1")
    error.__cause__ = RuntimeError("Failed to connect to GCS.\n Unauthenticated: wrong token")
    assert ray_session._reason(error).endswith("GCS. Unauthenticated: wrong token")


class SmallRay(FailingRay):
    """A cluster that starts and has two cores and one GPU."""

    def init(self, **arguments):
        pass

    def cluster_resources(self):
        return {"CPU": 2.0, "GPU": 1.0}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            {"samplers": 3},
            "2 CPUs, and ray.samplers 3 need 3: lower ray.samplers, or use a larger cluster",
        ),
        (
            {"threads": 4},
            "2 CPUs, and ray.samplers 1 of ray.threads 4 need 4: lower ray.threads, or use",
        ),
        (
            {"samplers": 2, "rollouts": 2, "threads": 2},
            "2 CPUs, and ray.samplers 2 of ray.threads 2 and ray.rollouts 2 need 6: lower ray",
        ),
        (
            {"rollouts": 1, "gpus": 2},
            "1 GPUs, and ray.samplers 1 of ray.gpus 2 need 2: lower ray.gpus, or use",
        ),
    ],
)
def test_a_cluster_that_is_too_small_is_told_with_the_options_that_ask_for_too_much(
    monkeypatch, options, said
):
    monkeypatch.setattr(ray_session, "_package", lambda: SmallRay(Exception()))
    config = RayConfig(enabled=True, **options)
    with pytest.raises(ConfigError) as caught, ray_session.open_ray(config):
        pass
    assert str(caught.value).startswith(f"the cluster has {said}")


def test_a_signal_handler_that_python_did_not_install_is_left_alone(monkeypatch):
    monkeypatch.setattr(ray_session, "_package", lambda: SmallRay(Exception()))
    monkeypatch.setattr(ray_session.signal, "getsignal", lambda number: None)
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        with ray_session.open_ray(RayConfig(enabled=True)):
            pass
    finally:
        assert signal.signal(signal.SIGTERM, before) == signal.SIG_IGN
