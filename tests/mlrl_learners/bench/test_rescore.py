import json

import pytest

import mlrl_envs
from mlrl_learners.actors import RandomActor, ReferenceActor
from mlrl_learners.bench.rescore import rescore
from mlrl_learners.errors import ConfigError
from mlrl_learners.evaluation.evaluate import evaluate
from mlrl_learners.runs.records import episode_record

TWO_TURNS = {"split": "sample", "max_turns": 2}


def played(env_id, actor, options):
    rest = {name: value for name, value in options.items() if name != "split"}
    result = evaluate(env_id=env_id, actor=actor, split=options["split"], env_options=rest, tasks=2)
    return json.loads(json.dumps([episode_record(episode) for episode in result.episodes]))


@pytest.mark.parametrize("env_id", sorted(mlrl_envs.registry))
def test_what_has_just_been_scored_does_not_change(env_id):
    if not env_id.startswith("mlrl/"):
        pytest.skip("not ours")
    episodes = played(env_id, RandomActor(1), TWO_TURNS)
    scored, changes = rescore(env_id, TWO_TURNS, episodes)
    assert changes == []
    assert scored == episodes


def test_right_answers_stay_right():
    episodes = played("mlrl/humaneval-v1", ReferenceActor(), TWO_TURNS)
    scored, changes = rescore("mlrl/humaneval-v1", TWO_TURNS, episodes)
    assert (changes, scored) == ([], episodes)


def test_change_names_task_return_and_component():
    (first, second) = played("mlrl/humaneval-v1", ReferenceActor(), TWO_TURNS)
    forged = json.loads(json.dumps(first))
    agent, parts = next(iter(forged["turns"][0]["components"].items()))
    name = next(iter(parts))
    parts[name] += 1.0
    forged["returns"][agent] += 1.0
    forged["return"] += 0.5
    scored, (change,) = rescore("mlrl/humaneval-v1", TWO_TURNS, [forged, second])
    assert scored == [first, second]
    assert change.task_id == first["task_id"]
    assert change.old_return == pytest.approx(change.new_return + 0.5)
    assert list(change.components) == [name]
    assert change.old_solved == change.new_solved


@pytest.mark.parametrize("where", ["return", "rewards", "solved", "returns"])
def test_every_number_that_figures_use_is_compared_and_named(where):
    first, _ = played("mlrl/story-v1", RandomActor(1), {"split": "sample"})
    agent = next(iter(first["returns"]))
    if where == "return":
        first["return"] += 1.0
    elif where == "solved":
        first["solved"] = not first["solved"]
    elif where == "returns":
        first["returns"][agent] += 1.0
    else:
        first["turns"][0]["rewards"][agent] = float("nan")
    _, (change,) = rescore("mlrl/story-v1", {"split": "sample"}, [first])
    notes = {
        "return": "",
        "rewards": f"rewards of {agent} in turn 1",
        "solved": "solved",
        "returns": f"returns of {agent}",
    }
    assert change.note == notes[where]
    assert (change.old_return != change.new_return) == (where == "return")


def test_other_options_are_other_scores():
    episodes = played("mlrl/story-v1", RandomActor(1), {"split": "sample", "reward": "paper"})
    _, changes = rescore("mlrl/story-v1", {"split": "sample", "reward": "grounded"}, episodes)
    assert {name for change in changes for name in change.components}


def test_episode_that_now_goes_on_is_reported():
    episodes = played("mlrl/humaneval-v1", RandomActor(1), {"split": "sample", "max_turns": 1})
    _, changes = rescore("mlrl/humaneval-v1", TWO_TURNS, episodes)
    assert [change.note for change in changes] == ["would go on after turn 1"] * 2


def test_no_model_is_asked_for_edits(dead_url):
    expert = {"base_url": dead_url, "model": "m", "max_retries": 0}
    options = {**TWO_TURNS, "feedback": "expert_edits", "expert": expert}
    episodes = played("mlrl/humaneval-v1", RandomActor(1), {**TWO_TURNS, "feedback": "plain"})
    assert rescore("mlrl/humaneval-v1", options, episodes)[1] == []


def test_task_that_is_gone_is_named():
    episodes = played("mlrl/story-v1", RandomActor(1), {"split": "sample"})
    with pytest.raises(ConfigError, match="gone"):
        rescore("mlrl/story-v1", {"split": "sample"}, [{**episodes[0], "task_id": "gone"}])
    turn = {**episodes[0]["turns"][0], "actions": {"someone": ""}}
    with pytest.raises(ConfigError, match="played by"):
        rescore("mlrl/story-v1", {"split": "sample"}, [{**episodes[0], "turns": [turn]}])
