"""`check_env` accepts environments in PettingZoo's usual style."""

import numpy as np
import pytest
from pettingzoo import ParallelEnv

import mlrl_envs
from mlrl_envs.errors import ContractError
from mlrl_envs.shell.env import TextParallelEnv
from mlrl_envs.spaces import UnicodeText

pytestmark = pytest.mark.filterwarnings("ignore:the environment works without")


class Guess(ParallelEnv):
    """One turn; `agents` is a plain list, and a reward what `pays` makes of a bool."""

    pays = int

    def __init__(self):
        self.metadata = {"name": "tests/guess-v0"}
        self.possible_agents, self.space = ["a", "b"], UnicodeText()
        self.agents = []

    def observation_space(self, agent):
        return self.space

    action_space = observation_space

    def reset(self, seed=None, options=None):
        if {"task_index", "task_id"} & set(options or {}):
            raise ValueError("there are no tasks")
        self.agents = list(self.possible_agents)
        return dict.fromkeys(self.agents, "say yes"), {agent: {} for agent in self.agents}

    def step(self, actions):
        texts = [text for text in actions.values() if isinstance(text, str)]
        if not self.agents or set(actions) != set(self.agents) or len(texts) < len(actions):
            raise ValueError("one text for each agent")
        rewards = {agent: type(self).pays("yes" in text) for agent, text in actions.items()}
        told, self.agents = self.agents, []
        ends = dict.fromkeys(told, True), dict.fromkeys(told, False)
        return dict.fromkeys(told, "done"), rewards, *ends, {agent: {} for agent in told}


class Small(Guess):
    pays = np.float32


class Whole(Guess):
    pays = np.int64


class YesNo(Guess):
    pays = bool


@pytest.mark.parametrize("env_type", [Guess, Small, Whole])
def test_a_plain_list_of_agents_and_any_real_reward_pass(env_type):
    mlrl_envs.check_env(env_type)


def test_a_reward_that_is_a_bool_is_found():
    with pytest.raises(ContractError, match="the reward of 'a' is a finite float"):
        mlrl_envs.check_env(YesNo)


def test_a_text_environment_shares_no_list_of_agents():
    class Shares(TextParallelEnv):
        @property
        def agents(self):
            is_running = bool(super().agents)
            return self.possible_agents if is_running else []

    family = mlrl_envs.make("mlrl/story-v1").family
    with pytest.raises(ContractError, match="agents is a list of the caller's own"):
        mlrl_envs.check_env(lambda: Shares(family, env_id="tests/shares-v0"))
