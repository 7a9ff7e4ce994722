import math

import pytest
import torch

from mlrl_learners.algorithms.turn_samples import turn_samples
from mlrl_learners.errors import CheckpointError, ConfigError
from mlrl_learners.policies import tiny_model


def count_forwards(learner):
    """Count passes through each decoder while gradients are on."""
    counts = {}
    trunks = {id(p.model): p.model for p in learner.policies.values()}
    trunks |= {id(c.trunk.model): c.trunk.model for c in learner.critics.critics.values()}
    for number, model in enumerate(trunks.values()):

        def count(module, inputs, number=number):
            counts[number] = counts.get(number, 0) + torch.is_grad_enabled()

        model.get_decoder().register_forward_pre_hook(count)
    return counts


@pytest.mark.parametrize(("critic", "trained"), [("value_head", [1]), ("separate", [1, 1])])
def test_a_value_head_shares_the_actors_one_forward_pass(make, critic, trained, toy):
    learner = make(agents=("solo",), critic={"kind": critic}, optimizer={"epochs": 1})
    rollouts = toy.play(learner, tasks=("one",))
    counts = count_forwards(learner)
    learner.update(rollouts)
    assert list(counts.values()) == trained


def test_only_a_value_head_teaches_the_actors_model(make, toy, monkeypatch):
    found = {}
    for critic in ("value_head", "separate"):
        for coef in (0.0, 1.0):
            learner = make(
                agents=("solo",),
                critic={"kind": critic, "value_coef": coef},
                optimizer={"epochs": 1},
            )
            rollouts = toy.play(learner)
            found[critic, coef] = toy.gradients(learner, rollouts, monkeypatch)[0]
    assert torch.equal(found["separate", 0.0], found["separate", 1.0])
    assert not torch.allclose(found["value_head", 0.0], found["value_head", 1.0], atol=1e-4)


def test_values_are_clipped_around_what_they_were_before_the_first_epoch(make, toy, monkeypatch):
    """Far outside the clip on the way to its target, a value teaches nothing in the next epoch."""
    learner = make(
        agents=("solo",),
        optimizer={"epochs": 1},
        critic={"value_clip": 0.01},
        advantage={"normalize": False},
    )
    rollouts = toy.play(learner, reward=lambda *_: 100.0)
    before = learner.critics.estimate
    stale = before(rollouts)
    with torch.no_grad():
        learner.critics.critics["solo"].head.bias.add_(1.0)
    monkeypatch.setattr(learner.critics, "estimate", lambda rollouts, **_: stale)
    _, critic = toy.gradients(learner, rollouts, monkeypatch)
    assert float(critic.abs().max()) == 0.0
    monkeypatch.setattr(learner.critics, "estimate", before)
    _, critic = toy.gradients(learner, rollouts, monkeypatch)
    assert float(critic.abs().max()) > 0.0


def test_agents_keep_their_own_rewards_under_a_central_critic(make, toy):
    learner = make("mappo")
    rollouts = toy.play(learner, reward=lambda _, agent: float(agent == "left"))
    estimates = learner.critics.estimate(rollouts)
    estimators = learner.advantage_estimators(rollouts, estimates)
    samples = turn_samples(rollouts, estimates, estimators, learner.config.credit, learner.learning)
    found = {sample.value_sample.agent: sample.value_sample.targets[0] for sample in samples}
    assert found == {"left": pytest.approx(1.0), "right": pytest.approx(0.0)}


def test_a_central_critic_is_one_model_that_reads_what_all_agents_read(make, toy):
    learner = make("mappo")
    estimates = learner.critics.estimate(toy.play(learner, max_turns=2))
    assert list(learner.critics.critics) == ["central"]
    texts = [text for _, text in estimates.prompts]
    assert texts[0] == "[left]\none, turn 0\n\n[right]\none, turn 0"
    assert len(texts) == 4  # two tasks of two turns


def test_shared_weights_share_the_critic(make):
    learner = make(team={"share_weights": True})
    assert list(learner.critics.critics) == ["shared"]


@pytest.mark.parametrize(("critic", "sizes"), [("separate", [32, 16]), ("central", [32])])
def test_agents_may_be_different_models_with_critics_like_them(make, critic, sizes, toy):
    model = {"left": "tiny-random", "right": tiny_model(5, hidden_size=16)}
    learner = make(model=model, critic={"kind": critic})
    critics = learner.critics.critics.values()
    assert [each.trunk.model.config.hidden_size for each in critics] == sizes
    assert math.isfinite(learner.update(toy.play(learner))["right/loss"])


def test_a_critic_has_its_own_model_and_rate(make):
    learner = make(
        critic={"model": tiny_model(5, hidden_size=16), "lr": 3e-3}, optimizer={"lr": 1e-4}
    )
    critic = learner.critics.critics["left"]
    assert critic.trunk.model.config.hidden_size == 16
    assert learner.critics.optimizers["left"].lr == 3e-3
    assert learner.optimizers["left"].lr == 1e-4


def test_a_critic_learns_to_foresee(make, toy):
    learner = make(critic={"lr": 1e-2, "value_clip": math.inf}, optimizer={"lr": 1e-9, "epochs": 4})
    history = []
    for _ in range(12):
        rewards = {"one": 1.0, "two": 3.0}
        rollouts = [
            rollout
            for task, reward in rewards.items()
            for rollout in toy.play(learner, tasks=(task,), reward=lambda *_, r=reward: r)
        ]
        history.append(learner.update(rollouts)["left/value_loss"])
    assert history[-1] < 0.1 * history[0]


def test_a_checkpoint_of_other_critics_is_refused(make, tmp_path):
    make("ippo").save(tmp_path)
    with pytest.raises(CheckpointError, match="central"):
        make("mappo").load(tmp_path)


def test_a_critic_that_cannot_read_an_observation_is_refused(make):
    model, tokenizer = tiny_model(5, hidden_size=16)
    model.config.max_position_embeddings = 8
    with pytest.raises(ConfigError, match=r"a critic must read more than .* tokens"):
        make(critic={"model": (model, tokenizer)})
