"""Grounded rewards of the honest programs: the half that was not used to choose any number.

The halves are drawn by a hash of the line. The other half chose the full drop of cooperation and
the weights.
"""

import hashlib
import json
from pathlib import Path

import pytest

import mlrl_envs
from tests.mlrl_envs.honest.test_code_corpus import has_data

HERE = Path(__file__).parent


def _held_out(name):
    lines = (HERE / f"{name}.jsonl").read_text().splitlines()
    held_out = [line for line in lines if hashlib.sha256(line.encode()).digest()[0] % 2]
    return [row for row in map(json.loads, held_out) if has_data(row)]


def _earned(row, envs):
    key = (row["env_id"], row["split"], json.dumps(row["options"]))
    if key not in envs:
        envs[key] = mlrl_envs.make(row["env_id"], split=row["split"], **row["options"])
    envs[key].reset(options={"task_id": row["task_id"]})
    _, rewards, *_ = envs[key].step(row["turns"][0])
    return next(iter(rewards.values()))


@pytest.mark.parametrize(
    ("name", "least_mean", "least_share"), [("coding", 0.85, 0.9), ("classeval", 0.95, 0.95)]
)
def test_honest_programs_are_paid(name, least_mean, least_share):
    envs = {}
    earned = [_earned(row, envs) for row in _held_out(name)]
    assert len(earned) >= 5
    assert sum(earned) / len(earned) >= least_mean
    assert sum(value >= 0.6 for value in earned) / len(earned) >= least_share
