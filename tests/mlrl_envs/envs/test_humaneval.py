import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import mlrl_envs
from mlrl_envs.datasets.humaneval import load_humaneval
from mlrl_envs.errors import DataNotFoundError, InvalidArgumentError

HALF = "```python\ndef has_close_elements(numbers, threshold):\n    return len(numbers) > 3\n```"
WRONG = "```python\ndef has_close_elements(numbers, threshold):\n    return False\n```"


@pytest.mark.parametrize(
    ("num_aux", "agents"),
    [
        (0, ["main"]),
        (1, ["aux", "main"]),
        (2, ["aux_1", "aux_2", "main"]),
        (3, ["aux_1", "aux_2", "aux_3", "main"]),
    ],
)
def test_number_of_helpers_is_an_option(num_aux, agents, fake_sandbox):
    env = mlrl_envs.make("mlrl/humaneval-v1", num_aux=num_aux, sandbox=fake_sandbox)
    observations, _ = env.reset(seed=0)
    assert env.possible_agents == agents
    for helper in agents[:-1]:
        assert f"`{helper}(...)`" in observations["main"]
        assert f"a helper function named `{helper}`" in observations[helper]
    assert env.step(env.reference_actions())[2]["main"]


@pytest.mark.parametrize("num_aux", [-1, 4, 1.5, "2", True])
def test_senseless_number_of_helpers_is_refused(num_aux):
    with pytest.raises(InvalidArgumentError, match="num_aux must be 0 to 3"):
        mlrl_envs.make("mlrl/humaneval-v1", num_aux=num_aux)


@pytest.mark.parametrize(
    ("reward", "num_aux", "highest"),
    [("grounded", 1, 1.0), ("grounded", 0, 1.0), ("paper", 1, 4.0), ("paper", 0, 2.1)],
)
def test_reward_range_is_declared(reward, num_aux, highest):
    env = mlrl_envs.make("mlrl/humaneval-v1", reward=reward, num_aux=num_aux)
    assert env.reward_range == (0.0, highest)


def test_splits_have_their_rows():
    sizes = {s: mlrl_envs.make("mlrl/humaneval-v1", split=s).num_tasks for s in ("train", "all")}
    assert sizes == {"train": 130, "all": 164}


def test_missing_data_path_is_named():
    with pytest.raises(DataNotFoundError, match=r"nowhere\.jsonl"):
        mlrl_envs.make("mlrl/humaneval-v1", data_path="nowhere.jsonl")


@pytest.mark.parametrize(
    ("mode", "shown"),
    [
        ("plain", []),
        ("passed", ["Not all levels passed."]),
        ("level_passed", ["function has_close_elements: FOUND", "public tests: all of 2 passed"]),
        ("diagnostics", ["hidden tests: not all passed", "unused: call it", "did not deliver aux"]),
    ],
)
def test_feedback_reaches_main(code_env, mode, shown):
    env = mlrl_envs.make("mlrl/humaneval-v1", split="all", feedback=mode, sandbox=code_env.sandbox)
    env.reset(options={"task_index": 0})
    observations, *_ = env.step({"aux": "", "main": HALF})
    for text in shown:
        assert text in observations["main"]


def test_failing_public_test_is_shown_with_its_error(code_env):
    observations, *_ = code_env.step({"aux": "", "main": WRONG})
    assert "public tests: 1 of 2 passed" in observations["main"]
    line = next(line for line in observations["main"].split("\n") if "  assert has_close" in line)
    assert "[1.0, 2.8, 3.0, 4.0, 5.0, 2.0], 0.3) == True  # false" in line


def test_missing_function_and_syntax_error_are_shown(code_env):
    observations, *_ = code_env.step({"aux": "```python\ndef aux(:\n```", "main": "I pass."})
    assert "- function aux: MISSING" in observations["aux"]
    assert "line 1, column 9" in observations["aux"]
    assert "- function has_close_elements: MISSING" in observations["main"]


def test_hidden_tests_never_reach_an_agent():
    vec = mlrl_envs.make_vec("mlrl/humaneval-v1", 164, split="all", max_turns=2)
    shown = list(vec.reset(options=[{"task_index": index} for index in range(164)]))
    constant = [
        {"aux": "", "main": f"```python\ndef {task.entry_point}(*args):\n    return 'zq'\n```"}
        for task in load_humaneval("all")
    ]
    shown.append(vec.step(constant))
    text = repr(shown)
    assert "candidate" not in text
    assert "METADATA" not in text
    for index, task in enumerate(load_humaneval("all")):
        calls = [
            line.strip().removeprefix("assert candidate")
            for line in task.hidden_tests.split("\n")
            if "assert candidate" in line
        ]
        public = "\n".join([task.prompt, *task.public_tests])
        read = shown[-1][0][index]["main"]
        assert [call for call in calls if call in read and call not in public] == []


def test_solved_at_once_beats_solved_later(code_env):
    reference = code_env.reference_actions()
    at_once = code_env.step(reference)[1]["main"]
    code_env.reset(options={"task_index": 0})
    later = code_env.step({"aux": "", "main": HALF})[1]["main"]
    later += code_env.step(reference)[1]["main"]
    assert at_once >= later - 1e-12


def test_episode_ends_when_solved(code_env):
    *_, terminations, truncations, infos = code_env.step(code_env.reference_actions())
    assert terminations == {"aux": True, "main": True}
    assert truncations == {"aux": False, "main": False}
    assert infos["main"]["solved"]
    assert code_env.agents == []


def test_prelude_of_the_problem_is_there_for_answers(fake_sandbox):
    env = mlrl_envs.make("mlrl/humaneval-v1", split="all", sandbox=fake_sandbox)
    env.reset(options={"task_id": "HumanEval/38"})
    main = "```python\ndef decode_cyclic(s: str):\n    return encode_cyclic(encode_cyclic(s))\n```"
    assert env.step({"aux": "", "main": main})[4]["main"]["solved"]


@pytest.mark.parametrize(
    "ending", ["while True:\n            pass", "import os\n        os._exit(0)"]
)
def test_how_a_hidden_test_ended_is_not_told(ending):
    from mlrl_envs.sandbox import Limits

    limits = Limits(wall_seconds=2.0, test_seconds=0.3)
    env = mlrl_envs.make("mlrl/humaneval-v1", split="all", limits=limits)
    texts = []
    # Both pass the public tests; one fails the first hidden test, the other never comes back.
    for body in ("return None", ending):
        env.reset(options={"task_index": 0})
        main = (
            "```python\ndef has_close_elements(numbers, threshold):\n"
            f"    if numbers[-1] == 2.2:\n        {body}\n    return len(numbers) > 3\n```"
        )
        observations, *_ = env.step({"aux": "", "main": main})
        texts.append(observations["main"].partition("Feedback")[2])
    assert texts[0] == texts[1]
    assert "public tests: all of 2 passed" in texts[0]


@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_any_answers_are_scored_in_range(data):
    text = st.text(st.characters(exclude_categories=())) | st.builds(
        "```python\ndef {}({}):\n    {}\n```".format,
        st.sampled_from(["aux", "has_close_elements", "é"]),
        st.sampled_from(["", "*a", "a, b", "a=1, *, b"]),
        st.sampled_from(["pass", "return a", "return aux(a, b)", "yield", "1/0", "x", "\x00"]),
    )
    env = mlrl_envs.make("mlrl/humaneval-v1", split="all")
    env.reset(options={"task_index": 0})
    while env.agents:
        actions = {agent: data.draw(text) for agent in env.agents}
        observations, rewards, *_ = env.step(actions)
        assert 0.0 <= rewards["main"] == rewards["aux"] <= 1.0
        assert all(env.observation_space(agent).contains(observations[agent]) for agent in rewards)
