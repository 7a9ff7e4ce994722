import pytest

from mlrl_envs.datasets.debate import contrast_tasks, load_debate
from mlrl_envs.datasets.propositions import (
    VOCABULARY,
    load_topics,
    load_vocabulary,
    make_propositions,
)
from mlrl_envs.errors import InvalidDataError, UnknownNameError
from mlrl_envs.rewards.prose import content_of

LINES = VOCABULARY.read_text("utf-8").splitlines()


def test_every_topic_has_25_to_35_words():
    words = load_vocabulary()
    assert list(words) == [task.task_id for task in load_topics()]
    assert all(25 <= len(found) <= 35 for found in words.values())


def test_words_are_new_and_have_different_stems():
    for task in load_topics("topic"):
        known = content_of(" ".join((task.proposition, *task.pro_points, *task.con_points)))
        stems = content_of(" ".join(task.words))
        assert len(set(stems)) == len(stems) == len(task.words)
        assert not set(stems) & set(known)


def test_only_propositions_made_from_topics_get_words():
    for split in ("train", "eval", "sample"):
        plain, wide = load_debate(split), load_debate(split, vocabulary="topic")
        for task, other in zip(plain, wide, strict=True):
            assert task.task_id == other.task_id
            is_made = task.task_id.startswith(f"debate/{split}/")
            assert (task == other) != is_made


def test_tasks_and_contrast_have_the_same_words():
    contrast = {task.words for task in contrast_tasks("topic")}
    assert {task.words for task in make_propositions("eval", "topic")} <= contrast


def test_without_the_option_there_are_no_words():
    tasks = (*make_propositions("train"), *make_propositions("eval"), *load_topics())
    assert not any(task.words for task in tasks)
    assert contrast_tasks() == contrast_tasks("points")


@pytest.mark.parametrize(
    ("lines", "error", "message"),
    [
        (LINES[1:], InvalidDataError, "own.txt has no line for electric scooters"),
        ([*LINES, LINES[0]], InvalidDataError, "line 41 has 'electric scooters' again"),
        (["electric scooters | "], InvalidDataError, "line 1 has no words for 'electric scooters'"),
        (["electric scooter | helmet"], UnknownNameError, "did you mean 'electric scooters'"),
    ],
)
def test_bad_file_is_refused(tmp_path, lines, error, message):
    file = tmp_path / "own.txt"
    file.write_text("\n".join(lines), "utf-8")
    with pytest.raises(error, match=message):
        load_vocabulary(file)


def test_unknown_vocabulary_is_refused():
    with pytest.raises(UnknownNameError, match="did you mean 'topic'"):
        load_debate("train", vocabulary="topics")
