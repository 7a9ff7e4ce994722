import json
from dataclasses import replace

import pytest

from mlrl_learners.errors import ConfigError
from mlrl_learners.figures.episode_figures import figures_of
from mlrl_learners.runs.records import episode_record, parse_episode
from mlrl_learners.types import Completion, Episode, EpisodeTurn, Usage

ANSWER = Completion("hi", prompt_ids=(1, 2, 3), token_ids=(4, 5), logprobs=(-0.5, -1.5))
EPISODE = Episode(
    "x/1",
    7,
    (EpisodeTurn({"a": "say hi"}, {"a": ANSWER}, {"a": 0.5}, {"a": {"reward": 0.5}}, {}),),
    False,
    {"a": 0.5},
)


def test_a_record_is_json_and_holds_texts_and_verdicts():
    record = json.loads(json.dumps(episode_record(EPISODE)))
    assert (record["task_id"], record["return"], record["solved"]) == ("x/1", 0.5, False)
    (turn,) = record["turns"]
    assert turn["observations"] == {"a": "say hi"}
    assert turn["actions"] == {"a": "hi"}
    assert (turn["prompt_tokens"], turn["tokens"]) == ({"a": 3}, {"a": 2})
    assert "token_ids" not in turn


def test_token_ids_are_kept_on_request():
    (turn,) = json.loads(json.dumps(episode_record(EPISODE, token_ids=True)))["turns"]
    assert turn["prompt_ids"] == {"a": [1, 2, 3]}
    assert turn["token_ids"] == {"a": [4, 5]}
    assert turn["logprobs"] == {"a": [-0.5, -1.5]}


def test_an_episode_is_read_back_as_it_was_but_for_what_the_environment_said():
    (turn,) = EPISODE.turns
    said = {"a": {"diagnostics": None}}
    counted = replace(ANSWER, usage=Usage(3, 2))
    expected = replace(EPISODE, turns=(replace(turn, completions={"a": counted}, infos=said),))
    line = json.dumps(episode_record(replace(EPISODE, turns=expected.turns), token_ids=True))
    assert parse_episode(line) == expected


def test_figures_of_a_file_are_those_of_the_episodes():
    line = json.dumps(episode_record(EPISODE))
    figures = [figures_of([each], ks=[1], seed=0) for each in (EPISODE, parse_episode(line))]
    assert figures[0] == figures[1]


@pytest.mark.parametrize("line", ["", "{", "3", "null", "[]", "{}", '{"turns": []}'])
def test_a_line_that_is_no_episode_is_refused(line):
    with pytest.raises(ConfigError, match="not an episode of mlrl"):
        parse_episode(line)
