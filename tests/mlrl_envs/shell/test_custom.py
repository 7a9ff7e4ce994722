"""Own rewards, weights, processors and formatters, on any environment."""

import math
from functools import partial

import numpy as np
import pytest

import mlrl_envs
from mlrl_envs.errors import ContractError, InvalidArgumentError, UnknownNameError

STORY = "mlrl/story-v1"
HERE = "tests_custom_rewards"


def brevity(task, actions):
    """Pay short texts."""
    return {agent: 1.0 / (1 + len(text)) for agent, text in actions.items()}


def prompted(task, actions):
    """Pay a word of the task."""
    return float(task.prompt.split()[0] in " ".join(actions.values()))


def shout(text, agent):
    """Write what an agent reads in capitals."""
    return f"{agent}: {text.upper()}"


@pytest.fixture(autouse=True)
def module(monkeypatch):
    """Let `"module:function"` name the functions of this file."""
    import sys
    import types

    found = types.ModuleType(HERE)
    vars(found).update(brevity=brevity, prompted=prompted, shout=shout, length=length, number=3)
    monkeypatch.setitem(sys.modules, HERE, found)


def step(texts=("a", "bb"), **options):
    """Return rewards and infos of one step of a story."""
    env = mlrl_envs.make(STORY, **options)
    env.reset(seed=0)
    _, rewards, *_, infos = env.step(dict(zip(env.agents, texts, strict=True)))
    return rewards, infos


@pytest.mark.parametrize("reward", [brevity, f"{HERE}:brevity"], ids=["function", "name"])
def test_a_function_replaces_the_reward(reward):
    rewards, infos = step(reward=reward)
    assert rewards == {"setup": 1 / 2, "story": 1 / 3}
    assert infos["story"]["components"] == {"brevity": 1 / 3}


def test_one_number_is_the_reward_of_all_agents():
    rewards, _ = step(("Describe", ""), reward=prompted)
    assert set(rewards) == {"setup", "story"}
    assert len(set(rewards.values())) == 1


def test_weights_scale_components_and_add_functions():
    _, plain = step(reward="paper")
    _, infos = step(reward="paper", reward_weights={f"{HERE}:brevity": 2.0})
    for agent, info in infos.items():
        own = info["components"].pop("brevity")
        assert own == pytest.approx(2.0 * brevity(None, {"setup": "a", "story": "bb"})[agent])
        assert info["components"] == plain[agent]["components"]
    name = next(iter(plain["setup"]["components"]))
    _, halved = step(reward="paper", reward_weights={name: 0.5})
    assert halved["setup"]["components"][name] == 0.5 * plain["setup"]["components"][name]


@pytest.mark.parametrize(
    ("chain", "expected"),
    [
        ([{"scale": 2}, {"shift": -1}], 0.0),
        ([{"shift": -1}, {"scale": 2}], -1.0),
        ({"clamp": [0.6, 0.7]}, 0.6),
        ("sigmoid", 1 / (1 + math.exp(-0.5))),
        (["identity"], 0.5),
    ],
)
def test_processors_apply_in_order_and_components_still_sum(chain, expected):
    rewards, infos = step(reward=brevity, reward_processors=chain, reward_range=[0, 1])
    assert rewards["setup"] == pytest.approx(expected)
    assert sum(infos["setup"]["components"].values()) == pytest.approx(expected)


def test_the_range_follows_from_processors():
    env = mlrl_envs.make(STORY, reward_processors=[{"scale": -2}, {"shift": 1}])
    assert env.reward_range == (-1.0, 1.0)
    env = mlrl_envs.make(STORY, reward=brevity, reward_processors="sigmoid")
    assert env.reward_range == (0.0, 1.0)


def test_formatters_change_what_an_agent_reads():
    env = mlrl_envs.make(STORY, formatters={"setup": "Team {agent}!\n{task}", "story": shout})
    plain = mlrl_envs.make(STORY)
    shown, _ = env.reset(seed=0)
    before, _ = plain.reset(seed=0)
    assert shown["setup"] == f"Team setup!\n{before['setup']}"
    assert shown["story"] == f"story: {before['story'].upper()}"


@pytest.mark.parametrize(
    "options",
    [
        {"reward": prompted, "max_turns": 3},
        {"reward_weights": {"length": 0.5}, "reward_processors": [{"scale": 0.5}], "max_turns": 3},
        {"formatters": {"setup": shout}, "workflow": "reflection", "max_turns": 2},
    ],
    ids=["function", "weights", "workflow"],
)
def test_keeps_our_contract(options):
    mlrl_envs.check_env(lambda: mlrl_envs.make(STORY, split="sample", **options))


def test_gains_of_later_turns_are_those_of_the_environment():
    options = {"split": "sample", "max_turns": 3}
    plain = mlrl_envs.make("mlrl/math-v2", **options)
    scaled = mlrl_envs.make("mlrl/math-v2", reward_processors={"scale": 2}, **options)
    for env in (plain, scaled):
        env.reset(seed=0)
    right = plain.reference_actions()
    for actions in ({**right, "verifier": "?"}, right):
        before, after = plain.step(actions)[1], scaled.step(actions)[1]
        assert after == pytest.approx({agent: 2 * value for agent, value in before.items()})


def test_fingerprints_tell_functions_weights_and_formatters_apart():
    changes = [
        {},
        {"reward": brevity},
        {"reward": prompted},
        {"reward_weights": {"length": 2.0}},
        {"reward_processors": "sigmoid"},
        {"formatters": {"setup": "{task}!"}},
    ]
    found = [mlrl_envs.fingerprint(mlrl_envs.make(STORY, **each))["scorer"] for each in changes]
    assert len(set(found)) == len(changes)
    assert mlrl_envs.fingerprint(mlrl_envs.make(STORY, reward=brevity))["scorer"] == found[1]


MISTAKES = {
    "a name that cannot be imported": ({"reward": "nowhere:brevity"}, "cannot be imported"),
    "a name that is no function": ({"reward": f"{HERE}:number"}, "is not a function"),
    "an unknown processor": ({"reward_processors": "sigmoit"}, "did you mean 'sigmoid'"),
    "an argument too many": ({"reward_processors": {"scale": [1, 2]}}, "scale takes 1 number, got"),
    "a bound that is no number": ({"reward_processors": {"clamp": [0, "1"]}}, "finite number"),
    "bounds in the wrong order": ({"reward_processors": {"clamp": [1, 0]}}, "low and high"),
    "a processor of another kind": ({"reward_processors": 3}, "a name or a mapping"),
    "a weight that is no number": ({"reward_weights": {"length": "2"}}, "weight of length"),
    "weights of another kind": ({"reward_weights": [1]}, "must be a mapping"),
    "a range of one number": ({"reward_range": [1]}, r"must be \[low, high\]"),
    "an unknown agent": ({"formatters": {"setpu": "{task}"}}, "did you mean 'setup'"),
    "a conversion": ({"formatters": {"setup": "{task!r}"}}, r"formats 'task': write {task}"),
    "several processors without a list": (
        {"reward_processors": {"scale": 2, "shift": 1}},
        r"several are a list such as \[sigmoid, {scale: 2}\]",
    ),
    "two rewards of one name": ({"reward": [brevity, f"{HERE}:brevity"]}, "two rewards are named"),
    "no rewards": ({"reward": []}, "must be a function, or a list"),
    "an unknown field": ({"formatters": {"setup": "{tsk}"}}, "did you mean 'task'"),
    "an attribute": ({"formatters": {"setup": "{task.__class__}"}}, "unknown field"),
    "a text without a field": ({"formatters": {"setup": "hello"}}, "must be a function"),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_a_mistake_is_one_line(case):
    options, message = MISTAKES[case]
    with pytest.raises(InvalidArgumentError, match=message) as caught:
        mlrl_envs.make(STORY, **options)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("reward", "error", "message"),
    [
        (lambda task, actions: 1 / 0, ContractError, "fails on task .*ZeroDivisionError"),
        (lambda task, actions: None, InvalidArgumentError, "finite number, got None"),
        (lambda task, actions: math.nan, InvalidArgumentError, "finite number, got nan"),
        (lambda task, actions: {"stroy": 1.0}, UnknownNameError, "did you mean 'story'"),
        (lambda task, actions: 1e9, ContractError, "pass reward_range"),
    ],
)
def test_a_reward_that_is_none_is_named_and_the_episode_stays(reward, error, message):
    env = mlrl_envs.make(STORY, reward=reward)
    env.reset(seed=0)
    with pytest.raises(error, match=message):
        env.step(dict.fromkeys(env.agents, "x"))
    assert env.turns == ()


class Scaled:
    """A reward with a state."""

    def __init__(self, factor):
        self.factor = factor

    def __call__(self, task, actions):
        return self.factor


def constant(value):
    """Return a function that remembers a value."""
    return lambda task, actions: value


def test_components_by_name_are_returned_or_chosen():
    def parts(task, actions):
        return {agent: {"short": 0.25, "kind": 0.5} for agent in actions}

    rewards, infos = step(reward=parts, reward_weights={"kind": 2.0})
    assert infos["story"]["components"] == {"short": 0.25, "kind": 1.0}
    assert rewards["story"] == 1.25
    _, plain = step()
    _, infos = step(reward=["length", brevity])
    expected = {"length": plain["story"]["components"]["length"], "brevity": 1 / 3}
    assert infos["story"]["components"] == expected


def length(task, actions):
    """Pay nothing, under the name of a component of stories."""
    return 0.0


def short(task, actions):
    """Pay a component that is named as another function."""
    return {agent: {"brevity": 1.0} for agent in actions}


@pytest.mark.parametrize(
    "options",
    [
        {"reward": [brevity, short]},
        {"reward": ["length", length]},
        {"reward_weights": {f"{HERE}:length": 1.0}},
        {"reward": lambda task, actions: {agent: {"processed": 1.0} for agent in actions},
         "reward_processors": {"scale": 2}},
    ],
)  # fmt: skip
def test_two_rewards_with_one_name_are_refused(options):
    with pytest.raises(ContractError, match="as another reward has: rename it"):
        step(**options)


@pytest.mark.parametrize("options", [{"reward_weights": {"lenght": 0.0}}, {"reward": ["lenght"]}])
def test_a_component_that_does_not_exist_is_named(options):
    with pytest.raises(UnknownNameError, match="did you mean 'length'"):
        step(**options)


def test_numbers_of_numpy_are_numbers():
    rewards, _ = step(reward=lambda task, actions: np.float32(0.5))
    assert rewards == {"setup": 0.5, "story": 0.5}
    assert type(rewards["story"]) is float


def test_functions_of_a_file_are_imported(tmp_path):
    (tmp_path / "own_rewards.py").write_text("def one(task, actions):\n    return 1.0\n")
    rewards, _ = step(reward=f"{tmp_path}/own_rewards.py:one")
    assert rewards["story"] == 1.0


def test_a_formatter_that_fails_is_one_line():
    env = mlrl_envs.make(STORY, formatters={"story": lambda text: text})
    with pytest.raises(ContractError, match="formatter of 'story' fails: TypeError"):
        env.reset(seed=0)


def scorer(reward):
    """Return the hash of the scorer of an environment with a reward."""
    return mlrl_envs.fingerprint(mlrl_envs.make(STORY, reward=reward))["scorer"]


@pytest.mark.parametrize("made", [constant, Scaled, lambda value: partial(brevity, actions=value)])
def test_fingerprints_cover_the_values_that_a_function_remembers(made):
    assert scorer(made(1.0)) == scorer(made(1.0))  # no address of an object
    assert scorer(made(1.0)) != scorer(made(2.0))
