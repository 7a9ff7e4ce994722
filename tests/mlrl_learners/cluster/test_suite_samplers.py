"""Suites whose answers processes of Ray sample: the results of one process."""

import contextlib
import json

import pytest

from mlrl_learners.cli import main
from mlrl_learners.cluster import suite_samplers
from tests.mlrl_learners.cli.bench_runs import SUITE, bench
from tests.mlrl_learners.cluster import inline_workers


@pytest.fixture
def suite(tmp_path):
    file = tmp_path / "quick.yaml"
    file.write_text(SUITE)
    return str(file)


def episodes(folder):
    found = [json.loads(line) for line in (folder / "episodes.jsonl").read_text().splitlines()]
    return [{k: v for k, v in each.items() if not k.endswith("seconds")} for each in found]


def test_a_suite_sampled_by_others_has_the_episodes_of_one_process(suite, tmp_path, monkeypatch):
    made = inline_workers.use(monkeypatch)
    monkeypatch.setattr(suite_samplers, "open_ray", contextlib.nullcontext)
    assert bench(suite, "tiny-random", tmp_path / "one") == 0
    assert made == []
    assert (
        bench(suite, "tiny-random", tmp_path / "ray", "--engine", "ray", "--ray.samplers", "2") == 0
    )
    assert len(made) >= 2  # a pool for each entry
    assert all(workers.asked and workers.stopped for workers in made)
    assert episodes(tmp_path / "ray") == episodes(tmp_path / "one")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--ray.samplers", "2"), "add --engine ray"),
        (("--engine", "ray", "--ray.samplers", "0"), "ray.samplers must be at least 1"),
        (("--engine", "ray", "--ray.lag", "1"), "ray.lag is of training"),
        (("--engine", "ray", "--ray.rollouts", "1"), "ray.rollouts is of training"),
        (("--engine", "ray", "--actor", "random"), "has none: use engine torch"),
    ],
)
def test_what_ray_cannot_sample_is_refused_in_one_line(suite, tmp_path, capsys, words, message):
    assert bench(suite, "tiny-random", tmp_path / "run", *words) == 2
    (said,) = [line for line in capsys.readouterr().err.splitlines() if "mlrl: " in line]
    assert message in said


def test_crossplay_takes_no_options_of_ray(capsys):
    words = ["bench", "crossplay", "mlrl/nim-v0", "--actors", "random", "--ray.samplers", "2"]
    assert main(words) == 2
    assert "leave the options of ray out" in capsys.readouterr().err
