import json

import pytest
import torch

import mlrl_learners
from mlrl_learners.config.option_places import merge_options
from mlrl_learners.errors import ConfigError, NumericsError, UnknownNameError
from mlrl_learners.testing import check_learner
from tests.mlrl_learners.algorithms.sft_learners import episode, make, weights, write


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
