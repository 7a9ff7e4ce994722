import re

import pytest

import mlrl_envs
from mlrl_envs.errors import InvalidArgumentError, UnknownNameError
from mlrl_envs.parsing.numbers import read_number

VARIANTS = [
    {},
    {"num_solvers": 3},
    {"require_steps": True},
    {"require_steps": True, "num_solvers": 2, "communication": "broadcast"},
    {"reward": "paper"},
    {"reward": "paper", "require_steps": True},
    {"split": "sample", "require_steps": True},
]


def _env(**options):
    return mlrl_envs.make("mlrl/math-v2", **options)


@pytest.mark.parametrize("options", VARIANTS, ids=str)
def test_reference_solves_every_problem_and_earns_everything(options):
    env = _env(**{"split": "all", **options})
    for index in range(env.num_tasks):
        env.reset(options={"task_index": index})
        _, rewards, terminations, *_ = env.step(env.reference_actions())
        assert rewards == pytest.approx(dict.fromkeys(env.possible_agents, env.reward_range[1]))
        assert all(terminations.values())


@pytest.mark.parametrize(
    ("num_solvers", "agents"),
    [
        (1, ["solver", "verifier"]),
        (2, ["solver_1", "solver_2"]),
        (4, [f"solver_{n}" for n in "1234"]),
    ],
)
def test_agents_are_a_pair_or_voters(num_solvers, agents):
    assert _env(num_solvers=num_solvers).possible_agents == agents


@pytest.mark.parametrize(
    ("options", "bounds"),
    [
        ({}, (0.0, 1.0)),
        ({"reward": "paper"}, (-0.3, 1.0)),
        ({"reward": "paper", "require_steps": True}, (-0.3, 1.2)),
    ],
)
def test_reward_range(options, bounds):
    assert _env(**options).reward_range == bounds


def test_default_needs_no_data(monkeypatch):
    monkeypatch.delenv("MLRL_DATA_DIR", raising=False)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert [_env(split=split).num_tasks for split in ("train", "eval", "all")] == [1000, 200, 1200]


def test_topics_and_levels_are_chosen():
    env = _env(topics=["algebra"], levels=[3], problem_seed=5)
    env.reset(seed=0)
    assert env.task.task_id.startswith("math/algebra/3/train/5/")


@pytest.mark.parametrize("options", VARIANTS, ids=str)
def test_words_of_the_environment_hold_no_number(options):
    env = _env(**options, max_turns=3)
    observations, _ = env.reset(seed=0)
    for agent, text in observations.items():
        own_words = text.replace(env.task.question, "").replace(agent, "")
        assert not re.search(r"\d", own_words)


@pytest.mark.parametrize("feedback", ["plain", "passed", "level_passed", "diagnostics"])
@pytest.mark.parametrize("options", VARIANTS, ids=str)
def test_no_feedback_discloses_the_answer(options, feedback):
    env = _env(**{"split": "eval", **options}, max_turns=3, feedback=feedback)
    for index in range(0, env.num_tasks, 5):
        env.reset(options={"task_index": index})
        wanted = read_number(env.task.answer)
        for wrong in ("", "12 + 12 = 25. Answer: 123456"):
            actions = dict.fromkeys(env.possible_agents, wrong)
            observations, *_, infos = env.step(actions)
            said = f"{observations} {infos}".replace(env.task.question, "")
            said = said.replace(env.task.task_id, "")
            assert wanted not in {read_number(number) for number in re.findall(r"-?[\d./]+", said)}


def test_broadcast_shows_the_solver_to_the_verifier():
    env = _env(communication="broadcast")
    env.reset(seed=0)
    observations, *_ = env.step({"solver": "My way. Answer: 5", "verifier": "Answer: 6"})
    assert "Your teammate solver answered:\nMy way." in observations["verifier"]


def test_steps_are_asked_for_where_they_are_required():
    texts = [_env(require_steps=wanted).reset(seed=0)[0]["solver"] for wanted in (False, True)]
    assert ["equals sign" in text for text in texts] == [False, True]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_solvers": 0}, "num_solvers must be an int from 1 to 9, got 0"),
        ({"num_solvers": True}, "num_solvers must be"),
        ({"problem_seed": -1}, "problem_seed must be"),
        ({"require_steps": "yes"}, "require_steps must be a bool"),
        ({"topics": []}, "topics must be a list"),
        ({"topics": "word"}, "topics must be a list"),
        ({"topics": ["geometry"]}, "topics must be some of"),
        ({"levels": [4]}, "levels must be some of"),
        ({"levels": [True]}, "levels must be some of"),
        ({"data_path": "x.jsonl"}, "pass source='gsm8k' too"),
        ({"data_path": 3, "source": "gsm8k"}, "data_path must be a path"),
    ],
)
def test_senseless_options_are_refused(options, message):
    with pytest.raises(InvalidArgumentError, match=re.escape(message)):
        _env(**options)


def test_unknown_source_is_refused():
    with pytest.raises(UnknownNameError, match="did you mean 'gsm8k'"):
        _env(source="gsm8")
