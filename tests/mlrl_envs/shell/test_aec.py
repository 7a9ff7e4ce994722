import numpy as np
import pytest

import mlrl_envs
from mlrl_envs.errors import InfraError, InvalidActionError, InvalidArgumentError
from mlrl_envs.shell.aec import TextObservation


@pytest.fixture
def aec():
    view = mlrl_envs.to_aec(mlrl_envs.make("mlrl/story-v1", max_turns=2))
    view.reset(seed=0)
    return view


def test_observations_are_texts_with_a_dtype(aec):
    observation, *_ = aec.last()
    assert isinstance(observation, str)
    assert type(observation) is TextObservation
    assert observation.dtype == np.dtype(str) == aec.observation_space("setup").dtype


def test_agents_act_in_turn_and_are_scored_together(aec, story_env):
    texts = {"setup": "A fox waits.", "story": "A fox waited for the snow to end."}
    assert aec.agent_selection == "setup"
    aec.step(texts["setup"])
    assert set(aec.rewards.values()) == {0}
    aec.step(texts["story"])
    story_env.reset(seed=0)
    assert aec.rewards == story_env.step(texts)[1]


def test_turns_keep_their_own_actions(aec):
    for number in range(4):
        aec.step(f"text {number}")
    actions = [dict(turn.actions) for turn in aec.unwrapped.turns]
    assert actions == [
        {"setup": "text 0", "story": "text 1"},
        {"setup": "text 2", "story": "text 3"},
    ]


def test_view_keeps_its_own_actions_where_the_environment_keeps_the_dict():
    seen = []

    class Keeps(mlrl_envs.TextParallelEnv):
        def step(self, actions):
            seen.append(actions)
            return super().step(actions)

    family = mlrl_envs.make("mlrl/story-v1", max_turns=2).family
    view = mlrl_envs.to_aec(Keeps(family, env_id="test/keeps-v0"))
    view.reset(seed=0)
    for number in range(4):
        view.step(str(number))
    assert seen == [{"setup": "0", "story": "1"}, {"setup": "2", "story": "3"}]


def test_state_and_name_are_those_of_the_environment(aec):
    assert aec.state() == aec.unwrapped.state()
    assert str(aec) == "mlrl/story-v1"


def test_refused_reset_changes_nothing(aec):
    aec.step("A fox waits.")
    selected, shown = aec.agent_selection, aec.last()
    with pytest.raises(InvalidArgumentError):
        aec.reset(seed=3, options={"task_index": 10**9})
    assert (aec.agent_selection, aec.last()) == (selected, shown)
    aec.step("The fox waited.")
    assert aec.unwrapped.turns[0].actions == {"setup": "A fox waits.", "story": "The fox waited."}


def shown(view):
    """Return what a caller sees of a view."""
    names = ("agent_selection", "rewards", "terminations", "truncations", "infos")
    return [view.last(), view.unwrapped.turns, *(dict(vars(view.env))[name] for name in names)]


@pytest.mark.parametrize("action", [3, None, b"fine", ["fine"]])
def test_refused_action_changes_nothing(aec, action):
    for text in ("A fox waits.", "The fox waited.", "A fox runs."):
        before = shown(aec)
        with pytest.raises(InvalidActionError, match=f"the action of '{aec.agent_selection}' must"):
            aec.step(action)
        assert shown(aec) == before
        aec.step(text)
    turn, *_ = aec.unwrapped.turns
    assert turn.actions == {"setup": "A fox waits.", "story": "The fox waited."}


def test_a_turn_that_fails_changes_nothing_and_can_be_repeated():
    class Fails(mlrl_envs.TextParallelEnv):
        fails = False

        def step(self, actions):
            if self.fails:
                raise InfraError("no worker")
            observations, rewards, *rest = super().step(actions)
            return observations, dict.fromkeys(rewards, 0.5), *rest

    env = Fails(mlrl_envs.make("mlrl/story-v1", max_turns=2).family, env_id="test/fails-v0")
    view = mlrl_envs.to_aec(env)
    view.reset(seed=0)
    for text in ("A fox waits.", "The fox waited.", "A fox runs."):
        view.step(text)
    before, env.fails = shown(view), True
    assert view.last()[1] == 0.5
    with pytest.raises(InfraError):
        view.step("The fox ran.")
    assert shown(view) == before
    env.fails = False
    view.step("The fox ran.")
    assert len(env.turns) == 2


def test_refused_first_reset_begins_nothing():
    view = mlrl_envs.to_aec(mlrl_envs.make("mlrl/story-v1"))
    with pytest.raises(InvalidArgumentError):
        view.reset(options={"task_index": 10**9})
    with pytest.raises(AssertionError, match="reset"):
        view.step("A fox waits.")
