import json

import pytest

import mlrl_envs
from mlrl_envs.errors import InvalidArgumentError, UnknownNameError
from mlrl_envs.models import Endpoint


def _env(**options):
    return mlrl_envs.make("mlrl/debate-v1", **options)


def _second(**options):
    env = _env(**options)
    first, _ = env.reset(seed=0)
    second, *_ = env.step({"pro": "What pro said.", "con": "What con said."})
    return first, second


def test_sides_are_told_apart():
    first, _ = _second()
    assert "you argue for the proposition" in first["pro"]
    assert "you argue against the proposition" in first["con"]


def test_each_side_hears_the_other_by_default():
    _, second = _second()
    assert "con argued in turn 1:\nWhat con said." in second["pro"]
    assert "You argued in turn 1:\nWhat pro said." in second["pro"]
    assert "answer what con said" in second["pro"]


def test_without_communication_nobody_hears():
    _, second = _second(communication="none")
    assert "What con said." not in second["pro"]
    assert "What pro said." in second["pro"]


def test_whole_debate_is_read_in_the_third_turn():
    env = _env()
    env.reset(seed=0)
    for turn in "12":
        third, *_ = env.step({"pro": f"Pro {turn}.", "con": f"Con {turn}."})
    assert all(said in third["con"] for said in ("Pro 1.", "Con 1.", "Pro 2.", "Con 2."))


def test_there_is_no_reference():
    env = _env()
    env.reset(seed=0)
    assert env.reference_actions() is None


@pytest.mark.parametrize(
    ("options", "bounds"),
    [
        ({}, (0.0, 1.0)),
        ({"mode": "zero_sum"}, (0.0, 1.0)),
        ({"reward": "paper"}, (0.0, 2.0)),
        ({"reward": "paper", "mode": "zero_sum"}, (-2.0, 2.0)),
    ],
)
def test_reward_range(options, bounds):
    assert _env(**options).reward_range == bounds


def test_own_propositions_can_be_debated(tmp_path):
    file = tmp_path / "own.jsonl"
    row = {"task_id": "t", "proposition": "Tea is best.", "pro_points": ["a"], "con_points": ["b"]}
    file.write_text(json.dumps(row))
    env = _env(data_path=file)
    assert env.num_tasks == 1
    assert "Tea is best." in env.reset(seed=0)[0]["pro"]


@pytest.mark.parametrize(
    "options",
    [
        {"mode": "zero_sum"},
        {"reward": "paper", "mode": "zero_sum"},
        {"vocabulary": "topic"},
    ],
)
def test_every_mode_keeps_our_contract(options):
    mlrl_envs.check_env(lambda: _env(**options))


def test_vocabulary_changes_rewards_alone():
    task_id = "debate/train/10/8/0"
    text = (
        "Farmers spray chemicals on the soil because they fear to lose a whole crop in one night. "
        "The toxic runoff reaches the next river, and the fish there die within a day or two. "
        "Organic farms in Austria show that vegetables and fruit grow well without any of it."
    )
    said = {"pro": text, "con": text}
    seen = []
    for options in ({}, {"vocabulary": "points"}, {"vocabulary": "topic"}):
        env = _env(**options)
        first = env.reset(options={"task_id": task_id})[0]
        seen.append((env.task.proposition, first, env.task.words, env.step(said)[1]))
    assert seen[0] == seen[1]
    assert seen[0][:2] == seen[2][:2]
    assert not seen[0][2]
    assert seen[2][2]
    assert seen[2][3]["pro"] > seen[0][3]["pro"]


def test_vocabulary_leaves_the_published_formula_and_judges_their_default():
    assert _env(reward="paper", vocabulary="points").reward_range == (0.0, 2.0)
    judge = Endpoint("http://127.0.0.1:1/v1", "m")
    assert _env(judge=judge, vocabulary="points").reward_range == (0.0, 1.0)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"mode": "zerosum"}, UnknownNameError, "did you mean 'zero_sum'"),
        ({"judge": "rule"}, UnknownNameError, "did you mean 'rules'"),
        ({"judge": {"model": "m"}}, InvalidArgumentError, "an endpoint needs base_url"),
        ({"judge": 3}, InvalidArgumentError, "an endpoint is an Endpoint"),
        ({"data_path": 3}, InvalidArgumentError, "data_path must be a path"),
        (
            {"reward": "paper", "judge": Endpoint("http://127.0.0.1:1/v1", "m")},
            InvalidArgumentError,
            "the published formula has no judge",
        ),
        ({"vocabulary": "topics"}, UnknownNameError, "did you mean 'topic'"),
        ({"vocabulary": True}, UnknownNameError, "unknown vocabulary"),
        (
            {"vocabulary": "topic", "data_path": "mine.jsonl"},
            InvalidArgumentError,
            "got it with data_path 'mine.jsonl'",
        ),
        (
            {"vocabulary": "topic", "reward": "paper"},
            InvalidArgumentError,
            "got vocabulary='topic' with 'paper'",
        ),
        (
            {"vocabulary": "topic", "judge": Endpoint("http://127.0.0.1:1/v1", "m")},
            InvalidArgumentError,
            "got vocabulary='topic' with a judge",
        ),
    ],
)
def test_senseless_options_are_refused(options, error, message):
    with pytest.raises(error, match=message):
        _env(**options)
