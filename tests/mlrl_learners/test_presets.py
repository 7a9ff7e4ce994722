"""Every preset runs: one iteration with a tiny model on rows that need no data."""

import json
import math
import re

import pytest
import torch

import mlrl_learners
from mlrl_learners.algorithms.magrpo import MagrpoConfig
from mlrl_learners.cli.train import train_config
from mlrl_learners.config.run import PRESETS, load_config, presets
from mlrl_learners.functional.losses import value_loss

SMALL_OPTIONS = {"max_new_tokens": "4", "group_size": "2"}
SMALL = [
    "--env.options.split", "sample",
    "--learner.model", "tiny-random",
    "--train.iterations", "1",
    "--train.tasks_per_iteration", "1",
    "--train.eval_tasks", "1",
    "--train.eval_samples", "1",
    "--train.eval_options", "{split: sample}",
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", presets())
def test_a_preset_runs_one_iteration_with_a_tiny_model(name, tmp_path):
    known = load_config(name).learner.options
    options = [
        word
        for option, value in SMALL_OPTIONS.items()
        if option in known
        for word in (f"--learner.options.{option}", value)
    ]
    config = load_config(name, [*SMALL, *options])
    result = train_config(config, tmp_path / "run", progress=False)
    assert result.iterations == 1
    lines = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["iteration"] for line in lines] == [1]


@pytest.mark.parametrize("name", presets())
def test_a_preset_says_of_every_number_where_it_is_from(name):
    lines = (PRESETS / f"{name}.yaml").read_text("utf-8").splitlines()
    numbers = [line for line in lines if re.match(r"\s+[a-z_0-9]+: -?[0-9]", line)]
    assert numbers
    for line in numbers:
        assert re.search(r"  # (published|ours|comlrl 1\.4\.3|the default)", line), line


def test_the_published_preset_has_the_loss_that_was_published():
    """Term by term: -A/G * sum of log pi, A = (R - mean) / deviation, no clip, AdamW as it is."""
    config = MagrpoConfig(**load_config("humaneval-paper").learner.options)
    assert (config.baseline, config.loss, config.clips) == ("mean", "sequence", (1.0, math.inf))
    assert (config.group_size, config.joint_mode, config.branching) == (4, "aligned", "tree")
    assert (config.normalize_std, config.std_epsilon, config.normalize_batch) == (True, 1e-6, False)
    assert (config.epochs, config.num_minibatches, config.gamma, config.kl_coef) == (1, 1, 1.0, 0.0)
    assert (config.temperature, config.top_p, config.top_k) == (0.6, 0.6, 50)
    assert (config.lr, config.weight_decay, config.max_grad_norm) == (2e-5, 0.01, 0.0)
    assert (config.beta1, config.beta2, config.schedule) == (0.9, 0.999, "constant")


@pytest.mark.parametrize("name", ["iac", "maac"])
def test_one_step_methods_have_the_losses_that_were_published(name):
    """-A * sum of log pi, and 0.6 (V - R)^2: this is 1.2 times our half of it."""
    learner = mlrl_learners.make(name, agents=("a", "b"), model="tiny-random", device="cpu")
    config, values, targets = learner.config, torch.tensor([0.3, 2.0]), torch.tensor([1.0, -1.0])
    ours = config.value_coef * value_loss(values, torch.zeros(2), targets, config.value_clip)
    assert torch.allclose(ours, 0.6 * (values - targets) ** 2)
    assert (config.loss, config.clips, config.gae_lambda) == ("sequence", (1.0, math.inf), 0.0)
    assert (config.normalize_advantages, config.epochs) == (True, 1)
