"""Runs with samplers for tests, and what must be equal between two of them."""

import json

import torch

import mlrl_learners
from mlrl_learners.config.option_places import merge_options
from mlrl_learners.config.ray import RayConfig

OPTIONS = {
    "sampling": {"max_new_tokens": 12},
    "optimizer": {"lr": 1e-3},
    "group": {"size": 6},
    "compute": {"device": "cpu", "max_rows": 6},  # several batches
}
TRAIN = {"tasks_per_iteration": 3, "eval_every": 2, "eval_tasks": 2, "eval_samples": 2}
CORRECTED = {"importance": {"correction": "token_truncate"}}


def train(run_dir, *, learner="magrpo", options=None, iterations=3, train=None, **ray):
    """Train a tiny team on stories; with `ray`, options of the section."""
    made = mlrl_learners.make(
        learner,
        model="tiny-random",
        agents=["setup", "story"],
        **merge_options(OPTIONS, options or {}),
    )
    mlrl_learners.train(
        env_id="mlrl/story-v1",
        env_options={"reward": "paper"},
        learner=made,
        iterations=iterations,
        run_dir=run_dir,
        progress=False,
        token_ids=True,
        ray=RayConfig(enabled=True, **ray) if ray else None,
        **{**TRAIN, **(train or {})},
    )
    return made


def assert_equal(first, second):
    """Compare all lines but times, and all tensors of the last checkpoint, bit for bit."""
    for name in ("episodes.jsonl", "metrics.jsonl", "evaluations.jsonl"):
        assert lines(first / name) == lines(second / name)
    mine, others = (files(last_checkpoint(run)) for run in (first, second))
    assert mine.keys() == others.keys()
    for name in mine:
        assert mine[name].read_bytes() == others[name].read_bytes() or _same(
            mine[name], others[name]
        ), name


def lines(path):
    return [_without_times(json.loads(line)) for line in path.read_text().splitlines()]


def last_checkpoint(run_dir):
    return max((run_dir / "checkpoints").iterdir(), key=lambda path: int(path.name.split("_")[1]))


def files(folder):
    return {str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file()}


def _same(one, other):
    if one.suffix != ".pt":
        return False
    return _equal(torch.load(one), torch.load(other))


def _equal(one, other):
    if isinstance(one, torch.Tensor):
        return torch.equal(one, other)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_equal(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(_equal, one, other))
    return one == other


def _without_times(record):
    ends = ("seconds", "seconds_per_episode", "tokens_per_second")
    return {
        key: _without_times(value) if isinstance(value, dict) else value
        for key, value in record.items()
        if not key.endswith(ends) and not key.startswith("sampler/")
    }
