import copy

import pytest
import torch

import mlrl_learners
from mlrl_learners.algorithms.magrpo import Magrpo, MagrpoConfig, make_magrpo
from mlrl_learners.config.groups import build_config
from mlrl_learners.config.option_places import merge_options
from mlrl_learners.errors import ConfigError, NumericsError, UnknownNameError
from mlrl_learners.policies import tiny_model
from mlrl_learners.types import JointStep, Node, Rollout, RolloutConfig

AGENTS = ("left", "right")
SMALL = {"sampling": {"max_new_tokens": 8}, "compute": {"device": "cpu"}}


def make(**options):
    return make_magrpo(
        **merge_options({"agents": AGENTS, "model": "tiny-random", "seed": 0}, SMALL, options)
    )


def rollouts_of(learner, reward, tasks=("one", "a second task"), cross=False):
    """Play one turn; `reward` judges the two texts."""
    observations = [dict.fromkeys(learner.agents, task) for task in tasks]
    size = learner.config.group.size
    pairs = [(i, j) for i in range(size) for j in range(size) if cross or i == j]
    rollouts = []
    for task, observed, answers in zip(
        tasks, observations, learner.act(observations, num_samples=size), strict=True
    ):
        steps = []
        for pair in pairs:
            samples = dict(zip(learner.agents, pair, strict=True))
            value = reward(*(answers[agent][k] for agent, k in samples.items()))
            rewards = dict.fromkeys(learner.agents, value)
            steps.append(JointStep(samples, rewards, {}, {}, terminated=False, truncated=True))
        completions = {agent: tuple(group) for agent, group in answers.items()}
        rollouts.append(Rollout("t", task, AGENTS, Node(0, observed, completions, tuple(steps))))
    return rollouts


def letters(*completions):
    """Share of plain letters: something a random model can learn in seconds."""
    text = "".join(completion.text for completion in completions)
    return sum(c.isascii() and c.isalpha() for c in text) / max(1, len(text))


def gradient(learner, rollouts, monkeypatch):
    """Return what `update` would have stepped along."""
    found = {}

    def record(self):
        found[id(self)] = torch.cat([p.grad.flatten().clone() for p in self.parameters])
        for parameter in self.parameters:
            parameter.grad = None
        return 1.0

    monkeypatch.setattr("mlrl_learners.policies.optimizer.PolicyOptimizer.step", record)
    learner.update(rollouts)
    return torch.cat([found[id(opt)] for opt in learner.optimizers.values() if id(opt) in found])


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


@pytest.mark.parametrize("kind", ["grpo", "token_mean", "dr_grpo", "sequence", "gspo"])
def test_micro_batches_leave_the_gradient_equal(kind, monkeypatch):
    whole, split = (
        make(loss={"kind": kind}),
        make(loss={"kind": kind}, compute={"micro_batch_tokens": 1}),
    )
    rollouts = rollouts_of(whole, letters)
    expected = gradient(whole, rollouts, monkeypatch)
    assert torch.allclose(gradient(split, rollouts, monkeypatch), expected, atol=1e-6)
    assert float(expected.abs().max()) > 0


def test_permuting_the_rollouts_leaves_the_gradient_equal(learner, monkeypatch):
    rollouts = rollouts_of(learner, letters)
    expected = gradient(learner, rollouts, monkeypatch)
    assert torch.allclose(gradient(learner, rollouts[::-1], monkeypatch), expected, atol=1e-6)


def test_relabelling_agents_that_share_weights_leaves_the_gradient_equal(monkeypatch):
    learner = make(team={"share_weights": True})
    rollouts = rollouts_of(learner, letters)
    expected = gradient(learner, rollouts, monkeypatch)
    other = {"left": "right", "right": "left"}
    swapped = [
        Rollout("t", r.task_id, AGENTS, Node(
            0, r.root.observations,
            {other[agent]: group for agent, group in r.root.completions.items()},
            r.root.steps,
        ))
        for r in rollouts
    ]  # fmt: skip
    assert torch.allclose(gradient(learner, swapped, monkeypatch), expected, atol=1e-6)


def test_leaving_out_equal_groups_leaves_the_gradient_equal(monkeypatch):
    def reward(*completions):
        return letters(*completions) if sum(completions[0].prompt_ids) % 2 else 0.5

    filtered, full = make(), make(baseline={"skip_equal_groups": False})
    rollouts = rollouts_of(filtered, reward, tasks=("a", "b", "c", "d"))
    expected = gradient(full, rollouts, monkeypatch)
    assert torch.allclose(gradient(filtered, rollouts, monkeypatch), expected, atol=1e-6)


def test_equal_rewards_change_nothing(learner):
    before = weights(learner)
    metrics = learner.update(rollouts_of(learner, lambda *_: 0.7))
    assert all(torch.equal(a, b) for a, b in zip(before, weights(learner), strict=True))
    assert metrics["left/zero_variance_rate"] == 1.0


@pytest.mark.parametrize("baseline", ["magrpo", "mareinforce", "marloo", "maremax"])
def test_each_preset_follows_its_own_gradient(baseline, monkeypatch):
    reference = make()
    rollouts = rollouts_of(reference, letters)
    learner = mlrl_learners.make(baseline, agents=AGENTS, model="tiny-random", **SMALL)
    mine = gradient(learner, rollouts, monkeypatch)
    mean = gradient(reference, rollouts, monkeypatch)
    scale = {"magrpo": 1.0, "marloo": 4 / 3}.get(baseline)
    if scale:
        assert torch.allclose(mine, scale * mean, atol=1e-6)
    else:
        cosine = torch.nn.functional.cosine_similarity(mine, mean, dim=0)
        assert float(cosine) < 0.999


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


def test_a_kl_term_pulls_back_to_the_start(monkeypatch):
    pulled = make(
        penalty={"kl_coef": 10.0, "kl_estimator": "k2"}, baseline={"skip_equal_groups": False}
    )
    rollouts = rollouts_of(pulled, lambda *_: 0.0)
    assert float(gradient(pulled, rollouts, monkeypatch).abs().max()) < 1e-5  # at the start: none
    with torch.no_grad():
        for policy in pulled.policies.values():
            for parameter in policy.model.parameters():
                parameter.add_(0.05 * torch.randn(parameter.shape))
    assert float(gradient(pulled, rollouts, monkeypatch).abs().max()) > 1e-3


def test_kl_in_the_reward_is_nothing_at_the_start(monkeypatch):
    plain, penalized = make(), make(penalty={"kl_coef": 1.0, "kl_in": "reward"})
    rollouts = rollouts_of(plain, letters)
    expected = gradient(plain, rollouts, monkeypatch)
    assert torch.allclose(gradient(penalized, rollouts, monkeypatch), expected, atol=1e-4)


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
    with pytest.raises(ConfigError, match=ALONE):  # one return has no deviation
        mlrl_learners.make(
            "mareinforce",
            **merge_options(small, {"baseline": {"normalize_std": True}, "group": {"size": 1}}),
        )


def test_without_a_baseline_one_answer_is_enough():
    small = {"agents": AGENTS, "model": "tiny-random", "compute": {"device": "cpu"}}
    learner = mlrl_learners.make("mareinforce", **merge_options(small, {"group": {"size": 1}}))
    learner.check_rollout(learner.rollout)
