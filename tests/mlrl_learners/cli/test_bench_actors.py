"""The identity of an actor decides which episodes of a benchmark run are kept."""

import json

import pytest

pytest.importorskip("scipy")
pytest.importorskip("jsonschema_rs")

from mlrl_learners.cli.bench_actors import NamedActor
from mlrl_learners.errors import ConfigError, ModelNotFoundError


def test_identity_follows_options_and_ways():
    plain, warm = (
        NamedActor("tiny-random"),
        NamedActor("tiny-random", {"sampling": {"temperature": 1.0}}),
    )
    assert plain.identity(0, "mlrl/story-v1") != warm.identity(0, "mlrl/story-v1")
    assert plain.identity(0, "mlrl/story-v1") != NamedActor("single:tiny-random").identity(
        0, "mlrl/story-v1"
    )
    with pytest.raises(ConfigError, match="pipeline wraps"):
        NamedActor("single:pipeline:")


def test_identity_follows_the_server_and_does_not_name_it():
    one, other = (
        NamedActor(f"endpoint:m@http://{host}/v1").identity(0, "mlrl/story-v1") for host in "ab"
    )
    assert one != other
    assert "http" not in json.dumps(one)


def test_identity_follows_how_a_run_samples(tmp_path):
    identities = []
    for temperature in (0.5, 1.0):
        path = write_run(tmp_path / f"{temperature}" / "a", temperature=temperature)
        identities.append(NamedActor(str(path)).identity(0, "mlrl/story-v1"))
    assert identities[0] != identities[1]


def test_each_environment_and_seed_has_its_own_run(tmp_path):
    for name in ("story-3", "tldr-3", "tldr-4"):
        write_run(tmp_path / name, env=f"mlrl/{name[:-2]}-v1", weights=name)
    actor = NamedActor(f"{tmp_path}/{{env}}-{{seed}}")
    story, tldr, other = (
        actor.identity(seed, env_id)
        for seed, env_id in ((3, "mlrl/story-v1"), (3, "mlrl/tldr-v1"), (4, "mlrl/tldr-v12"))
    )
    assert (story["base"], tldr["base"], other["base"]) == ("story-3", "tldr-3", "tldr-4")
    assert len({each["weights"] for each in (story, tldr, other)}) == 3
    described = actor.describe([3], ["mlrl/story-v1", "mlrl/tldr-v1"])
    assert (actor.name, described["base"]) == ("{env}-{seed}", "{env}-{seed}")
    assert [each["env"] for each in described["trained"]] == ["mlrl/story-v1", "mlrl/tldr-v1"]
    assert described["weights"] == [story["weights"], tldr["weights"]]


def test_names_are_no_longer_than_a_result_allows():
    word = ":".join(["pipeline"] * 12 + ["random"])
    first, second = NamedActor(word).name, NamedActor(f"single:{word}").name
    assert len(first) == len(second) == 80
    assert first != second
    assert NamedActor("random", name="a" * 80).name == "a" * 80
    with pytest.raises(ConfigError, match="at most 80 characters, got 81"):
        NamedActor("random", name="a" * 81)


def test_an_environment_without_a_run_is_an_error_before_anything_is_played(tmp_path):
    write_run(tmp_path / "story")
    actor = NamedActor(f"{tmp_path}/{{env}}")
    actor.identity(0, "mlrl/story-v1")
    with pytest.raises(ModelNotFoundError, match="tldr"):
        actor.identity(0, "mlrl/tldr-v1")


def write_run(path, env="mlrl/story-v1", temperature=1.0, weights=""):
    """Write a run folder with a checkpoint that nothing can load."""
    learner = path / "checkpoints" / "step_1" / "learner"
    learner.mkdir(parents=True)
    (learner / "weights.bin").write_text(weights)
    (learner.parent / "state.json").write_text("{}")
    (path / "config.yaml").write_text(
        f"env: {{id: {env}}}\n"
        "learner:\n  name: magrpo\n  model: m\n"
        f"  options: {{sampling: {{temperature: {temperature}}}}}\n"
    )
    return path
