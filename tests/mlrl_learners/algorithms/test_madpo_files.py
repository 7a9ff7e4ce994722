"""Preferences from a file of episodes."""

import pytest

from mlrl_learners.config.option_places import merge_options
from mlrl_learners.errors import ConfigError
from mlrl_learners.policies.tiny import tiny_model
from tests.mlrl_learners.algorithms.preference_learners import (
    AGENTS,
    episode,
    make,
    slow_logprob,
    write,
)


def test_a_likelihood_term_makes_the_better_answers_likelier_over_three_seeds(tmp_path):
    file = write(
        tmp_path / "e", episode("abcdefgh", "abcdefgh", 1.0), episode("abcdefgi", "abcdefgi", 0.0)
    )
    for seed in range(3):
        changes = {}
        for coefficient in (0.0, 1.0):
            learner = make(
                model=tiny_model(seed),
                preferences={"episodes": file},
                loss={"sft_coef": coefficient},
                optimizer={"lr": 1e-3},
            )
            (pair,) = learner.examples
            row, policy = pair.better["left"], learner.policies["left"]
            before = float(slow_logprob(policy, row, 1.0).detach())
            for _ in range(5):
                metrics = learner.update([])
            changes[coefficient] = float(slow_logprob(policy, row, 1.0).detach()) - before
            assert metrics["preferences/accuracy"] == 1.0
            assert ("preferences/sft_loss" in metrics) == (coefficient > 0)
        assert changes[1.0] > max(1.0, changes[0.0])


def test_pairs_of_a_file_are_joint_answers_to_the_same_prompts(tmp_path):
    file = write(
        tmp_path / "e",
        episode("a", "b", 0.1), episode("c", "d", 0.9), episode("e", "f", 0.5),
        episode("g", "h", 0.3, prompt="two"), episode("i", "j", 0.3, prompt="two"),
    )  # fmt: skip
    (pair,) = make(preferences={"episodes": file}).examples
    tokenizer = make().policies["left"].tokenizer
    texts = {
        side: [tokenizer.decode(list(getattr(pair, side)[agent].token_ids)) for agent in AGENTS]
        for side in ("better", "worse")
    }
    assert texts == {
        "better": ["c<|im_end|>", "d<|im_end|>"], "worse": ["a<|im_end|>", "b<|im_end|>"]
    }  # fmt: skip
    assert pair.gap == pytest.approx(0.8)


@pytest.mark.parametrize(("conversation", "worth"), [(False, ["d", "b"]), (True, ["e", "b"])])
def test_only_answers_to_the_same_chat_are_paired_where_earlier_turns_are_read(
    conversation, worth, tmp_path
):
    """All episodes read "go on" in turn 1; "d" comes after another answer than "b" and "e"."""
    firsts = [episode(first, first, 0.0) for first in "aca"]
    seconds = [
        episode(text, text, earned, prompt="go on")
        for text, earned in (("b", 0.1), ("d", 0.9), ("e", 0.5))
    ]
    shown = [
        {"return": 0.0, "turns": [*one["turns"], *two["turns"]]}
        for one, two in zip(firsts, seconds, strict=True)
    ]
    learner = make(
        preferences={"episodes": write(tmp_path / "e", *shown)}, team={"conversation": conversation}
    )
    _, pair = learner.examples  # the first one is of turn 0
    decode = learner.policies["left"].tokenizer.decode
    texts = [decode(list(each["left"].token_ids)) for each in (pair.better, pair.worse)]
    assert texts == [f"{text}<|im_end|>" for text in worth]
    assert pair.better["left"].prompt_ids == pair.worse["left"].prompt_ids


@pytest.mark.parametrize("from_file", [True, False])
def test_a_file_is_scored_at_temperature_1_and_what_is_played_at_its_own(from_file, tmp_path, toy):
    file = write(tmp_path / "e", episode("good", "fine", 0.9), episode("bad", "poor", 0.1))
    options = {"loss": {"beta": 1.0, "use_reference": False}, "sampling": {"temperature": 0.4}}
    learner = make(
        **merge_options(
            options,
            {"preferences": {"episodes": file}} if from_file else {"preferences": {"num_pairs": 1}},
        )
    )
    rollouts = [] if from_file else toy.play(learner, tasks=("one",))
    (pair,) = learner.examples if from_file else learner._played(rollouts)
    at = 1.0 if from_file else 0.4
    better, worse = (
        sum(slow_logprob(learner.policies[a], side[a], at).item() for a in AGENTS)
        for side in (pair.better, pair.worse)
    )
    margin = learner.update(rollouts)["preferences/margin"]
    assert margin == pytest.approx(better - worse, abs=1e-3)


def test_a_file_without_a_choice_is_an_error(tmp_path):
    learner = make(preferences={"episodes": write(tmp_path / "e", episode("a", "b", 0.1))})
    with pytest.raises(ConfigError, match=r"holds no two joint answers .* --samples 2 or more"):
        learner.update([])


def test_a_file_of_choices_that_make_no_difference_is_another_error(tmp_path):
    learner = make(preferences={"episodes": write(tmp_path / "e", *[episode("a", "b", 0.1)] * 3)})
    with pytest.raises(ConfigError, match="joint answers to the same prompts earned the same") as e:
        learner.update([])
    assert "2 or more" not in str(e.value)


def test_a_file_of_agents_that_do_not_learn_is_an_error(tmp_path):
    file = write(tmp_path / "e", episode("a", "b", 0.1), episode("c", "d", 0.9))
    with pytest.raises(ConfigError, match="for setup, story: its agents are left, ri"):
        make(agents=("setup", "story"), preferences={"episodes": file}).update([])


@pytest.mark.slow
def test_learning_from_a_file_raises_the_reward_over_three_seeds(tmp_path, toy):
    """As it is done: first imitate all that is in the file, then prefer the better half of it."""
    pairs = [("abcdefg", "1 3:5-7"), ("hijklmn", "%%?!;.,"), ("opqrstu", "123 567"),
             ("vwxyzab", "<<>>&&@")]  # fmt: skip
    shown = [episode(text, text, float(good), prompt=f"{task}, turn 0")
             for task in ("one", "a second task")
             for pair in pairs for good, text in zip((1, 0), pair, strict=True)]  # fmt: skip
    file = write(tmp_path / "e", *shown)

    def student(seed):
        imitator = make("sft", seed, examples={"episodes": file}, optimizer={"lr": 1e-2})
        for _ in range(40):
            imitator.update([])
        start = {a: (p.model, p.tokenizer) for a, p in imitator.policies.items()}
        return make(seed=seed, model=start, preferences={"episodes": file}, optimizer={"lr": 5e-4})

    low, _ = toy.interval(toy.gains(student, range(3), iterations=16))
    assert low > 0.1
