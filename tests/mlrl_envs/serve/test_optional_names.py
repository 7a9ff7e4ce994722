"""Environments that lack the optional names of the contract, over the wire."""

import itertools

import pytest
from pettingzoo import ParallelEnv

import mlrl_envs
from mlrl_envs.errors import InvalidArgumentError
from mlrl_envs.naming import options_of
from mlrl_envs.spaces import UnicodeText

OPTIONAL = ("num_tasks", "max_turns", "reward_range")
numbers = itertools.count()


class Plain(ParallelEnv):
    """What PettingZoo asks for, and nothing else: two turns that repeat the seed."""

    def __init__(self):
        self.metadata = {"name": "tests/plain-v0"}
        self.possible_agents, self.space = ["a"], UnicodeText()
        self.seed, self.turn = 0, 2

    @property
    def agents(self):
        return ["a"] if self.turn < 2 else []

    def observation_space(self, agent):
        return self.space

    def action_space(self, agent):
        return self.space

    def reset(self, seed=None, options=None):
        if options and {"task_index", "task_id"} & set(options):
            raise InvalidArgumentError(f"there are no tasks to choose by {options}")
        self.turn, self.seed = 0, seed or 0
        return {"a": str(self.seed)}, {"a": {}}

    def step(self, actions):
        self.turn += 1
        over = self.turn == 2
        return {"a": str(self.seed)}, {"a": 1.0}, {"a": over}, {"a": False}, {"a": {}}

    def render(self):
        return None

    def close(self):
        pass


class PlainWithTasks(Plain):
    num_tasks = 7


def _remote(start_server, factory=Plain, **settings):
    name = f"tests/plain-v{next(numbers)}"
    mlrl_envs.register(name, factory)
    return start_server(ids=[name], **settings).make(name)


def test_names_that_the_environment_of_the_server_lacks_are_missing(start_server):
    env = _remote(start_server)
    assert [name for name in OPTIONAL if hasattr(env, name)] == []
    with pytest.raises(AttributeError, match="the environment of the server has no 'num_tasks'"):
        _ = env.num_tasks


def test_names_that_the_environment_of_the_server_has_are_there(start_server):
    env = _remote(start_server, PlainWithTasks)
    assert [name for name in OPTIONAL if hasattr(env, name)] == ["num_tasks"]
    assert env.num_tasks == 7


def test_contract_holds_over_the_wire_without_the_optional_names(start_server):
    name = f"tests/plain-v{next(numbers)}"
    mlrl_envs.register(name, Plain)
    server = start_server(ids=[name], references=True)
    with pytest.warns(UserWarning, match="works without .*num_tasks"):
        mlrl_envs.check_env(lambda: server.make(name))


@pytest.mark.parametrize("env_id", ["mlrl/kuhn-v0", "mlrl/math-v2"])
def test_contract_holds_at_a_server_that_keeps_the_references(start_server, env_id):
    server = start_server(ids=[env_id])
    mlrl_envs.check_env(lambda: server.make(env_id, split="sample"))


def _strange(*, rows):
    return Plain() if rows else None


@pytest.mark.parametrize("env_id", ["mlrl/story-v1", "mlrl/nim-v0", "mlrl/coder-tester-v1"])
def test_a_server_names_the_options_of_its_environments(server, env_id):
    assert options_of(f"remote://{server.address}/{env_id}") == options_of(env_id)


def test_options_are_unknown_if_the_server_cannot_make_the_environment_without_any(start_server):
    mlrl_envs.register("tests/strange-v0", _strange)
    server = start_server(ids=["tests/strange-v0"])
    assert options_of(f"remote://{server.address}/tests/strange-v0") is None
