"""Games as environments: turns, seeds, copies, and actions nobody asked for."""

import copy
import pickle

import pytest

import mlrl_envs
from mlrl_envs.errors import (
    InvalidActionError,
    InvalidArgumentError,
    ResetNeededError,
    UnknownNameError,
)
from mlrl_envs.registration import BUILT_IN_GAMES


@pytest.fixture(params=BUILT_IN_GAMES)
def env(request):
    return mlrl_envs.make(request.param, split="sample")


def _actions(env, script="random", seed=0):
    return {agent: env.scripted_action(agent, script, seed=seed) for agent in env.acting}


def _play(env, script="random", seed=0):
    results = []
    while env.agents:
        results.append(env.step(_actions(env, script, seed)))
    return results


def test_legal_actions_of_an_agent_that_does_not_exist_are_an_error(env):
    env.reset(seed=0)
    with pytest.raises(UnknownNameError, match="unknown agent 'bob'"):
        env.legal_actions("bob")


def test_legal_actions_are_those_of_agents_that_act(env):
    env.reset(seed=0)
    while env.agents:
        for agent in env.possible_agents:
            assert bool(env.legal_actions(agent)) == (agent in env.acting)
        env.step({agent: env.legal_actions(agent)[0] for agent in env.acting})
    assert not any(env.legal_actions(agent) for agent in env.possible_agents)


def test_scripts_play_for_agents_that_act_alone(env):
    env.reset(seed=0)
    while env.agents:
        for agent in set(env.possible_agents) - set(env.acting):
            with pytest.raises(InvalidArgumentError, match=env.acting[0]):
                env.scripted_action(agent, "random")
        env.step(_actions(env))
    with pytest.raises(InvalidArgumentError, match="over"):
        env.scripted_action(env.possible_agents[0], "random")


def test_returns_are_sums_of_rewards_also_of_agents_that_wait(env):
    for seed in range(5):
        env.reset(seed=seed)
        results = _play(env, seed=seed)
        returns = env.family.game.returns(env.family.position(env.task, env.turns).state)
        for agent in env.possible_agents:
            total = sum(rewards.get(agent, 0.0) for _, rewards, *_ in results)
            assert total == pytest.approx(returns[agent], abs=1e-9)


def test_copies_and_pickles_in_every_turn_go_on_alike(env):
    env.reset(seed=3)
    while env.agents:
        twins = [copy.deepcopy(env), pickle.loads(pickle.dumps(env))]
        results = [_play(twin, seed=5) for twin in twins]
        assert results[0] == results[1]
        env.step(_actions(env, seed=5))
        assert env.turns == twins[0].turns[: len(env.turns)]


def test_same_task_is_the_same_game_in_any_environment(env):
    other = copy.deepcopy(env)
    first = env.reset(seed=0, options={"task_index": 2})
    other.reset(seed=9)
    assert other.reset(options={"task_index": 2}) == first


def test_moves_for_somebody_else_are_ignored_and_missing_ones_refused(env):
    env.reset(seed=0)
    twin = copy.deepcopy(env)
    actions = _actions(env)
    waiting = dict.fromkeys(set(env.agents) - set(env.acting), "<move>bet</move>")
    assert twin.step({**waiting, **actions}) == env.step(actions)
    if env.agents:
        with pytest.raises(InvalidActionError):
            env.step({})
    _play(env)
    with pytest.raises(ResetNeededError):
        env.step(actions)


def test_unknown_names_are_one_line(env):
    env.reset(seed=0)
    with pytest.raises(UnknownNameError, match="script"):
        env.scripted_action(env.acting[0], "cheat")
    with pytest.raises(UnknownNameError, match="option"):
        type(env.family).make_env(player=3)


def test_figures_are_numbers(env):
    env.reset(seed=0)
    _play(env)
    assert all(isinstance(value, int | float) for value in env.figures().values())


def test_limit_truncates_unless_the_game_is_over():
    env = mlrl_envs.make("mlrl/tictactoe-v0", max_turns=3)
    env.reset(seed=0)
    *_, terminations, truncations, _ = _play(env)[-1]
    assert set(truncations.values()) == {True}
    assert set(terminations.values()) == {False}
    env = mlrl_envs.make("mlrl/kuhn-v0", max_turns=2)
    env.reset(seed=0)
    env.step({"player_0": "bet"})
    *_, terminations, truncations, _ = env.step({"player_1": "fold"})
    assert set(terminations.values()) == {True}
    assert set(truncations.values()) == {False}


def test_agents_do_not_read_what_is_hidden():
    for env_id in ("mlrl/kuhn-v0", "mlrl/liars-dice-v0"):
        env = mlrl_envs.make(env_id)
        starts = {}
        for index in range(200):
            observations, infos = env.reset(options={"task_index": index})
            state = env.family.position(env.task, ()).state
            own = state.cards[0] if env_id == "mlrl/kuhn-v0" else state.dice[0]
            starts.setdefault(own, set()).add(observations["player_0"])
            assert infos["player_0"]["diagnostics"] == {}
        assert all(len(texts) == 1 for texts in starts.values())
