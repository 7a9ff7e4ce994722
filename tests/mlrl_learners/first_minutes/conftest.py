import importlib
import json
import shutil
import sys

import pytest

import mlrl_envs
import mlrl_learners
from mlrl_learners.cli import main
from mlrl_learners.cli.init import TEMPLATES

GUESS = '''
import functools

from gymnasium.spaces import Text
from pettingzoo import ParallelEnv

import mlrl_envs


class Guess(ParallelEnv):
    """An environment of a new user, with what PettingZoo asks for and no more."""

    metadata = {"name": "guess"}

    def __init__(self):
        self.possible_agents, self.agents = ["a", "b"], []

    @functools.lru_cache
    def observation_space(self, agent):
        return Text(10_000)

    @functools.lru_cache
    def action_space(self, agent):
        return Text(10_000)

    def reset(self, seed=None, options=None):
        self.agents = list(self.possible_agents)
        return dict.fromkeys(self.agents, "say yes"), {agent: {} for agent in self.agents}

    def step(self, actions):
        rewards = {agent: float("yes" in text) for agent, text in actions.items()}
        self.agents = []
        ends = dict.fromkeys(rewards, True), dict.fromkeys(rewards, False)
        return dict.fromkeys(rewards, ""), rewards, *ends, {agent: {} for agent in rewards}


mlrl_envs.register("me/guess-v0", Guess)


def says_yes(agent, observation):
    return "yes"
'''


@pytest.fixture
def type_in(capsys):
    """Return a function that types a command: its exit status, and what it printed."""

    def run(command):
        try:
            status = main(command.split())
        except SystemExit as ended:
            status = ended.code
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return run


@pytest.fixture
def type_json(type_in):
    """Return a function that types a command with --json: what it printed, read."""

    def run(command):
        status, out, err = type_in(f"{command} --json")
        assert status == 0, err
        return json.loads(out)

    return run


@pytest.fixture
def fresh(monkeypatch, tmp_path):
    """Forget, after the test, all that it imported and registered."""
    specs, given = mlrl_envs.registry._specs, mlrl_envs.registry._given
    monkeypatch.setattr(mlrl_envs.registry, "_specs", dict(specs))
    monkeypatch.setattr(mlrl_envs.registry, "_given", dict(given))
    known = mlrl_learners.registry._registered
    monkeypatch.setattr(mlrl_learners.registry, "_registered", dict(known))
    modules, path = set(sys.modules), list(sys.path)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        file = vars(sys.modules[name]).get("__file__") or ""
        if file.startswith(str(tmp_path)):
            del sys.modules[name]
    importlib.invalidate_caches()


@pytest.fixture
def here(tmp_path, monkeypatch, fresh):
    """A folder of a new user with `me.py` and the modules of both templates."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "me.py").write_text(GUESS)
    shutil.copy(TEMPLATES / "learner" / "my_learner.py", tmp_path)
    shutil.copy(TEMPLATES / "env" / "my_env.py", tmp_path)
    return tmp_path
