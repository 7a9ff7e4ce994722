import math
import random

import pytest
import torch

from mlrl_learners.algorithms.reward_model import RewardModel, TextPair, joint_text
from mlrl_learners.errors import CheckpointError, NumericsError
from mlrl_learners.policies import Policy, tiny_model
from mlrl_learners.policies.optimizer import OptimizerConfig

PAIRS = [
    TextPair("read this\n\nabcd", "read this\n\n1 3!", 1.0),
    TextPair("read this\n\nabcd", "read this\n\n%%", 0.7),
    TextPair("and a longer text to read\n\nxy", "and a longer text to read\n\n9", 0.2),
]


def make(seed=0, *, budget=1024, smoothing=0.0, lr=1e-3, heard=True):
    model = RewardModel(
        Policy(*tiny_model(seed)),
        OptimizerConfig(lr=lr, max_grad_norm=0.0),
        micro_batch_tokens=budget,
        label_smoothing=smoothing,
    )
    if heard:  # a head with opinions, so that the model under it has a gradient
        with torch.no_grad():
            generator = torch.Generator().manual_seed(seed)
            weight = model._critic.head.weight
            weight.copy_(0.3 * torch.randn(weight.shape, generator=generator))
    return model


def slow_score(model, text):
    """One text at a time: the head on the model's last state."""
    ids = torch.tensor([model._format.encode(text)])
    states = model._critic.trunk.model.model(input_ids=ids).last_hidden_state
    return model._critic.head(states[0, -1])[0]


def slow_loss(model, pairs, smoothing):
    losses = []
    for pair in pairs:
        margin = slow_score(model, pair.better) - slow_score(model, pair.worse)
        right, wrong = torch.sigmoid(margin).log(), torch.sigmoid(-margin).log()
        losses.append(-(1 - smoothing) * right - smoothing * wrong)
    return torch.stack(losses).mean()


def gradient(model, pairs, monkeypatch):
    found = []

    def record(self):
        found.append(torch.cat([p.grad.flatten().clone() for p in self.parameters]))
        return 1.0

    with monkeypatch.context() as patch:
        patch.setattr("mlrl_learners.policies.optimizer.PolicyOptimizer.step", record)
        metrics = model.learn(pairs, 1)
    return found[0], metrics


def test_a_joint_text_is_what_all_read_and_then_what_all_wrote_in_the_order_of_agents():
    text = joint_text({"b": "read b", "a": "read a"}, {"b": "wrote b", "a": "wrote a"}, ("a", "b"))
    assert text == ("[a]\nread a\n\n[b]\nread b\n\n[a] answers:\nwrote a\n\n[b] answers:\nwrote b")


def test_before_the_first_lesson_all_answers_are_worth_the_same():
    model = make(heard=False)
    assert model.scores(["a", "b", "a"]) == [0.0, 0.0, 0.0]
    assert model.accuracy(PAIRS) == 0.5


def test_a_score_depends_on_nothing_read_beside_it():
    model = make()
    texts = [side for pair in PAIRS for side in (pair.better, pair.worse)]
    alone = [model.scores([text])[0] for text in texts]
    assert model.scores(texts) == pytest.approx(alone, abs=1e-5)
    assert model.scores(texts[::-1]) == pytest.approx(alone[::-1], abs=1e-5)
    assert make(budget=1).scores(texts) == pytest.approx(alone, abs=1e-5)
    assert alone == pytest.approx([slow_score(model, text).item() for text in texts], abs=1e-5)


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
@pytest.mark.parametrize("budget", [1, 1024])
def test_loss_and_gradient_equal_a_slow_reference(smoothing, budget, monkeypatch):
    model = make(budget=budget, smoothing=smoothing)
    loss = slow_loss(model, PAIRS, smoothing)
    expected = torch.cat(
        [g.flatten() for g in torch.autograd.grad(loss, model._optimizer.parameters)]
    )
    found, metrics = gradient(model, PAIRS, monkeypatch)
    assert torch.allclose(found, expected, atol=1e-5 * float(expected.abs().max()) + 1e-7)
    assert metrics["loss"] == pytest.approx(float(loss.detach()), abs=1e-5)


def test_at_the_start_the_loss_is_that_of_a_coin():
    assert make(heard=False).learn(PAIRS, 1)["loss"] == pytest.approx(math.log(2), abs=1e-6)


def text_pairs(seed, count):
    """Words against numbers, behind one of a few prompts; every draw is a new one."""
    draw = random.Random(seed)
    found = []
    for _ in range(count):
        read = draw.choice(["one", "a second task", "and a third"])
        good = "".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=6))
        bad = "".join(draw.choices("0123456789 !?%", k=6))
        found.append(TextPair(f"{read}\n\n{good}", f"{read}\n\n{bad}", 1.0))
    return found


def test_it_learns_to_rank_pairs_that_it_has_not_seen():
    """Over three seeds; a coin is right in half of them."""
    for seed in range(3):
        model = make(seed, heard=False, lr=3e-3)
        model.learn(text_pairs(seed, 24), 12)
        assert model.accuracy(text_pairs(seed + 100, 50)) > 0.8


def test_saved_and_loaded_it_goes_on_exactly_where_it_was(tmp_path):
    model, other = make(1), make(2)
    model.learn(PAIRS, 2)
    model.save(tmp_path)
    other.load(tmp_path)
    for each in (model, other):
        each.learn(PAIRS, 2)
    for one, two in zip(model._optimizer.parameters, other._optimizer.parameters, strict=True):
        assert torch.equal(one, two)


def test_another_model_or_none_is_refused(tmp_path):
    with pytest.raises(CheckpointError):
        make().load(tmp_path)


def test_a_loss_that_is_not_finite_is_an_error():
    model = make()
    with torch.no_grad():
        model._critic.head.weight[0, 0] = float("nan")
    before = [weight.clone() for weight in model._critic.parameters()]
    with pytest.raises(NumericsError, match="loss of 'reward_model' is nan"):
        model.learn(PAIRS, 1)
    for old, new in zip(before, model._critic.parameters(), strict=True):
        assert torch.allclose(old, new, rtol=0.0, atol=0.0, equal_nan=True)
