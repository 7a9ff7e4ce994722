import pytest

import mlrl_envs
from mlrl_envs.errors import InfraError, UnknownNameError
from mlrl_learners.actors import RandomActor, ReferenceActor
from mlrl_learners.errors import ConfigError
from mlrl_learners.interop import SingleAgentView
from mlrl_learners.testing import ScriptedActor


def right_answer(agent, text):
    return str(int(text) + 1)


@pytest.fixture
def view(addition_env):
    return SingleAgentView(addition_env, agent="left", teammates=ScriptedActor(right_answer))


def test_a_row_is_a_message_of_what_the_agent_reads(view):
    rows = view.rows()
    assert [row["task_index"] for row in rows] == [0, 1, 2, 3]
    assert rows[2]["prompt"] == [{"role": "user", "content": "2"}]


def test_a_completion_earns_what_the_agent_earns_in_its_task(view):
    rewards = view.reward(
        prompts=["?"] * 4,
        completions=["1", [{"role": "assistant", "content": "4"}], "1", [{"content": None}]],
        task_index=[0, 3, 3, 0],
        completion_ids=[],
        trainer_state=None,
    )
    assert rewards == [1.0, 1.0, 0.0, 0.0]


def test_rewards_are_those_of_the_environment():
    view = SingleAgentView("mlrl/story-v1", agent="story", teammates=ScriptedActor(fox), seed=5)
    texts = ["The fox waited.", "", "A fox waited in the snow for a ferryman all night long."]
    found = view.reward(prompts=[], completions=texts, task_index=[1, 1, 7])
    env = mlrl_envs.make("mlrl/story-v1")
    for text, index, reward in zip(texts, [1, 1, 7], found, strict=True):
        env.reset(seed=5, options={"task_index": index})
        assert reward == env.step({"setup": fox(), "story": text})[1]["story"]


def fox(*_):
    return "A fox waits in the snow for the ferryman."


def test_teammates_may_look_at_the_environment(addition_env):
    view = SingleAgentView(addition_env, agent="left", teammates=ReferenceActor())
    assert view.reward(prompts=[], completions=["1"], task_index=[0]) == [1.0]


def test_an_environment_of_one_agent_needs_no_more_words():
    view = SingleAgentView("mlrl/humaneval-v1", split="sample", num_aux=0)
    assert view.agent == "main"
    env = mlrl_envs.make("mlrl/humaneval-v1", split="sample", num_aux=0)
    env.reset(options={"task_index": 1})
    right = env.reference_actions()["main"]
    rewards = view.reward(prompts=[], completions=[right, "no"], task_index=[1, 1])
    assert rewards[0] > 0.9 > 0.1 > rewards[1]


def test_what_is_missing_is_said(addition_env):
    with pytest.raises(ConfigError, match="left, right: say which one learns"):
        SingleAgentView(addition_env)
    with pytest.raises(UnknownNameError, match="'left'"):
        SingleAgentView(addition_env, agent="lft", teammates=RandomActor())


def test_broken_infrastructure_is_raised_and_never_a_reward(addition_env):
    teammates = ScriptedActor(right_answer)
    view = SingleAgentView(addition_env, agent="left", teammates=teammates, broken=True)
    with pytest.raises(InfraError):
        view.reward(prompts=[], completions=["4"], task_index=[3])


def test_rows_become_a_dataset(view):
    pytest.importorskip("datasets")
    assert view.dataset().to_list() == view.rows()
