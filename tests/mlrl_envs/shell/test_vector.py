import copy

import pytest

import mlrl_envs
from mlrl_envs.errors import InvalidActionError, InvalidArgumentError
from mlrl_envs.registration import BUILT_IN, BUILT_IN_TASKS

TEXTS = {"setup": "A fox waits.", "story": "The fox waited for the snow."}


@pytest.fixture
def vec():
    return mlrl_envs.make_vec("mlrl/story-v1", num_envs=3)


def test_int_seed_gives_each_environment_its_own(vec, story_env):
    observations, infos = vec.reset(seed=7)
    for index in range(3):
        assert (observations[index], infos[index]) == story_env.reset(seed=7 + index)


def test_seeds_and_options_may_be_lists(vec):
    _, infos = vec.reset(seed=[1, None, 1], options=[{"task_index": 2}, None, {"task_index": 4}])
    assert infos[0]["setup"]["task_id"] == "story/train/2"
    assert infos[2]["setup"]["task_id"] == "story/train/4"


def test_one_mapping_of_options_serves_all(vec):
    _, infos = vec.reset(options={"task_index": 5})
    assert {info["story"]["task_id"] for info in infos} == {"story/train/5"}


@pytest.mark.parametrize("name", ["seed", "options"])
def test_lists_of_the_wrong_length_are_refused(vec, name):
    with pytest.raises(InvalidArgumentError, match=f"{name} must have 3 entries"):
        vec.reset(**{name: [None]})


@pytest.mark.parametrize("seed", [True, -1, 1.5, "abc", [0, True, 1]])
def test_senseless_seeds_are_refused(vec, seed):
    with pytest.raises(InvalidArgumentError, match="seed must be an int of at least 0"):
        vec.reset(seed=seed)


@pytest.mark.parametrize("options", ["abc", 5, [None, None, "abc"], [[1]] * 3])
def test_options_that_are_no_mappings_are_refused(vec, options):
    with pytest.raises(InvalidArgumentError, match="options must be a mapping or None, got"):
        vec.reset(options=options)


def test_actions_that_are_no_list_are_refused_and_change_nothing(vec):
    vec.reset(seed=3)
    for actions in (None, ({} for _ in range(3)), "abc", dict.fromkeys(range(3), TEXTS)):
        with pytest.raises(InvalidArgumentError, match="actions must be a list with one entry"):
            vec.step(actions)
    with pytest.raises(InvalidActionError, match="must map agents to texts, got NoneType"):
        vec.step([TEXTS, TEXTS, None])
    assert all(not env.turns for env in vec.envs)


def test_refused_seeds_change_nothing(vec):
    vec.reset(seed=3)
    twins = copy.deepcopy(vec.envs)
    with pytest.raises(InvalidArgumentError, match="seed must be"):
        vec.reset(seed=[1, 2, -1])
    assert [env.reset() for env in vec.envs] == [twin.reset() for twin in twins]


def test_step_equals_single_environments(vec, story_env):
    vec.reset(seed=3)
    columns = vec.step([TEXTS] * 3)
    for index in range(3):
        story_env.reset(seed=3 + index)
        assert tuple(column[index] for column in columns) == story_env.step(TEXTS)
    assert vec.agents == [[], [], []]


def test_ended_environments_wait_with_empty_actions(fake_sandbox):
    vec = mlrl_envs.make_vec(
        "mlrl/humaneval-v1", num_envs=2, sandbox=fake_sandbox, split="all", max_turns=2
    )
    vec.reset(options={"task_index": 0})
    vec.step([vec.envs[0].reference_actions(), {"aux": "", "main": ""}])
    assert vec.agents == [[], ["aux", "main"]]
    observations, rewards, *_ = vec.step([{}, {"aux": "", "main": ""}])
    assert observations[0] == rewards[0] == {}
    assert rewards[1] == {"aux": 0.0, "main": 0.0}


def test_batch_runs_in_the_sandbox_at_once(fake_sandbox):
    vec = mlrl_envs.make_vec("mlrl/humaneval-v1", 4, sandbox=fake_sandbox, num_aux=0)
    vec.reset(seed=0)
    vec.step([env.reference_actions() for env in vec.envs])
    assert fake_sandbox.batches[0] == 4


@pytest.mark.parametrize("num_envs", [0, -1, 1.5, "3", True])
def test_senseless_number_of_environments_is_refused(num_envs):
    with pytest.raises(InvalidArgumentError, match="num_envs must be"):
        mlrl_envs.make_vec("mlrl/story-v1", num_envs=num_envs)


def test_close_closes_all(vec):
    vec.close()
    vec.close()


def test_possible_agents_are_those_of_each(vec):
    assert vec.possible_agents == ["setup", "story"]
    assert vec.num_envs == 3


HOSTILE = "```python\nimport os\nos._exit(0)\n```"


def _joint_actions(env, number):
    """A right joint action, nothing, something hostile and something huge, in turn."""
    texts = ("", HOSTILE, "\0\ud800 (" * 20_000)
    reference = env.reference_actions()
    if number % 4 == 0 and reference is not None:
        return reference
    return dict.fromkeys(env.possible_agents, texts[number % 3])


@pytest.mark.parametrize("env_id", BUILT_IN)
def test_sixty_four_copies_earn_what_each_earns_alone(env_id):
    vec = mlrl_envs.make_vec(env_id, num_envs=64, split="sample")
    vec.reset(seed=0)
    actions = [_joint_actions(env, number) for number, env in enumerate(vec.envs)]
    alone = [
        copy.deepcopy(env).step(each) for env, each in zip(vec.envs[:12], actions[:12], strict=True)
    ]
    together = vec.step(actions)
    assert [tuple(part[number] for part in together) for number in range(12)] == alone
    solvable = env_id in BUILT_IN_TASKS  # a game takes several turns
    solved = [any(info["solved"] for info in infos.values()) for infos in together[4]]
    right = [
        number % 4 == 0 and solvable and env.family.reference(env.task) is not None
        for number, env in enumerate(vec.envs)
    ]
    assert solved == right
    vec.close()
