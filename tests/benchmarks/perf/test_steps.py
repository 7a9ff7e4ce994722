"""Answers of the benchmark of environment steps."""

import pytest

import mlrl_envs
from benchmarks.perf import steps
from benchmarks.perf.common import alternate


@pytest.mark.parametrize("env_id", ["mlrl/story-v1", "mlrl/humaneval-v1", "mlrl/network-v0"])
def test_no_side_meets_a_joint_action_that_was_played_before(env_id, monkeypatch):
    played = []

    def note(_env, action):
        played.append(tuple(action.values()))

    env_type = type(mlrl_envs.make(env_id, split="sample", sandbox=steps.FailingRunner()).unwrapped)
    for kind in (env_type, steps.BareEnv):
        monkeypatch.setattr(kind, "step", note)
    monkeypatch.setattr(mlrl_envs, "step_many", lambda forks, all_: list(map(note, forks, all_)))
    sides = steps._sides(env_id, 4)
    alternate(sides, rounds=2, warmup=1)
    assert len(played) == len(set(played)) == len(sides) * 3 * 4
