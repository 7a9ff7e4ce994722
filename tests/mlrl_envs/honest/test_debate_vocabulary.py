"""Arguments without a word of the key points, on propositions made from topics.

`debate_made.jsonl` was written from the propositions; words of the key points were replaced before
any argument was scored.
"""

import json
import random
from pathlib import Path
from statistics import fmean

import pytest

import mlrl_envs
from mlrl_envs.rewards.prose import content_of

LINES = (Path(__file__).parent / "debate_made.jsonl").read_text("utf-8").splitlines()
HONEST = [json.loads(line) for line in LINES]
# Topics of the same field, by the topic of an argument.
NEAR = {6: 25, 8: 9, 9: 8, 10: 11, 17: 16, 19: 18, 23: 22, 32: 31, 34: 35}
FRAMES = (
    "The {} is the heart of this question, because so much in our daily lives depends on it.",
    "If we look at the {} more closely, things are not as simple as they seem at first.",
    "For example, a friend of mine learned about the {} the hard way and would not do it again.",
    "Nobody who has seen the {} with their own eyes would say that it can go on like this.",
    "In the end the {} will decide whether we are better off, and that is why I hold this view.",
)


def _earned(split, task_id, actions, vocabulary="topic"):
    env = mlrl_envs.make("mlrl/debate-v1", split=split, vocabulary=vocabulary)
    env.reset(options={"task_id": task_id})
    return list(env.step(actions)[1].values()), env.task


def _split_of(topic):
    return "eval" if topic % 5 == 4 else "train"


@pytest.mark.parametrize("entry", HONEST, ids=lambda entry: entry["task_id"])
def test_arguments_in_other_words_are_paid_with_the_vocabulary_alone(entry):
    split, task_id, (actions,) = entry["split"], entry["task_id"], entry["turns"]
    plain, task = _earned(split, task_id, actions, "points")
    points = set(content_of(" ".join((*task.pro_points, *task.con_points))))
    said = set(content_of(" ".join(actions.values())))
    assert not said & points - set(content_of(task.proposition))
    assert max(plain) < 0.1
    assert min(_earned(split, task_id, actions)[0]) > 0.8


def test_arguments_to_another_topic_earn_little():
    moved = [
        value
        for entry in HONEST
        for other in HONEST
        if other is not entry
        for value in _earned(entry["split"], entry["task_id"], other["turns"][0])[0]
    ]
    assert fmean(moved) < 0.05
    assert max(moved) < 0.5


def test_arguments_to_another_topic_of_the_field_earn_little():
    earned = []
    for entry in HONEST:
        near = NEAR.get(int(entry["task_id"].split("/")[2]))
        if near is not None:
            split = _split_of(near)
            earned += _earned(split, f"debate/{split}/{near}/1/1", entry["turns"][0])[0]
    assert fmean(earned) < 0.2


def test_words_of_the_field_in_frames_earn_less_than_arguments():
    honest, stuffed = [], []
    rng = random.Random(0)
    for entry in HONEST:
        values, task = _earned(entry["split"], entry["task_id"], entry["turns"][0])
        honest += values
        actions = {
            agent: " ".join(
                frame.format(word)
                for frame, word in zip(FRAMES, rng.sample(task.words, 5), strict=True)
            )
            for agent in ("pro", "con")
        }
        stuffed += _earned(entry["split"], entry["task_id"], actions)[0]
    assert fmean(stuffed) < fmean(honest)


def test_a_list_of_the_words_earns_nothing():
    for entry in HONEST:
        split, task_id = entry["split"], entry["task_id"]
        _, task = _earned(split, task_id, entry["turns"][0])
        said = f"The {', '.join(task.words)}."
        assert max(_earned(split, task_id, {"pro": said, "con": said})[0]) < 0.2
