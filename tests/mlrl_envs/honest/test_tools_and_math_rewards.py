"""Rewards of the honest answers to `tools` and `math`, all of them and a half chosen by a hash."""

import hashlib
import json
from functools import lru_cache
from pathlib import Path
from statistics import fmean

import pytest

import mlrl_envs

FOLDER = Path(__file__).parent
ENVS = {"tools": "mlrl/tools-v1", "math": "mlrl/math-v2"}


@lru_cache
def make(name, options):
    return mlrl_envs.make(ENVS[name], **json.loads(options))


def reward(name, entry):
    """Return the sum of an episode, the mean over its agents."""
    data = {"data_path": str(FOLDER / entry["tasks"])} if "tasks" in entry else {}
    env = make(name, json.dumps({"split": entry["split"], **data, **entry["options"]}))
    env.reset(options={"task_id": entry["task_id"]})
    return sum(fmean(env.step(turn)[1].values()) for turn in entry["turns"])


@lru_cache
def rewards(name):
    lines = (FOLDER / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    halves = [int(hashlib.sha256(line.encode()).hexdigest(), 16) % 2 for line in lines]
    return [
        (reward(name, json.loads(line)), half) for line, half in zip(lines, halves, strict=True)
    ]


@pytest.mark.parametrize("name", ENVS)
@pytest.mark.parametrize("halves", [(0, 1), (1,)])
def test_honest_answers_are_paid(name, halves):
    earned = [value for value, half in rewards(name) if half in halves]
    assert len(earned) >= (40 if len(halves) > 1 else 15)
    assert fmean(earned) >= 0.9
    assert sum(value >= 0.6 for value in earned) >= 0.95 * len(earned)
