import pytest

from mlrl_envs.datasets.story import EVAL_PROMPTS, TEST_PROMPTS, TRAIN_PROMPTS, load_story
from mlrl_envs.errors import InvalidArgumentError, UnknownNameError


def test_ten_prompts_to_train_on_and_ten_others_to_evaluate():
    assert len(set(TRAIN_PROMPTS)) == len(set(EVAL_PROMPTS)) == 10
    assert not set(TRAIN_PROMPTS) & set(EVAL_PROMPTS)


def test_fifty_other_prompts_to_test_on():
    assert len(set(TEST_PROMPTS)) == 50
    assert not set(TEST_PROMPTS) & {*TRAIN_PROMPTS, *EVAL_PROMPTS}
    assert all(prompt.startswith(("Describe ", "Tell of ")) for prompt in TEST_PROMPTS)
    assert all(len(set(task.words)) >= 70 for task in load_story("test"))


def test_all_is_train_and_eval():
    assert load_story("all") == load_story("train") + load_story("eval")


def test_ids_are_unique():
    tasks = (*load_story("all"), *load_story("test"))
    assert len({task.task_id for task in tasks}) == 70


def test_own_prompts_replace_the_built_in_ones():
    tasks = load_story("train", ["Write about rain:", "Write about sun:"])
    assert [task.prompt for task in tasks] == ["Write about rain:", "Write about sun:"]


@pytest.mark.parametrize("prompts", [[], "one text", [""], ["x", 3], ["x", None]])
def test_senseless_prompts_are_refused(prompts):
    with pytest.raises(InvalidArgumentError, match="prompts must be"):
        load_story("train", prompts)


def test_unknown_split_is_refused():
    with pytest.raises(UnknownNameError, match="did you mean 'train'"):
        load_story("trian")
