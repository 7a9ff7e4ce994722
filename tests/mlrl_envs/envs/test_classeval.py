import copy
import os
import pickle
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import mlrl_envs
from mlrl_envs.errors import DataNotFoundError, InvalidArgumentError, UnknownNameError

HAS_DATA = (Path(os.environ.get("MLRL_DATA_DIR", "")) / "ClassEval.jsonl").is_file()
needs_data = pytest.mark.skipif(not HAS_DATA, reason="needs MLRL_DATA_DIR/ClassEval.jsonl")
SPLIT = "all" if HAS_DATA else "sample"
INVENTORY = {"task_id": "sample/classeval/2"}
WRONG = "```python\ndef add(self, item, count):\n    return self.counts\n```"


def _make(**options):
    return mlrl_envs.make("mlrl/classeval-v1", **{"split": "sample", **options})


def _begun(**options):
    env = _make(**options)
    env.reset(options=INVENTORY)
    return env


def _everybody(env, answer):
    return dict.fromkeys(env.possible_agents, answer)


@pytest.mark.parametrize("num_coders", [1, 2, 3, 4, 5])
def test_number_of_coders_is_an_option(num_coders):
    env = _make(num_coders=num_coders)
    observations, _ = env.reset(options=INVENTORY)
    assert env.possible_agents == [f"coder_{n}" for n in range(1, num_coders + 1)]
    for agent, names in env.family.assignment(env.task).items():
        own = ", ".join(f"`{name}`" for name in names)
        assert f"Your methods: {own}." in observations[agent]
        others = [other for other in env.possible_agents if other != agent]
        assert all(f"{other} writes `" in observations[agent] for other in others)
    *_, infos = env.step(env.reference_actions())
    assert infos["coder_1"]["solved"]
    assert sum(infos["coder_1"]["components"].values()) == pytest.approx(1.0)


@pytest.mark.parametrize("num_coders", [0, 6, -1, 1.5, "2", True])
def test_senseless_number_of_coders_is_refused(num_coders):
    with pytest.raises(InvalidArgumentError, match="num_coders must be 1 to 5"):
        _make(num_coders=num_coders)


def test_unknown_assignment_is_refused():
    with pytest.raises(UnknownNameError, match="did you mean 'by_parameter_count'"):
        _make(assignment="by_parameter")


def test_missing_data_path_is_named():
    with pytest.raises(DataNotFoundError, match=r"nowhere\.jsonl"):
        _make(split="all", data_path="nowhere.jsonl")


@pytest.mark.parametrize(("reward", "highest"), [("grounded", 1.0), ("paper", 6.0)])
@pytest.mark.parametrize("num_coders", [1, 2, 3])
def test_reference_earns_the_highest_reward_and_silence_the_lowest(reward, highest, num_coders):
    env = _make(reward=reward, num_coders=num_coders)
    assert env.reward_range == (0.0, highest)
    for index in range(env.num_tasks):
        env.reset(options={"task_index": index})
        assert env.step(_everybody(env, ""))[1]["coder_1"] == 0.0
        assert env.step(env.reference_actions())[1]["coder_1"] == pytest.approx(highest)


def test_published_assignment_may_leave_a_coder_idle():
    env = _make(assignment="by_parameter_count")
    observations, _ = env.reset(options={"task_id": "sample/classeval/5"})
    assert "There is no method left for you" in observations["coder_1"]
    assert "coder_1 writes nothing." in observations["coder_2"]
    *_, infos = env.step(env.reference_actions())
    assert infos["coder_1"]["solved"]


@pytest.mark.parametrize(
    ("mode", "shown", "hidden"),
    [
        ("plain", [], ["FOUND", "passed"]),
        ("passed", ["Not all levels passed."], ["FOUND"]),
        ("level_passed", ["method add: FOUND", "method total: MISSING"], ["fails:"]),
        (
            "diagnostics",
            [
                "- method add: FOUND",
                "- method total: MISSING",
                "- teammate coder_1: 0 of 2 methods delivered\n  not delivered: remove, is_empty.",
                "- public tests (docstring examples): none of 5 passed",
                "  the example of add fails: false; the last value was {}",
                "- hidden tests: not all passed",
            ],
            [],
        ),
    ],
)
def test_feedback_reaches_its_reader(mode, shown, hidden):
    env = _begun(feedback=mode)
    observations, *_ = env.step({"coder_1": "", "coder_2": WRONG})
    feedback = observations["coder_2"].partition("You answered")[2]
    for text in shown:
        assert text in feedback
    for text in hidden:
        assert text not in feedback


def test_stubs_syntax_errors_strays_and_additions_are_told():
    env = _begun()
    answer = (
        "```python\nimport re\nre.purge()\n\ndef __eq__(self, other): return True\n\n"
        "def add(self, item, count):\n    pass\n\ndef remove(self, item, count): return count\n```"
    )
    observations, *_ = env.step({"coder_1": "```python\ndef remove(self\n```", "coder_2": answer})
    assert "- method add: STUB" in observations["coder_2"]
    assert "remove: not used, and costs reward." in observations["coder_2"]
    assert "method __eq__; re.purge(): not used." in observations["coder_2"]
    assert "- syntax: wrong\n  remove, line 1, column 11:" in observations["coder_1"]


def test_hidden_tests_never_reach_an_agent():
    count = _make(split=SPLIT).num_tasks
    vec = mlrl_envs.make_vec("mlrl/classeval-v1", count, split=SPLIT, max_turns=2)
    vec.reset(options=[{"task_index": index} for index in range(count)])
    actions = []
    for env in vec.envs:
        shares = env.family.assignment(env.task)
        body = "(self=1, *args, **kwargs):\n    return [self] and 'zq'"
        actions.append(
            {a: "\n\n".join(f"def {name}{body}" for name in names) for a, names in shares.items()}
        )
    observations, _, _, _, infos = vec.step(actions)
    for env, seen, info in zip(vec.envs, observations, infos, strict=True):
        public, _, hidden = env.task.tests.rpartition("import unittest")
        shown = f"{env.task.skeleton}{public}"
        read = repr(info) + "".join(seen.values())
        lines = [line.strip() for line in hidden.split("\n") if "self.assert" in line]
        assert [line for line in lines if line in read and line not in shown] == []
        assert "TestCase" not in read


def test_how_a_hidden_test_ended_is_not_told():
    from mlrl_envs.sandbox import Limits

    env = _begun(limits=Limits(wall_seconds=2.0, test_seconds=0.3))
    texts = []
    # Both pass the public tests; one fails the first hidden test, the other never comes back.
    for ending in (
        "return self",
        "while True:\n            pass",
        "import os\n        os._exit(0)",
    ):
        env.reset(options=INVENTORY)
        add = (
            "def add(self, item, count):\n    if item != 'bolt':\n"
            f"        {ending}\n    return {{5: 5, 2: 7}}[count]"
        )
        observations, *_ = env.step(
            {**env.reference_actions(), "coder_2": f"```python\n{add}\n```"}
        )
        texts.append(observations["coder_2"].partition("Feedback")[2])
    assert texts[0] == texts[1] == texts[2]


def test_solved_at_once_beats_solved_later():
    env = _begun()
    reference = env.reference_actions()
    at_once = env.step(reference)[1]["coder_1"]
    assert env.agents == []
    env.reset(options=INVENTORY)
    later = env.step({**reference, "coder_2": ""})[1]["coder_1"]
    later += env.step(reference)[1]["coder_1"]
    assert at_once >= later - 1e-12


def test_copies_and_pickles_step_alike():
    env = _begun(max_turns=3)
    env.step({"coder_1": "", "coder_2": WRONG})
    reference = env.reference_actions()
    copies = [copy.deepcopy(env), pickle.loads(pickle.dumps(env)), env]
    first, second, third = (env.step(reference) for env in copies)
    assert first == second == third


@pytest.mark.parametrize(
    "text", ["", "\x00", "\ud800", "x" * 1_000_000, "```python\n" + "(" * 9_999]
)
def test_malformed_answers_score_the_floor(text):
    for reward in ("grounded", "paper"):
        env = _begun(reward=reward)
        assert set(env.step(_everybody(env, text))[1].values()) == {0.0}


@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_any_answers_are_scored_in_range(data):
    text = st.text(st.characters(exclude_categories=())) | st.builds(
        "```python\n{}def {}(self, {}):\n    {}\n```".format,
        st.sampled_from(["", "import os\n", "class Inventory:\n  "]),
        st.sampled_from(["add", "remove", "total", "__init__", "é"]),
        st.sampled_from(["", "*a", "item, count", "a=1/0, *, b"]),
        st.sampled_from(["pass", "return self", "yield item", "1/0", "break", "self.counts = 1"]),
    )
    reward = data.draw(st.sampled_from(["grounded", "paper"]))
    env = _begun(reward=reward, num_coders=data.draw(st.integers(1, 3)))
    while env.agents:
        observations, rewards, *_ = env.step({agent: data.draw(text) for agent in env.agents})
        assert len(set(rewards.values())) == 1
        assert 0.0 <= rewards["coder_1"] <= env.reward_range[1]
        assert all(env.observation_space(agent).contains(observations[agent]) for agent in rewards)


@needs_data
@pytest.mark.slow
@pytest.mark.parametrize("num_coders", [2, 5])
def test_every_reference_solves_its_class_and_silence_earns_nothing(num_coders):
    env = _make(split="all")
    count = env.num_tasks
    vec = mlrl_envs.make_vec("mlrl/classeval-v1", count, split="all", num_coders=num_coders)
    chosen = [{"task_index": index} for index in range(count)]
    for answers, wanted in ((lambda env: env.reference_actions(), 1.0), (lambda _: {}, 0.0)):
        vec.reset(options=chosen)
        actions = [{**_everybody(env, ""), **answers(env)} for env in vec.envs]
        _, rewards, _, _, infos = vec.step(actions)
        failed = {
            info["coder_1"]["task_id"]: reward["coder_1"]
            for info, reward in zip(infos, rewards, strict=True)
            if reward["coder_1"] != pytest.approx(wanted)
        }
        assert failed == {}


@needs_data
def test_rows_that_cannot_be_certified_can_be_played():
    env = _make(split="uncertified")
    for index in range(env.num_tasks):
        env.reset(options={"task_index": index})
        assert 0.0 <= env.step(env.reference_actions())[1]["coder_1"] <= 1.0
