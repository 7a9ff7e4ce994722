import pytest

from mlrl_learners.cli import main
from mlrl_learners.config.ray import RayConfig
from mlrl_learners.config.run import from_mapping, to_mapping
from mlrl_learners.errors import ConfigError


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("samplers", 0),
        ("threads", 0),
        ("rollouts", -1),
        ("max_attempts", 0),
        ("lag", -1),
        ("gpus", -0.5),
        ("job_seconds", 0),
        ("rollout_seconds", 0),
        ("start_seconds", float("inf")),
        ("address", "ray://here:1"),
        ("address", "head"),
    ],
)
def test_a_value_outside_its_range_is_refused_by_its_name(name, value):
    with pytest.raises(ConfigError, match=f"ray.{name} must be"):
        RayConfig(enabled=True, **{name: value})


def test_processes_that_play_have_equal_numbers_of_samplers():
    with pytest.raises(ConfigError, match=r"a multiple of ray.rollouts, .* got 3 and 2"):
        RayConfig(enabled=True, samplers=3, rollouts=2)
    assert RayConfig(enabled=True, samplers=4, rollouts=2).processes == 2
    assert RayConfig(enabled=True, samplers=4).processes == 4


@pytest.mark.parametrize("address", ["", "auto", "head:6379", "10.0.0.1:6379", "[::1]:6379"])
def test_addresses_are_those_of_a_head(address):
    assert RayConfig(enabled=True, address=address).address == address


def test_options_without_the_engine_are_refused():
    with pytest.raises(ConfigError, match="add --engine ray"):
        RayConfig(samplers=2).check_read()


def test_a_stored_configuration_has_the_section_only_if_ray_samples():
    raw = {"env": {"id": "mlrl/story-v1"}}
    assert "ray" not in to_mapping(from_mapping(raw))
    config = from_mapping(raw, ["--ray.enabled", "true", "--ray.samplers", "3"])
    assert to_mapping(config)["ray"]["samplers"] == 3
    assert from_mapping(to_mapping(config)) == config


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--ray.samplers", "2"], "add --engine ray"),
        (["--lag", "1"], "add --engine ray"),
        (["--engine", "ray", "--lag", "x"], "ray.lag must be an int"),
        (["--engine", "ray", "--lag", "1"], "importance.correction"),
        (["--engine", "ray", "--learner.sampler.endpoint", "http://127.0.0.1:1/v1",
          "--learner.sampler.model", "m", "--learner.sampling.top_p", "1",
          "--learner.importance.correction", "token_mask"], "both sample"),
    ],
)  # fmt: skip
def test_combinations_without_a_meaning_are_refused_before_anything_is_written(
    words, message, tmp_path, capsys
):
    tiny = ["--learner.model", "tiny-random", "--run-dir", str(tmp_path / "run")]
    assert main(["train", "story", *tiny, *words]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "run").exists()
