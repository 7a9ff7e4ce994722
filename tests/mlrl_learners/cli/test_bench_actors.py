"""The identity of an actor decides which episodes of a benchmark run are kept."""

import json

import pytest

pytest.importorskip("scipy")
pytest.importorskip("jsonschema")

from mlrl_learners.cli.bench_actors import NamedActor
from mlrl_learners.errors import ConfigError


def test_identity_follows_options_and_ways():
    plain, warm = (
        NamedActor("tiny-random"),
        NamedActor("tiny-random", {"sampling": {"temperature": 1.0}}),
    )
    assert plain.identity(0) != warm.identity(0)
    assert plain.identity(0) != NamedActor("single:tiny-random").identity(0)
    with pytest.raises(ConfigError, match="pipeline wraps"):
        NamedActor("single:pipeline:")


def test_identity_follows_the_server_and_does_not_name_it():
    one, other = (NamedActor(f"endpoint:m@http://{host}/v1").identity(0) for host in "ab")
    assert one != other
    assert "http" not in json.dumps(one)


def test_identity_follows_how_a_run_samples(tmp_path):
    identities = []
    for temperature in (0.5, 1.0):
        path = tmp_path / f"{temperature}" / "a"
        (path / "checkpoints" / "step_1" / "learner").mkdir(parents=True)
        (path / "checkpoints" / "step_1" / "state.json").write_text("{}")
        (path / "config.yaml").write_text(
            "env: {id: mlrl/story-v1}\n"
            "learner:\n  name: magrpo\n  model: m\n"
            f"  options: {{sampling: {{temperature: {temperature}}}}}\n"
        )
        identities.append(NamedActor(str(path)).identity(0))
    assert identities[0] != identities[1]
