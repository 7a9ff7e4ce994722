import copy

import mlrl_envs


def test_equal_environments_have_equal_fingerprints():
    env = mlrl_envs.make("mlrl/story-v0")
    env.reset(seed=0)
    assert mlrl_envs.fingerprint(env) == mlrl_envs.fingerprint(copy.deepcopy(env))
    assert set(mlrl_envs.fingerprint(env)) == {"data", "scorer"}


def test_other_tasks_change_the_data_hash_only():
    train = mlrl_envs.fingerprint(mlrl_envs.make("mlrl/story-v0"))
    held_out = mlrl_envs.fingerprint(mlrl_envs.make("mlrl/story-v0", split="eval"))
    assert train["data"] != held_out["data"]
    assert train["scorer"] == held_out["scorer"]


def test_a_strangers_environment_has_none():
    assert mlrl_envs.fingerprint(object()) == {}
