import json

import numpy as np
import pytest

from mlrl_envs.errors import ContractError
from mlrl_learners.play.steps import step_envs

AGENTS = ("a", "b")


class Told:
    """Environment whose `step` returns what it was made with."""

    def __init__(self, reward=1.0, infos=None, agents=(), ends=(True, True)):
        self.agents, self.reward, self.infos = list(AGENTS), reward, infos or {}
        self.left, self.ends = list(agents), dict(zip(AGENTS, ends, strict=True))

    def step(self, actions):
        self.agents = self.left
        told = dict.fromkeys(AGENTS, "more")
        never = dict.fromkeys(AGENTS, False)
        return told, {"a": 0.5, "b": self.reward}, self.ends, never, self.infos


def played(env):
    return step_envs([env], [dict.fromkeys(AGENTS, "text")])[0]


@pytest.mark.parametrize("reward", [np.float32(2), np.float64(2), np.int64(2), np.array(2.0), 2])
def test_rewards_are_floats_that_json_knows(reward):
    step = played(Told(reward, {"b": {"components": {"bonus": reward}}}))
    assert type(step.rewards["b"]) is float
    assert json.loads(json.dumps(step.rewards)) == {"a": 0.5, "b": 2.0}
    assert json.loads(json.dumps(step.components)) == {"a": {"reward": 0.5}, "b": {"bonus": 2.0}}


@pytest.mark.parametrize("reward", [None, "2", 2j, np.zeros(2)])
def test_a_reward_that_is_no_number_is_named(reward):
    with pytest.raises(ContractError, match="the reward of 'b' must be a number; got"):
        played(Told(reward))


def test_a_component_that_is_no_number_is_named():
    step = played(Told(infos={"b": {"components": {"bonus": None}}}))
    with pytest.raises(ContractError, match="the component of 'b' named 'bonus' must be a number"):
        _ = step.components


def test_an_episode_that_ended_for_all_does_not_go_on():
    with pytest.raises(ContractError, match=r"ended for a, b, .* Told\.step must remove"):
        played(Told(agents=AGENTS))


@pytest.mark.parametrize(
    ("agents", "ends"),
    [(AGENTS, (True, False)), (("b", "waits"), (True, True)), ((), (True, True))],
)
def test_an_episode_goes_on_while_an_agent_may_act_or_waits(agents, ends):
    assert played(Told(agents=agents, ends=ends)).agents == tuple(agents)
