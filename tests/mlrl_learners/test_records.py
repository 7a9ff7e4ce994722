import json

from mlrl_learners.records import episode_record
from mlrl_learners.types import Completion, Episode, EpisodeTurn

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
