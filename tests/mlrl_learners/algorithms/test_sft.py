import json

import pytest
import torch

import mlrl_learners
from mlrl_learners.config.option_places import merge_options
from mlrl_learners.engine import TokenRow
from mlrl_learners.errors import ConfigError, NumericsError, UnknownNameError
from mlrl_learners.policies import tiny_model
from mlrl_learners.testing import check_learner

AGENTS = ("left", "right")
EOS = tiny_model()[1].eos_token_id


def make(seed=0, agents=AGENTS, **options):
    small = {
        "model": "tiny-random",
        "sampling": {"max_new_tokens": 8},
        "compute": {"device": "cpu"},
    }
    return mlrl_learners.make("sft", agents=agents, seed=seed, **merge_options(small, options))


def episode(left, right, earned=1.0, prompt="one, turn 0", reason="stop", later=None):
    first = {
        "observations": dict.fromkeys(AGENTS, prompt),
        "actions": {"left": left, "right": right},
        "finish_reasons": dict.fromkeys(AGENTS, reason),
    }
    turns = [first]
    if later is not None:
        actions = dict.fromkeys(AGENTS, "end")
        turns.append({"observations": dict.fromkeys(AGENTS, later), "actions": actions})
    return {"return": earned, "turns": turns}


def write(path, *episodes):
    path.write_text("".join(json.dumps(each) + "\n" for each in episodes))
    return str(path)


def weights(learner):
    return [p.clone() for policy in learner.policies.values() for p in policy.model.parameters()]


def texts(learner, rows, agent="left"):
    tokenizer = learner.policies[learner.policy_of[agent]].tokenizer
    return [tokenizer.decode(list(row.token_ids)) for row in rows]


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


def slow_loss(learner, rows):
    """The mean over completion tokens of -log pi, a row at a time."""
    model = learner.policies["left"].model
    found = []
    for row in rows:
        ids = torch.tensor([[*row.prompt_ids, *row.token_ids]])
        logprobs = model(input_ids=ids).logits[0].detach().double().log_softmax(-1)
        first = len(row.prompt_ids)
        found += [float(logprobs[i - 1, ids[0, i]]) for i in range(first, ids.shape[1])]
    return -sum(found) / len(found)


@pytest.mark.parametrize("temperature", [0.7, 1.0])
def test_the_loss_equals_a_slow_reference_over_completion_tokens(temperature, tmp_path):
    file = write(tmp_path / "e", episode("a", "c"), episode("a long one", "d", prompt="two"))
    learner = make(examples={"episodes": file}, sampling={"temperature": temperature})
    expected = slow_loss(learner, learner.examples["left"])
    metrics = learner.update([])
    assert metrics["left/loss"] == pytest.approx(expected, abs=1e-4)
    assert metrics["left/tokens"] == 2 + 8


@pytest.mark.parametrize("change", [{"compute": {"micro_batch_tokens": 1}}, {"unpacked": True}])
def test_micro_batches_and_padding_leave_the_gradient_equal(change, tmp_path, toy, monkeypatch):
    file = write(tmp_path / "e", episode("a", "c"), episode("a long one", "dd", prompt="two"))
    options = {name: value for name, value in change.items() if name != "unpacked"}
    whole, other = (
        make(examples={"episodes": file}),
        make(**merge_options(options, {"examples": {"episodes": file}})),
    )
    if "unpacked" in change:
        for policy in other.policies.values():
            policy.engine.override(packs_prompts=False)
    expected = toy.gradients(whole, [], monkeypatch)
    found = toy.gradients(other, [], monkeypatch)
    assert all(torch.allclose(a, b, atol=1e-6) for a, b in zip(found, expected, strict=True))
    assert all(float(each.abs().max()) > 1e-4 for each in expected)


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


def test_nothing_good_enough_changes_nothing(toy):
    learner = make(examples={"filter_reward": 9.0})
    before = weights(learner)
    metrics = learner.update(toy.play(learner))
    assert not any(name.endswith("/loss") for name in metrics)
    assert all(torch.equal(a, b) for a, b in zip(before, weights(learner), strict=True))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"examples": {"batch_size": 0}}, "batch_size must be at least 1, got 0"),
        (
            {"examples": {"predict": "all"}},
            "predict must be actions or observations or both, got 'all'",
        ),
        ({"examples": {"episodes": {"lift": "x"}}}, "unknown agent 'lift'; did you mean 'left'"),
        ({"filter_rewrad": 1}, "did you mean 'examples.filter_reward'"),
    ],
)
def test_a_mistake_is_one_clear_line(options, message):
    with pytest.raises((ConfigError, UnknownNameError), match=message):
        make(**options)


def test_a_file_with_nothing_to_learn_from_is_an_error(tmp_path):
    learner = make(
        examples={
            "episodes": write(tmp_path / "e", episode("a", "b", earned=0.2)),
            "filter_reward": 0.5,
        }
    )
    with pytest.raises(ConfigError, match=r"nothing to learn actions from .* filter_reward=0.5"):
        learner.update([])


def test_a_loss_that_is_not_finite_is_an_error(tmp_path):
    learner = make(examples={"episodes": write(tmp_path / "e", episode("a", "b"))})
    with torch.no_grad():
        learner.policies["left"].model.model.norm.weight.fill_(float("nan"))
    with pytest.raises(NumericsError, match="loss of 'left' is nan"):
        learner.update([])


def test_what_a_failed_update_left_is_not_trained_on(tmp_path):
    file = write(tmp_path / "e", episode("a", "b"))
    learner, twin = make(examples={"episodes": file}), make(examples={"episodes": file})
    for parameter in learner.policies["left"].model.parameters():
        parameter.grad = torch.ones_like(parameter)
    learner.update([])
    twin.update([])
    assert all(map(torch.equal, weights(learner), weights(twin)))


def test_saved_and_loaded_it_goes_on_exactly_where_it_was(tmp_path):
    file = write(tmp_path / "e", *(episode(letter, "x") for letter in "abcdef"))
    learner, other = (make(seed, examples={"episodes": file, "batch_size": 2}) for seed in (0, 99))
    learner.update([])
    learner.save(tmp_path / "saved")
    other.load(tmp_path / "saved")
    for each in (learner, other):
        each.update([])
    assert all(torch.equal(a, b) for a, b in zip(weights(learner), weights(other), strict=True))


def test_a_run_from_a_file_plays_nothing_and_resumes_bit_exactly(tmp_path, addition_env):
    file = write(tmp_path / "e", *(episode(letter, "x", prompt="1") for letter in "abcdef"))

    def run(folder, iterations, **options):
        learner = make(examples={"episodes": file, "batch_size": 2}, optimizer={"lr": 1e-2})
        mlrl_learners.train(
            env_id=addition_env, learner=learner, iterations=iterations,
            run_dir=tmp_path / folder, progress=False, **options,
        )  # fmt: skip
        return learner

    whole = run("whole", 4)
    run("parts", 2)
    parts = run("parts", 4, resume=True)
    assert all(torch.equal(a, b) for a, b in zip(weights(whole), weights(parts), strict=True))
    assert (tmp_path / "parts" / "episodes.jsonl").read_text() == ""
    lines = (tmp_path / "parts" / "metrics.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    assert [record["iteration"] for record in records] == [1, 2, 3, 4]
    assert records[3]["left/loss"] < records[0]["left/loss"]


def test_the_contract_of_a_learner_is_kept():
    check_learner(lambda: make(optimizer={"lr": 1e-3}))


@pytest.mark.slow
def test_imitating_letters_raises_the_reward_over_three_seeds(tmp_path, toy):
    letters = ["abcdefg", "hijklmn", "opqrstu", "vwxyzab"]
    shown = [episode(text, text[::-1], prompt=f"{task}, turn 0") for text in letters
             for task in ("one", "a second task")]  # fmt: skip
    file = write(tmp_path / "e", *shown)
    gains = toy.gains(
        lambda seed: make(seed, examples={"episodes": file}, optimizer={"lr": 1e-2}),
        range(3),
        iterations=20,
    )
    low, _ = toy.interval(gains)
    assert low > 0.1


@pytest.mark.slow
def test_imitating_its_own_best_answers_raises_the_reward_over_three_seeds(toy):
    def student(seed):  # at 1e-2 seeds differ by as much as they gain
        return make(
            seed, group={"size": 8}, examples={"filter_reward": 0.4}, optimizer={"lr": 5e-3}
        )

    low, _ = toy.interval(toy.gains(student, range(3), iterations=25))
    assert low > 0.05
