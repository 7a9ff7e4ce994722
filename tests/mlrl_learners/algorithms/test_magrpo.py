import copy

import pytest
import torch

import mlrl_learners
from mlrl_learners.algorithms.magrpo import Magrpo, MagrpoConfig
from mlrl_learners.config.groups import build_config
from mlrl_learners.config.option_places import merge_options
from mlrl_learners.errors import ConfigError, NumericsError, UnknownNameError
from mlrl_learners.policies import tiny_model
from mlrl_learners.types import RolloutConfig
from tests.mlrl_learners.algorithms.magrpo_learners import AGENTS, SMALL, letters, make, rollouts_of


def weights(learner):
    return [p.clone() for policy in learner.policies.values() for p in policy.model.parameters()]


@pytest.fixture
def learner():
    return make()


def test_every_agent_answers_every_observation_in_order(learner):
    observations = [{"left": "a", "right": "b"}, {"right": "c"}]
    answers = learner.act(observations, num_samples=3)
    assert [list(answer) for answer in answers] == [["left", "right"], ["right"]]
    assert all(len(group) == 3 for answer in answers for group in answer.values())


def test_greedy_answers_do_not_touch_the_random_state(learner):
    before = learner.generator.get_state(), copy.copy(learner.call_seeds)
    learner.act([{"left": "a"}], explore=False)
    assert torch.equal(before[0], learner.generator.get_state())
    assert learner.call_seeds == before[1]


def test_repeated_calls_sample_anew_also_after_a_load(learner, tmp_path):
    first = learner.act([{"left": "a"}])
    learner.save(tmp_path)
    second = learner.act([{"left": "a"}])
    assert second != first
    other = make(seed=99)
    other.load(tmp_path)
    assert other.act([{"left": "a"}]) == second


def test_answers_do_not_depend_on_who_shares_a_model(learner):
    """The seed of an answer is of its place in the call, not in the batch of its model."""
    observation = {"left": "a", "right": "b"}
    own, shared = (
        {agent: group[0].token_ids for agent, group in each.act([observation])[0].items()}
        for each in (learner, make(team={"share_weights": True}))
    )
    assert own == shared


def test_draws_of_earlier_versions_are_read(learner, tmp_path):
    learner.save(tmp_path)
    torch.save(learner.generator.get_state(), tmp_path / "generator.pt")
    other = make(seed=99)
    other.load(tmp_path)
    assert torch.equal(other.generator.get_state(), learner.generator.get_state())


def test_a_sampling_seed_is_left_as_if_nothing_had_happened(learner):
    with learner.sampling_seed(3):
        first = learner.act([{"left": "a"}])
    after = learner.act([{"left": "a"}])
    with learner.sampling_seed(3):
        assert learner.act([{"left": "a"}]) == first
    assert after != first


def test_an_unknown_agent_is_named(learner):
    with pytest.raises(UnknownNameError, match="unknown agent 'lef'; did you mean 'left'"):
        learner.act([{"lef": "a"}])


def test_equal_rewards_change_nothing(learner):
    before = weights(learner)
    metrics = learner.update(rollouts_of(learner, lambda *_: 0.7))
    assert all(torch.equal(a, b) for a, b in zip(before, weights(learner), strict=True))
    assert metrics["left/zero_variance_rate"] == 1.0


def test_shared_weights_are_one_policy_with_one_optimizer():
    learner = make(team={"share_weights": True})
    assert list(learner.policies) == ["shared"]
    assert list(learner.optimizers) == ["shared"]


def test_separate_agents_start_equal_and_learn_apart(learner):
    learner.update(rollouts_of(learner, letters))
    left, right = (learner.policies[agent].model.parameters() for agent in AGENTS)
    assert any(not torch.equal(a, b) for a, b in zip(left, right, strict=True))


def test_agents_may_be_different_models():
    learner = make(model={"left": "tiny-random", "right": tiny_model(5, hidden_size=16)})
    learner.update(rollouts_of(learner, letters))
    sizes = [policy.model.config.hidden_size for policy in learner.policies.values()]
    assert sizes == [32, 16]


def test_several_epochs_and_minibatches_take_as_many_steps():
    learner = make(optimizer={"epochs": 2, "num_minibatches": 2})
    learner.update(rollouts_of(learner, letters))
    assert [optimizer.num_steps for optimizer in learner.optimizers.values()] == [4, 4]


def test_cross_joint_actions_train_on_each_answer_once():
    every = {"skip_equal_groups": False}
    learner = make(group={"joint_mode": "cross", "size": 3}, baseline=every)
    read = []
    logprobs = learner.policies["left"].logprobs_and_states
    learner.policies["left"].logprobs_and_states = lambda rows, **options: (
        read.extend(rows),
        logprobs(rows, **options),
    )[1]
    rollouts = rollouts_of(learner, letters, cross=True)
    learner.update(rollouts)
    answers = [group for r in rollouts for group in r.root.completions["left"]]
    assert len(read) == len(answers)
    assert sorted(row.token_ids for row in read) == sorted(c.token_ids for c in answers)


def test_a_loss_that_is_not_finite_is_an_error_and_changes_nothing(learner):
    rollouts = rollouts_of(learner, letters)
    with torch.no_grad():
        for policy in learner.policies.values():
            policy.model.model.norm.weight.fill_(float("nan"))
    with pytest.raises(NumericsError, match="loss of 'left' is nan"):
        learner.update(rollouts)


def test_an_update_that_failed_half_way_leaves_nothing_to_the_next():
    learner, twin = make(), make()
    rollouts = rollouts_of(learner, letters)
    for parameter in learner.policies["left"].model.parameters():
        parameter.grad = torch.ones_like(parameter)  # of a micro-batch before the one that failed
    learner.update(rollouts)
    twin.update(rollouts)
    for one, other in zip(weights(learner), weights(twin), strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"group_sise": 2}, "unknown option 'group_sise'; did you mean 'group.size'"),
        ({"group": {"size": 0}}, "group.size must be at least 1, got 0"),
        ({"baseline": {"kind": "best"}}, "baseline.kind must be .* got 'best'"),
        ({"model": {"left": "tiny-random"}}, r"model names none for the agents \['right'\]"),
        ({"team": {"system_prompts": {"lift": "x"}}}, "unknown agent 'lift'; did you mean 'left'"),
        ({"compute": {"dtype": "float31"}}, "dtype must be one of"),
        (
            {"optimizer": {"schedule": "linear", "warmup_steps": 3, "total_steps": 2}},
            "total_steps must be above",
        ),
    ],
)
def test_a_mistake_is_one_clear_line(options, message):
    with pytest.raises((ConfigError, UnknownNameError), match=message):
        make(**options)


def test_saved_and_loaded_it_goes_on_exactly_where_it_was(learner, tmp_path):
    learner.update(rollouts_of(learner, letters))
    learner.save(tmp_path)
    other = Magrpo(AGENTS, "tiny-random", build_config(MagrpoConfig, SMALL), seed=99)
    other.load(tmp_path)
    for each in (learner, other):
        each.update(rollouts_of(each, letters))
    assert all(torch.equal(a, b) for a, b in zip(weights(learner), weights(other), strict=True))


ALONE = "takes at least 2 answers a prompt, .* got 1"


@pytest.mark.parametrize("name", ["magrpo", "marloo", "maremax"])
def test_a_baseline_of_a_group_takes_a_group(name):
    small = {"agents": AGENTS, "model": "tiny-random", "compute": {"device": "cpu"}}
    with pytest.raises(ConfigError, match=ALONE):
        mlrl_learners.make(name, **merge_options(small, {"group": {"size": 1}}))
    with pytest.raises(ConfigError, match=ALONE):
        mlrl_learners.make(name, **small).check_rollout(RolloutConfig(1))


def test_without_a_baseline_one_answer_is_enough():
    small = {"agents": AGENTS, "model": "tiny-random", "compute": {"device": "cpu"}}
    learner = mlrl_learners.make("mareinforce", **merge_options(small, {"group": {"size": 1}}))
    learner.check_rollout(learner.rollout)
