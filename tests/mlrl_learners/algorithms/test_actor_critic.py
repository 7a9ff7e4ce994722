import math

import pytest
import torch

import mlrl_learners
from mlrl_learners.algorithms.actor_critic import ActorCritic, ActorCriticConfig
from mlrl_learners.algorithms.turn_samples import turn_samples
from mlrl_learners.config.groups import build_config
from mlrl_learners.config.option_places import merge_options
from mlrl_learners.errors import ConfigError, NumericsError, UnknownNameError
from mlrl_learners.testing import check_learner

AGENTS = ("left", "right")
SMALL = {"sampling": {"max_new_tokens": 8}, "compute": {"device": "cpu"}}
NAMES = ["ippo", "mappo", "iac", "maac"]


def weights(learner):
    policies = [p for policy in learner.policies.values() for p in policy.model.parameters()]
    critics = [p for critic in learner.critics.critics.values() for p in critic.parameters()]
    return [parameter.clone() for parameter in [*policies, *critics]]


def slow_samples(learner, rollouts):
    """Return, for each answer of one turn, its agent, old value and target by the formulas."""
    found = []
    for rollout in rollouts:
        node = rollout.root
        for agent in AGENTS:
            here = slow_value(learner, agent, node.observations)
            for step in node.steps:
                after = slow_value(learner, agent, step.next_observations)
                target = step.rewards[agent] + learner.config.credit.gamma * after
                found.append((agent, here, target))
    return found


def slow_value(learner, agent, observations):
    """One value, one prompt, one forward pass."""
    critic = learner.critics.critics[learner.critics.critic_of[agent]]
    text, column = observations[agent], 0
    if learner.config.critic.kind == "central":
        text = "\n\n".join(f"[{name}]\n{observations[name]}" for name in AGENTS)
        column = AGENTS.index(agent)
    message = f"<|im_start|>user\n{text}<|im_end|>\n<|im_start|>assistant\n"
    prompt = critic.trunk.tokenizer(message)["input_ids"]
    states = critic.trunk.model.model(input_ids=torch.tensor([prompt])).last_hidden_state
    return float(critic.head(states[0, -1])[column].detach())


def test_losses_equal_a_slow_reference(make, kind, toy):
    learner = make(
        critic={"kind": kind},
        optimizer={"epochs": 1},
        credit={"gamma": 0.8},
        advantage={"normalize": False, "bootstrap_truncated": True},
    )
    rollouts = toy.play(learner, artificial_limit=True)
    samples = slow_samples(learner, rollouts)
    metrics = learner.update(rollouts)
    for agent in AGENTS:
        # At the first step every ratio is 1, and so the surrogate is minus the mean advantage.
        advantages = [target - here for who, here, target in samples if who == agent]
        loss = -sum(advantages) / len(advantages)
        assert metrics[f"{agent}/loss"] == pytest.approx(loss, abs=1e-4)
    for name in learner.critics.critics:
        mine = [s for s in samples if learner.critics.critic_of[s[0]] == name]
        errors = [(target - here) ** 2 / 2 for _, here, target in mine]
        assert metrics[f"{name}/value_loss"] == pytest.approx(sum(errors) / len(mine), abs=1e-4)
        mean = sum(here for _, here, _ in mine) / len(mine)
        assert metrics[f"{name}/value"] == pytest.approx(mean, abs=1e-4)


def targets_of(learner, rollouts):
    estimates = learner.critics.estimate(
        rollouts, bootstrap=learner.config.advantage.bootstrap_truncated
    )
    estimators = learner.advantage_estimators(rollouts, estimates)
    samples = turn_samples(rollouts, estimates, estimators, learner.config.credit, learner.learning)
    return [sample.value_sample.targets[0] for sample in samples]


def test_value_targets_keep_the_scale_of_the_rewards(make, toy):
    learner = make()
    rollouts = toy.play(learner, reward=lambda *_: 1000.0)
    assert targets_of(learner, rollouts) == pytest.approx([1000.0] * 16)


@pytest.mark.parametrize(
    ("ends", "options", "continues_for"),
    [
        (
            {"max_turns": 1, "artificial_limit": True},
            {"advantage": {"bootstrap_truncated": True}},
            True,
        ),
        ({"max_turns": 1, "artificial_limit": True}, {}, False),
        ({"max_turns": 1}, {"advantage": {"bootstrap_truncated": True}}, False),
        (
            {"max_turns": 2, "solved_at": 1, "artificial_limit": True},
            {"advantage": {"bootstrap_truncated": True}},
            False,
        ),
    ],
)
def test_only_where_an_artificial_limit_cut_it_an_episode_goes_on_with_a_value(
    make, ends, options, continues_for, kind, toy
):
    learner = make(**merge_options(options, {"critic": {"kind": kind}, "credit": {"gamma": 0.5}}))
    with torch.no_grad():
        for critic in learner.critics.critics.values():
            critic.head.weight.zero_()
            critic.head.bias.fill_(8.0)
    rollouts = toy.play(learner, reward=lambda *_: 1.0, **ends)
    assert targets_of(learner, rollouts) == pytest.approx([5.0 if continues_for else 1.0] * 16)


def test_the_entropy_bonus_flattens_the_distribution_over_tokens(make, toy):
    after = {}
    for coef in (0.0, 1.0):
        learner = make(
            agents=("solo",), penalty={"entropy_coef": coef}, optimizer={"epochs": 8, "lr": 1e-2}
        )
        rollouts = toy.play(learner, reward=lambda *_: 0.0)
        learner.update(rollouts)
        after[coef] = learner.update(toy.play(learner))["solo/entropy"]
    assert after[1.0] > after[0.0]


def test_an_unclipped_surrogate_follows_any_ratio(make, toy, monkeypatch):
    """After the policy has moved far, ippo's clip silences answers that iac's still hears."""
    found = {}
    for name in ("ippo", "iac"):
        learner = make(
            name, agents=("solo",), optimizer={"epochs": 1}, advantage={"gae_lambda": 0.0}
        )
        rollouts = toy.play(learner)
        with torch.no_grad():
            for parameter in learner.policies["solo"].model.parameters():
                parameter.mul_(3.0)
        found[name] = learner.update(rollouts)["solo/clip_fraction"]
    assert found["iac"] == 0.0 < found["ippo"]


def test_several_epochs_and_minibatches_take_as_many_steps(make, kind, toy):
    learner = make(critic={"kind": kind}, optimizer={"epochs": 2, "num_minibatches": 2})
    learner.update(toy.play(learner))
    steps = [*learner.optimizers.values(), *learner.critics.optimizers.values()]
    assert {optimizer.num_steps for optimizer in steps} == {4}


@pytest.mark.parametrize(
    "options", [{"group": {"joint_mode": "cross"}}, {"group": {"branching": "chain"}}, {}]
)
def test_trees_and_chains_aligned_and_crossed_are_all_learnt_from(make, options, kind, toy):
    learner = make(**merge_options(options, {"critic": {"kind": kind}, "group": {"size": 2}}))
    before = weights(learner)
    metrics = learner.update(toy.play(learner, max_turns=2))
    assert all(math.isfinite(value) for value in metrics.values())
    changed = [not torch.equal(a, b) for a, b in zip(before, weights(learner), strict=True)]
    assert sum(changed) > 0.8 * len(changed)


def test_saved_and_loaded_it_goes_on_exactly_where_it_was(make, kind, toy, tmp_path):
    learner = make(critic={"kind": kind}, optimizer={"num_minibatches": 2})
    learner.update(toy.play(learner))
    learner.save(tmp_path)
    other = ActorCritic(
        AGENTS,
        "tiny-random",
        build_config(
            ActorCriticConfig,
            merge_options(SMALL, {"critic": {"kind": kind}, "optimizer": {"num_minibatches": 2}}),
        ),
        seed=99,
    )
    other.load(tmp_path)
    for each in (learner, other):
        each.update(toy.play(each))
    assert all(torch.equal(a, b) for a, b in zip(weights(learner), weights(other), strict=True))


def test_a_run_that_was_stopped_and_resumed_ends_with_the_same_weights(make, kind, tmp_path):
    def run(folder, iterations, *, resume=False):
        learner = make(
            agents=("setup", "story"),
            critic={"kind": kind},
            group={"size": 2},
            optimizer={"num_minibatches": 2},
        )
        mlrl_learners.train(
            env_id="mlrl/story-v1",
            env_options={"split": "sample"},
            learner=learner,
            iterations=iterations,
            run_dir=tmp_path / folder,
            tasks_per_iteration=1,
            resume=resume,
            progress=False,
            config={"name": "the same run"},
        )
        return weights(learner)

    whole = run("whole", 3)
    run("stopped", 2)
    resumed = run("stopped", 3, resume=True)
    assert all(torch.equal(a, b) for a, b in zip(whole, resumed, strict=True))


def test_a_loss_that_is_not_finite_is_an_error(make, kind, toy):
    learner = make(critic={"kind": kind})
    rollouts = toy.play(learner)
    with torch.no_grad():
        for critic in learner.critics.critics.values():
            critic.head.bias.fill_(float("nan"))
    with pytest.raises(NumericsError, match="is nan"):
        learner.update(rollouts)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"gae_lamda": 0.5}, "unknown option 'gae_lamda'; did you mean 'advantage.gae_lambda'"),
        ({"advantage": {"gae_lambda": 1.5}}, r"gae_lambda must be in \[0, 1\], got 1.5"),
        (
            {"critic": {"kind": "joint"}},
            "critic.kind must be separate or value_head or central, got 'joint'",
        ),
        ({"critic": {"value_clip": 0.0}}, "value_clip must be above 0, got 0.0"),
        ({"critic": {"lr": -1.0}}, "critic.lr must be above 0, got -1.0"),
        ({"penalty": {"entropy_coef": -1.0}}, "entropy_coef must be at least 0, got -1.0"),
        ({"critic": {"value_coef": -1.0}}, "value_coef must be at least 0, got -1.0"),
        ({"optimizer": {"epochs": 0}}, "epochs must be at least 1, got 0"),
        ({"loss": {"clip_high": -0.1}}, "clip_high must be at least 0, got -0.1"),
        (
            {"critic": {"kind": "value_head", "model": "tiny-random"}},
            "a value_head has no model of its own",
        ),
    ],
)
def test_a_mistake_is_one_clear_line(make, options, message):
    with pytest.raises((ConfigError, UnknownNameError), match=message):
        make(**options)


@pytest.mark.parametrize("name", NAMES)
def test_the_contract_of_a_learner_is_kept(make, name):
    check_learner(lambda: make(name, optimizer={"lr": 1e-3}))
