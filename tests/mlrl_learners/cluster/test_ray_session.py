"""Starts of Ray that fail, with a stand-in for the package."""

from dataclasses import dataclass, field

import pytest

from mlrl_learners.cluster import ray_session
from mlrl_learners.config.ray import RayConfig
from mlrl_learners.errors import SamplerError


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
