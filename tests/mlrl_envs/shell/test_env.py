import copy
import json
import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mlrl_envs
from mlrl_envs.errors import (
    InfraError,
    InvalidActionError,
    InvalidArgumentError,
    ResetNeededError,
    UnknownNameError,
)
from mlrl_envs.shell.runner import SharedSandbox

FAIR = {"setup": "A fox waits.", "story": "The fox waited for the snow to end."}


def test_reset_gives_every_agent_an_observation_and_an_info(story_env):
    observations, infos = story_env.reset(seed=0)
    assert list(observations) == list(infos) == story_env.agents == ["setup", "story"]
    assert infos["setup"] == {
        "task_id": infos["story"]["task_id"],
        "turn": 0,
        "acts": True,
        "components": {},
        "solved": False,
        "diagnostics": {},
    }


def test_the_same_seed_draws_the_same_tasks(story_env):
    def draws():
        first = story_env.reset(seed=4)[1]["story"]["task_id"]
        return [first, *(story_env.reset()[1]["story"]["task_id"] for _ in range(8))]

    assert draws() == draws()


def test_different_seeds_draw_different_tasks(story_env):
    assert len({story_env.reset(seed=s)[1]["story"]["task_id"] for s in range(30)}) > 3


def test_options_choose_the_task(story_env):
    by_index = story_env.reset(options={"task_index": 3})
    assert by_index == story_env.reset(options={"task_id": "story/train/3"})


def test_unknown_option_keys_are_ignored(story_env):
    assert story_env.reset(seed=0, options={"options": 1}) == story_env.reset(seed=0)


@pytest.mark.parametrize("index", [-1, 10, 10**9, "3", 1.0, True, None])
def test_senseless_task_index_is_refused(story_env, index):
    with pytest.raises(InvalidArgumentError, match="task_index must be"):
        story_env.reset(options={"task_index": index})


@pytest.mark.parametrize("options", [[1], "abc", 0, [("task_index", 1)]])
def test_options_that_are_no_mapping_are_refused(story_env, options):
    with pytest.raises(InvalidArgumentError) as caught:
        story_env.reset(options=options)
    assert str(caught.value) == f"options must be a mapping or None, got {options!r}"


def test_unknown_task_id_names_the_nearest(story_env):
    with pytest.raises(UnknownNameError, match=r"unknown task_id 'story/train/33'; did you mean"):
        story_env.reset(options={"task_id": "story/train/33"})


@pytest.mark.parametrize("env_id", ["mlrl/story-v1", "mlrl/hanabi-v0"])
@pytest.mark.parametrize(
    ("seed", "options"),
    [
        (5, {"task_index": 10**9}),
        (None, {"task_id": "?"}),
        (-1, None),
        (-1, {"task_index": 0}),
        (5, [1]),
        (5, "abc"),
        (5, 0),
    ],
)
def test_refused_reset_changes_nothing(env_id, seed, options):
    env = mlrl_envs.make(env_id)
    env.reset(seed=1)
    twin = copy.deepcopy(env)
    with pytest.raises((InvalidArgumentError, UnknownNameError)):
        env.reset(seed=seed, options=options)
    assert env.state() == twin.state()
    assert [env.reset() for _ in range(3)] == [twin.reset() for _ in range(3)]


def test_step_returns_five_dicts_and_ends_the_episode(story_env):
    story_env.reset(seed=0)
    result = story_env.step(FAIR)
    assert [set(column) for column in result] == [{"setup", "story"}] * 5
    _, rewards, terminations, truncations, infos = result
    assert terminations == {"setup": False, "story": False}
    assert truncations == {"setup": True, "story": True}
    assert rewards["story"] == pytest.approx(sum(infos["story"]["components"].values()))
    assert infos["story"]["turn"] == 1
    assert story_env.agents == []


def test_infos_are_json_and_the_callers_own(story_env):
    story_env.reset(seed=0)
    *_, infos = story_env.step(FAIR)
    text = json.dumps(infos)
    infos["story"]["diagnostics"]["checks"][0]["name"] = "changed"
    infos["story"]["components"].clear()
    assert json.dumps(story_env._infos()) == text


@pytest.mark.parametrize(
    ("actions", "message"),
    [
        ({}, "no action for agent 'setup'"),
        ({"setup": "x"}, "no action for agent 'story'"),
        ({**FAIR, "storry": "x"}, "unknown agent 'storry'; did you mean 'story'"),
        ({**FAIR, "story": None}, "must be a str, got NoneType"),
        ({**FAIR, "story": b"x"}, "must be a str, got bytes"),
        ([("setup", "x")], "must map agents to texts, got list"),
    ],
)
def test_bad_joint_action_is_refused_and_changes_nothing(story_env, actions, message):
    story_env.reset(seed=0)
    before = story_env.state()
    with pytest.raises(InvalidActionError, match=message):
        story_env.step(actions)
    assert story_env.state() == before
    assert story_env.agents


def test_step_outside_an_episode_asks_for_reset(story_env):
    with pytest.raises(ResetNeededError, match="call reset"):
        story_env.step(FAIR)
    story_env.reset(seed=0)
    story_env.step(FAIR)
    with pytest.raises(ResetNeededError, match="call reset"):
        story_env.step(FAIR)


def test_failing_sandbox_leaves_the_environment_as_it_was(code_env):
    class Broken:
        def run_many(self, programs):
            raise InfraError("no worker")

    reference = code_env.reference_actions()
    before, working, code_env.sandbox = code_env.state(), code_env.sandbox, Broken()
    with pytest.raises(InfraError):
        code_env.step(reference)
    assert code_env.state() == before
    code_env.sandbox = working
    assert code_env.step(reference)[2]["main"]


@settings(max_examples=40)
@given(st.text(st.characters(exclude_categories=())), st.text())
def test_any_text_can_be_played(setup, story):
    env = mlrl_envs.make("mlrl/story-v1", max_turns=2)
    env.reset(seed=0)
    observations, rewards, *_ = env.step({"setup": setup, "story": story})
    assert 0.0 <= rewards["setup"] <= 1.0
    assert env.observation_space("setup").contains(observations["setup"])


def test_huge_text_is_cut_where_it_is_quoted():
    env = mlrl_envs.make("mlrl/story-v1", max_turns=2)
    env.reset(seed=0)
    observations, *_ = env.step({"setup": "x" * 1_000_000, "story": "y"})
    assert len(observations["setup"]) < 6000
    assert "996000 characters left out" in observations["setup"]


def test_copy_shares_what_never_changes(code_env):
    clone = copy.deepcopy(code_env)
    assert clone.family is code_env.family
    assert clone.sandbox is code_env.sandbox
    assert clone.action_space("aux") is not code_env.action_space("aux")


def test_copy_goes_its_own_way(code_env):
    clone = copy.deepcopy(code_env)
    clone.step({"aux": "", "main": ""})
    assert len(clone.turns) == 1
    assert len(code_env.turns) == 0


def test_pickle_in_the_middle_steps_alike(fake_sandbox):
    env = mlrl_envs.make("mlrl/humaneval-v1", max_turns=3)
    env.reset(seed=2)
    env.sandbox = SharedSandbox()
    env.step({"aux": "", "main": ""})
    clone = pickle.loads(pickle.dumps(env))
    clone.sandbox = env.sandbox = fake_sandbox
    reference = env.reference_actions()
    assert clone.step(reference) == env.step(reference)
    assert clone.reset() == env.reset()


def test_str_subclass_actions_become_plain_texts(story_env):
    class Tagged(str):
        __slots__ = ()

    story_env.reset(seed=0)
    story_env.step({agent: Tagged(text) for agent, text in FAIR.items()})
    assert {type(text) for text in story_env.turns[0].actions.values()} == {str}


def test_state_holds_what_every_agent_reads(story_env):
    observations, _ = story_env.reset(seed=0)
    assert all(text in story_env.state() for text in observations.values())


def test_state_before_reset_asks_for_reset(story_env):
    with pytest.raises(ResetNeededError):
        story_env.state()


def test_render_returns_or_prints_a_transcript(capsys):
    for mode in ("ansi", "human"):
        env = mlrl_envs.make("mlrl/story-v1", render_mode=mode)
        env.reset(seed=0)
        env.step(FAIR)
        text = env.render()
        assert (text is None) == (mode == "human")
        text = text or capsys.readouterr().out
        assert "mlrl/story-v1" in text
        assert FAIR["story"] in text
        assert "earns] " in text


def test_render_without_a_mode_warns(story_env):
    story_env.reset(seed=0)
    with pytest.warns(UserWarning, match="render_mode"):
        assert story_env.render() is None


def test_close_can_be_called_twice(story_env):
    story_env.close()
    story_env.close()


def test_unknown_agent_has_no_space(story_env):
    with pytest.raises(UnknownNameError, match="unknown agent 'stori'; did you mean 'story'"):
        story_env.action_space("stori")


def test_name_is_the_id(story_env):
    assert str(story_env) == story_env.metadata["name"] == "mlrl/story-v1"


def test_setting_max_cycles_has_no_effect(story_env):
    story_env.max_cycles = 50
    story_env.reset(seed=0)
    story_env.step(FAIR)
    assert story_env.agents == []


@pytest.mark.parametrize("seed", [-1, 1.5, "7", True])
def test_senseless_seed_is_refused(story_env, seed):
    with pytest.raises(InvalidArgumentError, match="seed must be an int of at least 0"):
        story_env.reset(seed=seed)


def test_limits_beside_a_sandbox_are_refused(fake_sandbox):
    from mlrl_envs.sandbox import Limits

    with pytest.raises(InvalidArgumentError, match="limits to the sandbox"):
        mlrl_envs.make("mlrl/story-v1", sandbox=fake_sandbox, limits=Limits())


def test_copies_draw_the_tasks_that_each_would_draw_alone():
    def draws(env):
        return [env.reset()[1] for _ in range(3)]

    env = mlrl_envs.make("mlrl/math-v2")
    env.reset(seed=3)
    expected = draws(pickle.loads(pickle.dumps(env)))
    first, second = copy.deepcopy(env), copy.deepcopy(env)
    third = copy.deepcopy(first)
    assert draws(second) == expected  # in any order, also of copies of copies
    assert draws(env) == expected
    assert draws(third) == expected
    assert draws(first) == expected
    assert draws(second) != expected


def test_a_generator_that_is_read_belongs_to_its_environment():
    env = mlrl_envs.make("mlrl/math-v2")
    env.reset(seed=3)
    clone = copy.deepcopy(env)
    before = clone.np_random.bit_generator.state
    env.np_random.integers(10)
    assert clone.np_random.bit_generator.state == before
    assert copy.deepcopy(mlrl_envs.make("mlrl/math-v2")).np_random is None
