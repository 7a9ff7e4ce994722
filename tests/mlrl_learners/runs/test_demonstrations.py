import json

import pytest

from mlrl_learners.errors import ConfigError
from mlrl_learners.evaluation.collect import collect
from mlrl_learners.runs.demonstrations import (
    Demonstration,
    JointTurn,
    read_demonstrations,
    read_joint_turns,
)
from mlrl_learners.testing import ScriptedActor

TURN = {"observations": {"a": "o1", "b": "p1"}, "actions": {"a": "x", "b": "y"}}
LATER = {"observations": {"a": "o2"}, "actions": {"a": "z"}, "finish_reasons": {"a": "length"}}
EPISODE = {"return": 0.5, "turns": [TURN, LATER]}


def write(path, *lines):
    path.write_text("".join(lines))
    return path


def line(**changes):
    return json.dumps({**EPISODE, **changes}) + "\n"


def test_an_agents_turn_knows_all_actions_and_what_was_read_next(tmp_path):
    found = read_demonstrations(write(tmp_path / "e.jsonl", line()))
    assert found == [
        Demonstration("a", "o1", {"a": "x", "b": "y"}, is_whole=True, next_observation="o2"),
        Demonstration("b", "p1", {"a": "x", "b": "y"}, is_whole=True, next_observation=None),
        Demonstration("a", "o2", {"a": "z"}, is_whole=False, next_observation=None),
    ]


@pytest.mark.parametrize(("low", "kept"), [(None, 2), (0.5, 2), (0.6, 1), (1.0, 0)])
def test_only_episodes_that_earned_enough_are_read(low, kept, tmp_path):
    path = write(tmp_path / "e.jsonl", line(), line(**{"return": 0.75}))
    assert len(read_demonstrations(path, low)) == 3 * kept


def test_a_torn_last_line_is_left_out(tmp_path):
    path = write(tmp_path / "e.jsonl", line(), line()[:40])
    assert len(read_demonstrations(path)) == 3


@pytest.mark.parametrize("broken", ["nonsense\n", "{}\n", "[1]\n", '{"return": 1, "turns": [3]}\n'])
def test_a_line_that_is_no_episode_is_named(broken, tmp_path):
    path = write(tmp_path / "e.jsonl", line(), broken, line())
    with pytest.raises(ConfigError, match=r"e.jsonl:2 is not an episode of mlrl collect"):
        read_demonstrations(path)


def test_a_missing_file_is_named_with_who_writes_such(tmp_path):
    with pytest.raises(ConfigError, match=r"No such file .*none.jsonl'; mlrl collect writes"):
        read_demonstrations(tmp_path / "none.jsonl")


def test_what_was_collected_is_read_back(addition_env, tmp_path):
    actor = ScriptedActor(lambda agent, text: str(int(text) + (agent == "left")))
    out = collect(env_id=addition_env, actor=actor, out=tmp_path / "e.jsonl", tasks=1).path
    first, second, *later = read_demonstrations(out, 0.5)
    assert first == Demonstration("left", "0", {"left": "1", "right": "0"}, next_observation="0")
    assert (second.agent, len(later)) == ("right", 2)


def test_a_joint_turn_is_worth_what_the_team_earned_from_there_on(tmp_path):
    turns = [{**TURN, "rewards": {"a": 0.0, "b": 0.5}}, {**LATER, "rewards": {"a": 0.5}}]
    path = write(tmp_path / "e.jsonl", line(turns=turns))
    assert read_joint_turns(path) == [
        JointTurn(
            TURN["observations"], {"a": "x", "b": "y"}, {"a": True, "b": True}, 0.5,
            {"a": 0.5, "b": 0.5},
        ),
        JointTurn(LATER["observations"], {"a": "z"}, {"a": False}, 0.25, {"a": 0.5}),
    ]  # fmt: skip
