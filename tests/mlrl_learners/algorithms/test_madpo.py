import json
import math

import pytest
import torch

import mlrl_learners
from mlrl_learners.algorithms.pair_loss import pair_loss
from mlrl_learners.algorithms.preference_options import PreferenceLossOptions
from mlrl_learners.config.option_places import merge_options
from mlrl_learners.errors import ConfigError, NumericsError, UnknownNameError
from mlrl_learners.functional.preferences import preference_loss
from mlrl_learners.policies.tiny import tiny_model
from mlrl_learners.testing import check_learner
from mlrl_learners.types import Node, Rollout, RolloutConfig

AGENTS = ("left", "right")
KINDS = ["sigmoid", "hinge", "ipo"]
SIMPO = {"per_token": True, "target_margin": 0.5, "beta": 2.0, "use_reference": False}


def make(name="madpo", seed=0, agents=AGENTS, **options):
    small = {
        "model": "tiny-random",
        "sampling": {"max_new_tokens": 8},
        "compute": {"device": "cpu"},
        "group": {"size": 8},
    }
    return mlrl_learners.make(name, agents=agents, seed=seed, **merge_options(small, options))


def disturb(learner, size=0.05):
    """Move the weights away from the reference."""
    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for policy in learner.policies.values():
            for parameter in policy.model.parameters():
                parameter.add_(size * torch.randn(parameter.shape, generator=generator))


def weights(learner):
    return [p.clone() for policy in learner.policies.values() for p in policy.model.parameters()]


def episode(left, right, earned, prompt="one, turn 0"):
    turn = {
        "observations": dict.fromkeys(AGENTS, prompt),
        "actions": {"left": left, "right": right},
        "rewards": dict.fromkeys(AGENTS, earned),
    }
    return {"return": earned, "turns": [turn]}


def write(path, *episodes):
    path.write_text("".join(json.dumps(each) + "\n" for each in episodes))
    return str(path)


def slow_logprob(policy, row, temperature):
    """The log-probability of one whole answer, by the model's own logits."""
    ids = torch.tensor([[*row.prompt_ids, *row.token_ids]])
    logprobs = (policy.model(input_ids=ids).logits[0] / temperature).log_softmax(-1)
    start = len(row.prompt_ids)
    return sum(logprobs[i - 1, ids[0, i]] for i in range(start, ids.shape[1]))


def slow_loss(learner, pairs, temperature):
    """The loss of a team as one graph, a pair and an agent at a time."""
    loss, losses = learner.config.loss, []
    for pair in pairs:
        ratios, likelihoods = [], []
        for side in (pair.better, pair.worse):
            ratio = whole = 0.0
            for agent, row in side.items():
                name = learner.policy_of[agent]
                own = slow_logprob(learner.policies[name], row, temperature)
                whole, ratio = whole + own, ratio + own
                if loss.use_reference:
                    with torch.no_grad():
                        expected = slow_logprob(learner.references[name], row, temperature)
                    ratio = ratio - expected
            tokens = sum(len(row.token_ids) for row in side.values())
            ratios.append(ratio / tokens if loss.per_token else ratio)
            likelihoods.append(whole / tokens)
        of_margin = preference_loss(
            (ratios[0] - ratios[1])[None],
            beta=loss.beta,
            kind=loss.kind,
            label_smoothing=loss.label_smoothing,
            target_margin=loss.target_margin,
        )
        losses.append(of_margin.sum() - loss.sft_coef * likelihoods[0])
    return sum(losses) / len(losses)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"loss": {"use_reference": False}},
        {"loss": {"label_smoothing": 0.2}},
        {"team": {"share_weights": True}},
        {"loss": SIMPO},
        {"loss": {"sft_coef": 1.0}},
    ],
    ids=["plain", "reference-free", "smoothed", "shared", "simpo", "rpo"],
)
@pytest.mark.parametrize("from_file", [False, True], ids=["played", "file"])
def test_loss_and_gradient_equal_a_slow_reference(
    from_file, kind, options, toy, monkeypatch, tmp_path
):
    episodes = [episode("good", "fine", 0.9), episode("bad one", "", 0.1)]
    file = {"preferences": {"episodes": write(tmp_path / "e", *episodes)}}
    small = {"loss": {"kind": kind}, "group": {} if from_file else {"size": 4}}
    learner = make(**merge_options(options, small, file if from_file else {}))
    disturb(learner)
    rollouts = [] if from_file else toy.play(learner)
    pairs = learner.examples if from_file else list(learner._played(rollouts))
    loss = slow_loss(learner, pairs, 1.0 if from_file else learner.config.sampling.temperature)
    expected = []
    for policy in learner.policies.values():
        parts = torch.autograd.grad(loss, list(policy.model.parameters()), retain_graph=True)
        expected.append(torch.cat([part.flatten() for part in parts]))
    found = toy.gradients(learner, rollouts, monkeypatch)
    scale = max(float(each.abs().max()) for each in expected)
    assert all(
        torch.allclose(a, b, atol=1e-4 * scale) for a, b in zip(found, expected, strict=True)
    )
    assert scale > 1e-5
    assert learner.update(rollouts)["preferences/loss"] == pytest.approx(loss.item(), rel=1e-4)


def test_per_token_a_margin_does_not_depend_on_the_length_of_the_answers():
    logprobs, nothing = torch.tensor([[-2.0, -9.0]], dtype=torch.float64), torch.zeros(1, 2)
    lengths = torch.tensor([[1.0, 3.0]])
    losses = {
        (per_token, times): float(
            pair_loss(
                logprobs * times,
                nothing,
                lengths * times,
                PreferenceLossOptions(per_token=per_token, use_reference=False),
            )[0]
        )
        for per_token in (True, False)
        for times in (1, 2)
    }
    assert losses[True, 1] == pytest.approx(losses[True, 2])
    assert losses[False, 1] > losses[False, 2]


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


@pytest.mark.parametrize("change", ["micro_batches", "unpacked", "permuted"])
def test_how_rows_are_batched_leaves_the_gradient_equal(change, toy, monkeypatch):
    whole = make()
    other = make(compute={"micro_batch_tokens": 1}) if change == "micro_batches" else make()
    if change == "unpacked":
        for policy in other.policies.values():
            policy.engine.override(packs_prompts=False)
    rollouts = toy.play(whole)
    expected = toy.gradients(whole, rollouts, monkeypatch)
    shown = rollouts[::-1] if change == "permuted" else rollouts
    found = toy.gradients(other, shown, monkeypatch)
    assert all(torch.allclose(a, b, atol=1e-6) for a, b in zip(found, expected, strict=True))
    assert all(float(each.abs().max()) > 1e-5 for each in expected)


def test_relabelling_agents_that_share_weights_leaves_the_gradient_equal(toy, monkeypatch):
    learner = make(team={"share_weights": True})
    rollouts = toy.play(learner)
    expected = toy.gradients(learner, rollouts, monkeypatch)
    other = {"left": "right", "right": "left"}
    swapped = [
        Rollout("t", r.task_id, AGENTS, Node(
            0, r.root.observations,
            {other[agent]: group for agent, group in r.root.completions.items()},
            r.root.steps,
        ))
        for r in rollouts
    ]  # fmt: skip
    found = toy.gradients(learner, swapped, monkeypatch)
    assert all(torch.allclose(a, b, atol=1e-6) for a, b in zip(found, expected, strict=True))


def test_at_the_start_a_reference_makes_every_margin_nothing(toy):
    metrics = make().update(toy.play(make()))
    assert metrics["preferences/margin"] == pytest.approx(0.0, abs=1e-3)
    assert metrics["preferences/loss"] == pytest.approx(math.log(2), abs=1e-4)
    assert metrics["preferences/gap"] > 0


def test_an_update_prefers_what_was_preferred(toy):
    learner = make(optimizer={"lr": 1e-3})
    rollouts = toy.play(learner)
    learner.update(rollouts)
    after = learner.update(rollouts)
    assert after["preferences/margin"] > 0
    assert after["preferences/accuracy"] > 0.7
    assert after["preferences/loss"] < math.log(2)


def test_pairs_share_a_prompt_and_are_those_of_largest_gap(toy):
    learner = make(preferences={"num_pairs": 2})
    rollouts = toy.play(learner)
    pairs = list(learner._played(rollouts))
    assert len(pairs) == 2 * len(rollouts)
    for pair in pairs:
        for agent in AGENTS:
            assert pair.better[agent].prompt_ids == pair.worse[agent].prompt_ids
    for rollout, first in zip(rollouts, pairs[::2], strict=True):
        rewards = [step.rewards["left"] for step in rollout.root.steps]
        assert first.gap == pytest.approx(max(rewards) - min(rewards))


def test_equal_rewards_change_nothing(toy):
    learner = make()
    before = weights(learner)
    metrics = learner.update(toy.play(learner, reward=lambda *_: 0.7))
    assert metrics["preferences/pairs"] == 0.0
    assert all(torch.equal(a, b) for a, b in zip(before, weights(learner), strict=True))


def test_several_epochs_take_as_many_steps(toy):
    learner = make(optimizer={"epochs": 3})
    learner.update(toy.play(learner))
    assert [optimizer.num_steps for optimizer in learner.optimizers.values()] == [3, 3]


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


def test_a_single_answer_a_prompt_is_no_choice(tmp_path):
    with pytest.raises(ConfigError, match=r"num_samples must be at least 2 .* got 1"):
        make().check_rollout(RolloutConfig(1))
    file = write(tmp_path / "e", episode("a", "b", 0.1), episode("c", "d", 0.9))
    make(preferences={"episodes": file}).check_rollout(RolloutConfig(1))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"group": {"size": 1}}, r"group\.size must be at least 2, got 1"),
        ({"preferences": {"num_pairs": 0}}, "num_pairs must be at least 1, got 0"),
        ({"loss": {"beta": 0.0}}, "beta must be above 0, got 0"),
        ({"loss": {"label_smoothing": 0.5}}, r"label_smoothing must be in \[0, 0.5\), got 0.5"),
        ({"loss": {"sft_coef": -1.0}}, r"loss\.sft_coef must be at least 0, got -1"),
        ({"loss": {"target_margin": -1.0}}, r"loss\.target_margin must be at least 0, got -1"),
        ({"preferences": {"gamma": 1.5}}, r"gamma must be in \[0, 1\], got 1.5"),
        ({"loss": {"kind": "hing"}}, "loss.kind must be sigmoid or hinge or ipo, got 'hing'"),
        ({"bta": 1.0}, "did you mean 'loss.beta'"),
    ],
)
def test_a_mistake_is_one_clear_line(options, message):
    with pytest.raises((ConfigError, UnknownNameError), match=message):
        make(**options)


def test_dpo_is_for_one_agent():
    with pytest.raises(ConfigError, match=r"dpo trains one agent, got 2 .* take madpo"):
        make("dpo")
    assert make("dpo", agents=("solo",)).agents == ("solo",)


def test_a_loss_that_is_not_finite_is_an_error(toy):
    learner = make()
    rollouts = toy.play(learner)
    disturb(learner, float("nan"))
    with pytest.raises(NumericsError, match="loss of 'preferences' is nan"):
        learner.update(rollouts)


def test_saved_and_loaded_it_goes_on_exactly_where_it_was(tmp_path, toy):
    learner, other = make(seed=0), make(seed=99)
    learner.update(toy.play(learner))
    learner.save(tmp_path)
    other.load(tmp_path)
    for each in (learner, other):
        each.update(toy.play(each))
    assert all(torch.equal(a, b) for a, b in zip(weights(learner), weights(other), strict=True))


def test_what_a_failed_update_left_is_not_trained_on(tmp_path):
    file = write(tmp_path / "e", episode("a", "b", 1.0), episode("c", "d", 0.0))
    learner, twin = make(preferences={"episodes": file}), make(preferences={"episodes": file})
    for parameter in learner.policies["left"].model.parameters():
        parameter.grad = torch.ones_like(parameter)
    learner.update([])
    twin.update([])
    assert all(map(torch.equal, weights(learner), weights(twin)))


@pytest.mark.parametrize("name", ["madpo", "dpo"])
def test_the_contract_of_a_learner_is_kept(name):
    agents = AGENTS if name == "madpo" else ("solo",)
    check_learner(lambda: make(name, agents=agents, optimizer={"lr": 1e-3}))


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
