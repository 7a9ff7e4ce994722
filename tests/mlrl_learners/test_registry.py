import importlib.metadata
import subprocess
import sys
from pathlib import Path

import pytest

import mlrl_learners
from mlrl_learners.errors import ConfigError, UnknownNameError
from mlrl_learners.registry import _REGISTRY, LearnerSpec, _Registry, describe


class Echo:
    def __init__(self, agents, model=None, *, gain=1.0):
        self.agents, self.model, self.gain = agents, model, gain


@pytest.fixture(autouse=True)
def _leave_the_registry_as_it_was(monkeypatch):
    monkeypatch.setattr(_REGISTRY, "_registered", dict(_REGISTRY._registered))


@pytest.fixture
def echo():
    mlrl_learners.register("echo-test", Echo, summary="repeats", replace=True)
    return "echo-test"


def test_make_hands_agents_model_and_options_to_the_factory(echo):
    learner = mlrl_learners.make(echo, agents=["a", "b"], model="m", gain=2.0)
    assert (learner.agents, learner.model, learner.gain) == (("a", "b"), "m", 2.0)


def test_a_factory_without_models_is_not_given_one():
    mlrl_learners.register("plain-test", lambda *, agents: agents, replace=True)
    assert mlrl_learners.make("plain-test", agents=["a"]) == ("a",)


def test_one_agent_is_named_in_a_list(echo):
    with pytest.raises(ConfigError, match=r"agents must be a list of names, such as \['setup'\]"):
        mlrl_learners.make(echo, agents="setup")


def test_an_unknown_learner_is_named_with_the_nearest_one():
    with pytest.raises(UnknownNameError, match=r"'magrop'.*'magrpo'"):
        mlrl_learners.make("magrop", agents=["a"])


def test_an_unknown_option_is_named_with_the_nearest_one(echo):
    with pytest.raises(UnknownNameError, match=r"option 'gian'.*'gain'"):
        mlrl_learners.make(echo, agents=["a"], gian=1)


def test_a_factory_that_takes_a_seed_is_given_it():
    mlrl_learners.register("seeded-test", lambda *, agents, seed: seed, replace=True)
    assert mlrl_learners.make("seeded-test", agents=["a"], seed=7) == 7


def test_a_taken_name_is_replaced_only_when_asked(echo):
    mlrl_learners.register(echo, Echo)
    with pytest.raises(ConfigError, match="replace=True"):
        mlrl_learners.register(echo, "other:factory")
    mlrl_learners.register(echo, "other:factory", replace=True)
    assert mlrl_learners.registry[echo].factory == "other:factory"


@pytest.mark.parametrize("factory", ["module", "module:", ":function", ""])
def test_a_factory_must_name_module_and_function(factory):
    with pytest.raises(ConfigError, match="module:function"):
        mlrl_learners.register("x", factory)


@pytest.mark.parametrize("factory", ["no_such_module_at_all:f", "json:no_such_function"])
def test_a_factory_that_cannot_be_imported_is_one_clear_line(factory):
    mlrl_learners.register("broken-test", factory, replace=True)
    with pytest.raises(ConfigError, match=r"broken-test.*no_such") as caught:
        mlrl_learners.make("broken-test", agents=["a"])
    assert "\n" not in str(caught.value)


def test_entry_points_are_listed_but_never_win_over_a_registered_name(monkeypatch):
    points = [
        importlib.metadata.EntryPoint("theirs", "pkg:make", "mlrl.learners"),
        importlib.metadata.EntryPoint("ours", "pkg:make", "mlrl.learners"),
    ]
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: points)
    fresh = _Registry()
    fresh.add(LearnerSpec("ours", "mine:make"))
    assert {name: fresh[name].factory for name in fresh} == {
        "theirs": "pkg:make",
        "ours": "mine:make",
    }


def test_listing_learners_loads_no_torch():
    script = (
        "import mlrl_learners, sys; list(mlrl_learners.registry);"
        "print([m for m in ('torch', 'transformers', 'wandb') if m in sys.modules])"
    )
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[]"


def test_a_learner_is_described_as_it_was_made(echo):
    learner = mlrl_learners.make(echo, agents=["a"], model=Path("m"), gain=2.0)
    assert describe(learner) == {"name": echo, "model": "m", "options": {"gain": 2.0}}
    in_memory = mlrl_learners.make(echo, agents=["a"], model=(1, 2))
    assert describe(in_memory)["model"] == "a tuple in memory"
    assert describe(Echo(["a"])) == {"name": f"{__name__}:Echo"}
