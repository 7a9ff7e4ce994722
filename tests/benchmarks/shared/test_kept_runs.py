"""Runs of benchmarks are kept only with the configuration that they were made with."""

import dataclasses
import json

import pytest

from benchmarks.shared.kept_runs import check_same, finish
from mlrl_learners.config.run import EnvConfig, LearnerConfig, RunConfig, TrainConfig, to_mapping
from mlrl_learners.config.yaml import dump_yaml
from mlrl_learners.errors import RunDirError

CONFIG = RunConfig(
    EnvConfig("mlrl/story-v1", {"split": "train"}),
    LearnerConfig("magrpo", "tiny-random", {"group": {"size": 2}}),
    train=TrainConfig(4),
)


@pytest.fixture
def finished(tmp_path):
    (tmp_path / "config.yaml").write_text(dump_yaml(json.loads(json.dumps(to_mapping(CONFIG)))))
    (tmp_path / "checkpoints" / "step_4").mkdir(parents=True)
    return tmp_path


def test_a_finished_run_is_kept(finished):
    assert finish(CONFIG, finished)


def test_a_folder_without_a_run_is_no_other_run(tmp_path):
    check_same(CONFIG, tmp_path)


@pytest.mark.parametrize(
    ("changed", "name"),
    [
        ({"train": TrainConfig(4, seed=1)}, "train.seed"),
        ({"train": TrainConfig(8)}, "train.iterations was 4, now 8"),  # of its learning rates
        ({"learner": LearnerConfig("ippo", "tiny-random", {})}, "learner"),
        ({"env": EnvConfig("mlrl/story-v1", {"split": "eval"})}, "env.options.split"),
    ],
)
def test_a_run_of_another_configuration_is_refused(finished, changed, name):
    with pytest.raises(RunDirError, match=name):
        finish(dataclasses.replace(CONFIG, **changed), finished)
