"""Examples of imitation, from a file or from the learner's own answers."""

import pytest

from mlrl_learners.engine import TokenRow
from mlrl_learners.errors import ConfigError
from mlrl_learners.policies import tiny_model
from tests.mlrl_learners.algorithms.sft_learners import episode, make, texts, write

EOS = tiny_model()[1].eos_token_id


def test_an_answer_is_its_tokens_and_its_end_and_the_prompt_what_is_sampled_from(tmp_path):
    learner = make(examples={"episodes": write(tmp_path / "e", episode("ab", "c"))})
    (row,) = learner.examples["left"]
    assert row.token_ids == (*learner.policies["left"].tokenizer("ab")["input_ids"], EOS)
    (asked,) = learner.act([{"left": "one, turn 0"}])
    assert tuple(row.prompt_ids) == asked["left"][0].prompt_ids


@pytest.mark.parametrize(
    ("text", "reason", "num_tokens", "has_end"),
    [
        ("", "stop", 1, True),
        ("ab", "stop", 3, True),
        ("ab", "length", 2, False),  # it was cut: nobody said that it ends here
        ("x" * 20, "stop", 8, False),  # and here it is cut
        ("a<|im_end|>", "length", 8, False),  # text that looks like an end is text
        ("\ud800", "stop", 2, True),
    ],
)
def test_only_an_answer_that_ended_is_taught_to_end(text, reason, num_tokens, has_end, tmp_path):
    learner = make(examples={"episodes": write(tmp_path / "e", episode(text, "c", reason=reason))})
    (row,) = learner.examples["left"]
    assert (len(row.token_ids), row.token_ids[-1] == EOS) == (num_tokens, has_end)
    assert row.token_ids.count(EOS) == int(has_end)


def test_an_answer_that_the_token_limit_cuts_is_told_once(tmp_path):
    file = write(tmp_path / "some.jsonl", *[episode("more than eight", "short")] * 2)
    learner = make(examples={"episodes": file})
    with pytest.warns(RuntimeWarning, match=r"'left' has 16 tokens .*max_new_tokens 8") as told:
        assert learner.examples
    assert len(told) == 1


@pytest.mark.parametrize(("left", "reason"), [("seven..", "stop"), ("a cut answer", "length")])
def test_an_answer_that_fits_or_did_not_end_is_no_news(left, reason, tmp_path, recwarn):
    file = write(tmp_path / "some.jsonl", episode(left, "short", reason=reason))
    assert make(examples={"episodes": file}).examples
    assert not recwarn


def test_an_answer_ends_with_what_ends_a_turn_in_the_template(tmp_path):
    """Released base models often have another `eos_token`."""
    model, tokenizer = tiny_model()
    tokenizer.add_special_tokens({"eos_token": "<|endoftext|>"})
    model.resize_token_embeddings(len(tokenizer))
    learner = make(
        model=(model, tokenizer), examples={"episodes": write(tmp_path / "e", episode("ab", "c"))}
    )
    (row,) = learner.examples["left"]
    assert row.token_ids[-1] == EOS != tokenizer.eos_token_id
    assert {EOS, tokenizer.eos_token_id} <= set(learner.policies["left"].eos_ids)


def test_a_cut_answer_of_nothing_is_no_example(tmp_path):
    learner = make(examples={"episodes": write(tmp_path / "e", episode("", "c", reason="length"))})
    assert learner.examples["left"] == []
    assert set(learner.update([])) == {
        f"right/{name}" for name in ("loss", "grad_norm", "lr", "entropy", "tokens")
    }


def test_each_agent_may_have_a_file_of_its_own(tmp_path):
    files = {
        "left": write(tmp_path / "l", episode("ab", "cd")),
        "right": write(tmp_path / "r", episode("ef", "gh")),
    }
    learner = make(examples={"episodes": files})
    assert texts(learner, learner.examples["left"]) == ["ab<|im_end|>"]
    assert texts(learner, learner.examples["right"]) == ["gh<|im_end|>"]


@pytest.mark.parametrize(("predict", "numbers"), [("actions", 2), ("observations", 1), ("both", 3)])
def test_actions_observations_or_both_are_learnt(predict, numbers, tmp_path):
    file = write(tmp_path / "e", episode("ab", "cd", later="next"))
    learner = make(examples={"episodes": file, "predict": predict})
    rows = learner.examples["left"]
    assert len(rows) == numbers
    if predict != "actions":
        (row,) = [row for row in rows if texts(learner, [row]) == ["next<|im_end|>"]]
        asked = learner.policies["left"].tokenizer.decode(list(row.prompt_ids))
        assert "one, turn 0\n\n[left]\nab\n\n[right]\ncd\n\nWhat is read next?" in asked


def test_every_example_comes_once_before_any_comes_again(tmp_path):
    file = write(tmp_path / "e", *(episode(letter, "x") for letter in "abcdef"))
    learner = make(examples={"episodes": file, "batch_size": 2})
    drawn = []
    for _ in range(6):
        learner._updates += 1
        drawn += texts(learner, learner._drawn()["left"])
    assert sorted(drawn[:6]) == sorted(drawn[6:]) == [f"{x}<|im_end|>" for x in "abcdef"]
    assert drawn[:6] != drawn[6:]


def test_without_a_file_own_answers_that_earned_enough_are_learnt_token_by_token(toy):
    learner = make()
    rollouts = toy.play(learner)
    steps = [(r.root, step) for r in rollouts for step in r.root.steps]
    low = sorted(step.rewards["left"] for _, step in steps)[-3]
    learner = make(examples={"filter_reward": low})
    expected = {
        TokenRow(answer.prompt_ids, answer.token_ids)
        for node, step in steps
        if step.rewards["left"] >= low
        for answer in [node.completions["left"][step.samples["left"]]]
    }
    assert set(learner._played(rollouts)["left"]) == expected
    assert len(expected) == 3


def test_a_line_is_judged_by_all_its_turns(toy):
    rewards = iter([0.0] * 8 + [1.0, 1.0] * 64)
    learner = make(group={"size": 2}, examples={"filter_reward": 1.0})
    rollouts = toy.play(learner, max_turns=2, reward=lambda *_: next(rewards))
    assert len(learner._played(rollouts)["left"]) == 2 * (2 + 4)


def test_a_file_with_nothing_to_learn_from_is_an_error(tmp_path):
    learner = make(
        examples={
            "episodes": write(tmp_path / "e", episode("a", "b", earned=0.2)),
            "filter_reward": 0.5,
        }
    )
    with pytest.raises(ConfigError, match=r"nothing to learn actions from .* filter_reward=0.5"):
        learner.update([])
