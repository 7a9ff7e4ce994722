"""Contract of the environment, and rewards of correct and of empty answers."""

import mlrl_envs
import pytest
from my_env import ENV_ID
from pettingzoo.test import parallel_api_test


@pytest.mark.parametrize("split", ["train", "eval"])
def test_it_keeps_the_contract(split):
    mlrl_envs.check_env(lambda: mlrl_envs.make(ENV_ID, split=split))
    parallel_api_test(mlrl_envs.make(ENV_ID, split=split))


def test_no_attack_comes_near_right_answers():
    mlrl_envs.check_env(lambda: mlrl_envs.make(ENV_ID), audit=True)


def test_right_answers_earn_everything_and_empty_ones_nothing():
    env = mlrl_envs.make(ENV_ID)
    for index in range(env.num_tasks):
        env.reset(options={"task_index": index})
        _, rewards, *_ = env.step(dict.fromkeys(env.possible_agents, ""))
        assert set(rewards.values()) == {0.0}
        _, rewards, *_ = env.step(env.reference_actions())
        assert set(rewards.values()) == {1.0}
