"""Behaviour that the ids of the coding family share, on their samples."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import mlrl_envs
from mlrl_envs.errors import InvalidArgumentError, UnknownNameError

ENV_IDS = ("mlrl/humaneval-v1", "mlrl/coophumaneval-v1", "mlrl/mbpp-v1")
ids = pytest.mark.parametrize("env_id", ENV_IDS)
AGENTS = {
    0: ["main"],
    1: ["aux", "main"],
    2: ["aux_1", "aux_2", "main"],
    3: ["aux_1", "aux_2", "aux_3", "main"],
}


def _make(env_id, **options):
    env = mlrl_envs.make(env_id, split="sample", **options)
    env.reset(options={"task_index": 0})
    return env


@ids
@pytest.mark.parametrize("num_aux", AGENTS)
def test_any_number_of_helpers_plays_every_task(env_id, num_aux):
    env = _make(env_id, num_aux=num_aux)
    assert env.possible_agents == AGENTS[num_aux]
    for index in range(env.num_tasks):
        observations, _ = env.reset(options={"task_index": index})
        for helper in env.possible_agents[:-1]:
            assert f"`{helper}(...)`" in observations["main"]
            assert f"a helper function named `{helper}`" in observations[helper]
        _, rewards, terminations, _, infos = env.step(env.reference_actions())
        assert infos["main"]["solved"]
        assert all(terminations.values())
        wanted = pytest.approx(0.4 if num_aux else 1.0)
        assert all(reward == wanted for reward in rewards.values())


@ids
def test_every_helper_sees_the_problem_and_its_own_name_only(env_id):
    env = _make(env_id, num_aux=3)
    observations, _ = env.reset(seed=0)
    for helper in env.possible_agents[:-1]:
        others = {"aux_1", "aux_2", "aux_3"} - {helper}
        assert env.task.prompt.strip() in observations[helper]
        assert not any(other in observations[helper] for other in others)


@ids
@pytest.mark.parametrize(
    ("reward", "num_aux", "bounds"),
    [
        ("grounded", 0, (0.0, 1.0)),
        ("grounded", 3, (0.0, 1.0)),
        ("paper", 0, (0.0, 2.1)),
        ("paper", 3, (0.0, 4.0)),
        ("attempts", 0, (-0.5, 2.0)),
        ("attempts", 3, (-0.5, 2.0)),
    ],
)
def test_reward_range_is_declared_and_reached(env_id, reward, num_aux, bounds):
    env = _make(env_id, reward=reward, num_aux=num_aux, max_turns=1)
    assert env.reward_range == bounds
    empty = env.step(dict.fromkeys(env.possible_agents, ""))[1]["main"]
    assert empty == bounds[0]
    env.reset(options={"task_index": 0})
    best = env.step(env.reference_actions())[1]["main"]
    reached = {"grounded": 0.4 if num_aux else 1.0, "paper": 2.5 if num_aux else 2.1}
    assert best == pytest.approx(reached.get(reward, 2.0), abs=1e-9)


@ids
def test_attempts_sum_over_turns(env_id):
    env = _make(env_id, reward="attempts", max_turns=3)
    wrong = f"```python\ndef {env.task.entry_point}(*args):\n    raise ValueError\n```"
    paid = [env.step({"aux": "", "main": wrong})[1]["main"] for _ in range(2)]
    paid.append(env.step(env.reference_actions())[1]["main"])
    assert paid == pytest.approx([-0.5, -0.5, 2.0], abs=1e-9)


@ids
def test_unknown_reward_is_named(env_id):
    with pytest.raises(UnknownNameError, match="did you mean 'attempts'"):
        _make(env_id, reward="attempt")


def test_other_families_have_no_such_reward():
    with pytest.raises(UnknownNameError, match="unknown reward 'attempts'"):
        mlrl_envs.make("mlrl/story-v1", reward="attempts")


def test_variants_of_mbpp_differ_in_their_rows():
    full, sanitized = (_make("mlrl/mbpp-v1", variant=name) for name in ("full", "sanitized"))
    assert full.task.task_id == "sample/mbpp/0"
    assert sanitized.task.task_id == "sample/sanitized-mbpp/0"
    with pytest.raises(InvalidArgumentError, match="unknown variant 'fulll'; did you mean 'full'"):
        _make("mlrl/mbpp-v1", variant="fulll")


def test_class_that_tests_hand_over_is_shown_and_there(fake_sandbox):
    env = mlrl_envs.make("mlrl/mbpp-v1", split="sample")
    observations, _ = env.reset(options={"task_id": "sample/mbpp/3"})
    assert "class Link:" in observations["main"]
    main = (
        "```python\ndef depth(link):\n    n = 0\n    while isinstance(link, Link):\n"
        "        link, n = link.after, n + 1\n    return n\n```"
    )
    assert env.step({"aux": "", "main": main})[4]["main"]["solved"]


ANSWERS = st.text(st.characters(exclude_categories=())) | st.builds(
    "```python\ndef {}({}):\n    {}\n```".format,
    st.sampled_from(["aux", "count_vowels", "count_turning_points", "sum_of_even", "sum"]),
    st.sampled_from(["", "*a", "a", "a=1, *, b=2"]),
    st.sampled_from(["pass", "return a", "return aux(a)", "return [aux(a)] * 2", "yield", "1/0"]),
)


@ids
@pytest.mark.parametrize("reward", ["grounded", "paper", "attempts"])
@settings(max_examples=15, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_any_answers_are_scored_in_range(env_id, reward, data):
    env = _make(env_id, reward=reward)
    low, high = env.reward_range
    while env.agents:
        actions = {agent: data.draw(ANSWERS) for agent in env.agents}
        _, rewards, _, _, infos = env.step(actions)
        assert low <= rewards["main"] == rewards["aux"] <= high
        assert sum(infos["main"]["components"].values()) == pytest.approx(rewards["main"])
