"""Every preset runs: one iteration with a tiny model on rows that need no data."""

import json

import pytest

from mlrl_learners.cli.train import train_config
from mlrl_learners.config import load_config, presets

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
