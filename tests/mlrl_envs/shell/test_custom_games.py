"""Own rewards and formatters on games and other environments whose agents take turns."""

import pytest

import mlrl_envs
from mlrl_envs.errors import UnknownNameError
from mlrl_envs.games.questions import questions
from mlrl_envs.registration import BUILT_IN_GAMES
from mlrl_envs.shell.custom import OF_GAMES, OF_STEPS


def short(task, actions):
    """Pay short texts."""
    return {agent: 1.0 / (1 + len(text)) for agent, text in actions.items()}


def shout(text, agent):
    """Write what an agent reads in capitals."""
    return f"{agent}: {text.upper()}"


def test_a_game_keeps_its_turns():
    env = mlrl_envs.make("mlrl/kuhn-v0", reward_processors={"scale": 0.5})
    plain = mlrl_envs.make("mlrl/kuhn-v0")
    assert env.reset(seed=4) == plain.reset(seed=4)
    while plain.agents:
        actions = plain.reference_actions()
        assert env.acting == plain.acting
        of_plain = plain.step(actions)[1]
        assert env.step(actions)[1] == {agent: value / 2 for agent, value in of_plain.items()}


def test_a_game_keeps_its_scripts_legal_actions_and_figures():
    env = mlrl_envs.make("mlrl/nim-v0", reward_processors={"scale": 0.5})
    plain = mlrl_envs.make("mlrl/nim-v0")
    env.reset(seed=4), plain.reset(seed=4)
    assert env.scripts == plain.scripts
    while plain.agents:
        agent = plain.acting[0]
        assert env.legal_actions(agent) == plain.legal_actions(agent)
        actions = {agent: plain.scripted_action(agent, plain.scripts[-1])}
        assert {agent: env.scripted_action(agent, env.scripts[-1])} == actions
        env.step(actions), plain.step(actions)
    assert env.figures() == plain.figures()


def test_questions_of_a_game_are_asked_through_the_formatters():
    env = mlrl_envs.make("mlrl/kuhn-v0", formatters={"player_0": shout})
    plain = mlrl_envs.make("mlrl/kuhn-v0")
    for ours, theirs in zip(questions(env.family), questions(plain.family), strict=True):
        shown = theirs.prompt
        assert ours.prompt == (shout(shown, "player_0") if ours.agent == "player_0" else shown)


@pytest.mark.parametrize(
    "options",
    [
        {"reward": ["payof"]},
        {"reward_weights": {"payof": 2.0}},
        {"reward": [short, "payof"]},
    ],
)
def test_a_component_that_a_game_does_not_have_is_named_when_it_is_made(options):
    with pytest.raises(UnknownNameError, match="did you mean 'payoff'"):
        mlrl_envs.make("mlrl/kuhn-v0", **options)


def test_components_of_functions_of_a_game_have_weights():
    def parts(task, actions):
        return {agent: {"short": 0.25} for agent in actions}

    env = mlrl_envs.make("mlrl/kuhn-v0", reward=parts, reward_weights={"short": 2.0})
    env.reset(seed=0)
    (agent,) = env.acting
    assert env.step(env.reference_actions())[1][agent] == 0.5


@pytest.mark.parametrize("env_id", [*BUILT_IN_GAMES, *OF_STEPS])
def test_every_component_of_a_turn_taking_environment_may_be_named(env_id):
    env = mlrl_envs.make(env_id, **({"split": "sample"} if env_id in OF_STEPS else {}))
    known = set(OF_STEPS.get(env_id, OF_GAMES))
    for answers in (env.reference_actions, lambda: dict.fromkeys(env.acting, "none")):
        env.reset(seed=0)
        while env.agents:
            infos = env.step(answers())[4]
            assert all(set(info["components"]) <= known for info in infos.values())
