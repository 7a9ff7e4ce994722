"""Changes to rewards before the update: credit, truncated answers, KL penalty."""

import dataclasses

import pytest
import torch

import mlrl_learners
from mlrl_learners.algorithms.policy_gradient_config import PolicyGradientConfig
from mlrl_learners.algorithms.policy_update import answer_weights
from mlrl_learners.algorithms.reward_terms import RewardTerms
from mlrl_learners.algorithms.turn_samples import turn_samples
from mlrl_learners.config.groups import build_config
from mlrl_learners.config.option_places import merge_options
from mlrl_learners.errors import ConfigError
from mlrl_learners.functional.returns import joint_returns
from mlrl_learners.types import Completion, Node, RolloutConfig

AGENTS = ("left", "right")
FAMILIES = ["magrpo", "ippo"]
PLAIN = {"ippo": {"optimizer": {"epochs": 1}, "advantage": {"normalize": False}}}


def make(name="magrpo", seed=0, agents=AGENTS, **options):
    small = merge_options(
        {"model": "tiny-random", "sampling": {"max_new_tokens": 8, "temperature": 1.0}},
        PLAIN.get(name, {}),
    )
    return mlrl_learners.make(name, agents=agents, seed=seed, **merge_options(small, options))


def disturb(learner, size=0.05):
    """Move the weights away from where they started."""
    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for policy in learner.policies.values():
            for parameter in policy.model.parameters():
                parameter.add_(size * torch.randn(parameter.shape, generator=generator))


def cut(rollouts, *numbers, agents=AGENTS):
    """Mark answers as cut by the limit, and the others as whole."""

    def marked(node):
        completions = {
            agent: tuple(
                dataclasses.replace(
                    each, finish_reason="length" if i in numbers and agent in agents else "stop"
                )
                for i, each in enumerate(group)
            )
            for agent, group in node.completions.items()
        }
        return Node(node.turn, node.observations, completions, node.steps)

    return [dataclasses.replace(rollout, root=marked(rollout.root)) for rollout in rollouts]


def rewards_of(rollouts):
    return [dict(step.rewards) for rollout in rollouts for step in rollout.root.steps]


def terms_of(**options):
    return RewardTerms({}, {}, build_config(PolicyGradientConfig, options))


def test_without_options_rewards_are_passed_on_untouched(toy):
    rollouts = toy.play(make(), reward=lambda _, agent: float(agent == "left"))
    applied = make().reward_terms.apply(rollouts)
    assert len(applied) == len(rollouts)
    assert all(one is other for one, other in zip(applied, rollouts, strict=True))


@pytest.mark.parametrize("name", FAMILIES)
def test_agents_with_rewards_of_their_own_learn_from_them_alone(name, toy, monkeypatch):
    """As in a debate: what the other side is paid changes nothing for this one."""
    found = {}
    for other in (1.0, 5.0):
        learner = make(name)

        def reward(actions, agent, other=other):
            own = toy.letters({agent: actions[agent]}, agent)
            return own if agent == "left" else other * own

        found[other] = toy.gradients(learner, toy.play(learner, reward=reward), monkeypatch)
    assert torch.equal(found[1.0][0], found[5.0][0])
    assert not torch.equal(found[1.0][1], found[5.0][1])


def test_being_cut_costs_an_agent_its_penalty_and_nobody_else(toy):
    rollouts = cut(toy.play(make(), reward=lambda *_: 1.0), 0, 2, agents=("left",))
    charged = terms_of(penalty={"overlong": "penalize", "overlong_penalty": 0.25}).apply(rollouts)
    assert [each["left"] for each in rewards_of(charged)] == [0.75, 1.0, 0.75, 1.0] * 2
    assert {each["right"] for each in rewards_of(charged)} == {1.0}


def test_turns_before_a_cut_answer_know_of_its_penalty(toy):
    learner = make()
    rollouts = toy.play(learner, max_turns=2, reward=lambda *_: 1.0)
    children = [cut([dataclasses.replace(rollouts[0], root=s.child)], 0)[0].root
                for s in rollouts[0].root.steps]  # fmt: skip
    steps = [dataclasses.replace(s, child=child)
             for s, child in zip(rollouts[0].root.steps, children, strict=True)]  # fmt: skip
    root = dataclasses.replace(cut(rollouts[:1])[0].root, steps=tuple(steps))
    rollout = dataclasses.replace(rollouts[0], root=root)
    (charged,) = terms_of(penalty={"overlong": "penalize", "overlong_penalty": 1.0}).apply(
        [rollout]
    )
    assert joint_returns(charged.root, "left", 1.0) == pytest.approx([1.75] * 4)


def test_a_masked_answer_weighs_nothing_and_others_what_they_did():
    answers = [Completion("", (1,), (2,) * n, (-1.0,) * n, reason)
               for n, reason in ((2, "stop"), (3, "length"), (1, "stop"))]  # fmt: skip
    keep = answer_weights(
        answers, build_config(PolicyGradientConfig, {"loss": {"kind": "token_mean"}})
    )
    mask = answer_weights(
        answers,
        build_config(
            PolicyGradientConfig, {"loss": {"kind": "token_mean"}, "penalty": {"overlong": "mask"}}
        ),
    )
    assert mask == [keep[0], 0.0, keep[2]]


@pytest.mark.parametrize(
    ("name", "options"),
    [("magrpo", {}), ("ippo", {}), ("ippo", {"critic": {"kind": "value_head", "value_coef": 0.0}})],
)
def test_masked_answers_leave_no_trace_in_the_gradient(name, options, toy, monkeypatch):
    """The gradient is that of a batch in which the cut answers had an advantage of nothing."""
    learner = make(
        name, agents=("solo",), **merge_options(options, {"penalty": {"overlong": "mask"}})
    )
    rollouts = cut(toy.play(learner), 1, 3, agents=("solo",))
    found = toy.gradients(learner, rollouts, monkeypatch)[0]
    kept = make(name, agents=("solo",), **options)
    everything = toy.gradients(kept, rollouts, monkeypatch)[0]
    only_cut = cut(rollouts, 0, 2, agents=("solo",))
    rest = toy.gradients(learner, only_cut, monkeypatch)[0]
    assert torch.allclose(found + rest, everything, atol=1e-5)
    assert float(found.abs().max()) > 1e-4 < float(rest.abs().max())


@pytest.mark.parametrize("name", FAMILIES)
def test_an_update_in_which_every_answer_was_cut_trains_no_masked_policy(name, toy):
    learner = make(name, penalty={"overlong": "mask"})
    before = [p.clone() for p in learner.policies["left"].model.parameters()]
    metrics = learner.update(cut(toy.play(learner), 0, 1, 2, 3))
    assert metrics["left/truncated_rate"] == 1.0
    after = learner.policies["left"].model.parameters()
    assert all(torch.equal(a, b) for a, b in zip(before, after, strict=True))


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("estimator", ["k1", "k2", "k3"])
def test_divergence_in_the_loss_equals_its_formula_over_nuclei(name, estimator, toy, monkeypatch):
    options = {"agents": ("solo",), "loss": {"kind": "sequence"}}
    plain = make(name, **options)
    pulled = make(
        name, **merge_options(options, {"penalty": {"kl_coef": 0.7, "kl_estimator": estimator}})
    )
    rollouts = toy.play(plain)
    reference = make(name, **options).policies["solo"]
    for learner in (plain, pulled):
        disturb(learner)
    answers = [c for rollout in rollouts for c in rollout.root.completions["solo"]]
    total = 0.0
    for answer in answers:  # one row at a time, by the model's own logits over each nucleus

        def slow(policy, answer=answer):
            ids = torch.tensor([[*answer.prompt_ids, *answer.token_ids]])
            start = len(answer.prompt_ids)
            logits, found = policy.model(input_ids=ids).logits[0, start - 1 :], []
            ends = answer.nucleus.sizes.cumsum().tolist()
            for row, (first, last) in enumerate(zip([0, *ends], ends, strict=False)):
                inside = logits[row, answer.nucleus.token_ids[first:last].tolist()]
                found.append(logits[row, answer.token_ids[row]] - inside.logsumexp(-1))
            return torch.stack(found)

        delta = slow(reference).detach() - slow(plain.policies["solo"])
        kl = {"k1": -delta, "k2": delta**2 / 2, "k3": delta.exp() - delta - 1}[estimator]
        total = total + 0.7 * kl.sum() / len(answers)
    parameters = list(plain.policies["solo"].model.parameters())
    expected = torch.cat([g.flatten() for g in torch.autograd.grad(total, parameters)])
    without = toy.gradients(plain, rollouts, monkeypatch)[0]
    found = toy.gradients(pulled, rollouts, monkeypatch)[0] - without
    assert torch.allclose(found, expected, atol=2e-4 * float(expected.abs().max()))


@pytest.mark.parametrize("name", FAMILIES)
def test_divergence_in_the_reward_is_that_of_whole_distributions_answer_by_answer(name, toy):
    learner = make(name, penalty={"kl_coef": 0.5, "kl_in": "reward", "kl_estimator": "k1"})
    disturb(learner)
    rollouts = toy.play(learner, reward=lambda *_: 0.0)
    start = make(name)
    charged = learner.reward_terms.apply(rollouts)
    for rollout in charged:
        for agent, group in rollout.root.completions.items():
            for step in rollout.root.steps:
                answer = group[step.samples[agent]]
                with torch.no_grad():
                    expected, _ = start.policies[agent].logprobs([_row(answer)], temperature=1.0)
                played = sum(answer.logprobs) + float(answer.nucleus.log_masses.sum())
                kl = played - float(expected.sum())
                assert step.rewards[agent] == pytest.approx(-0.5 * kl, abs=1e-3)


def _row(answer):
    from mlrl_learners.engine import TokenRow

    return TokenRow(answer.prompt_ids, answer.token_ids)


@pytest.mark.parametrize(("where", "estimator"), [("loss", "k3"), ("reward", "k1")])
@pytest.mark.parametrize("name", FAMILIES)
def test_a_divergence_term_pulls_a_policy_back_to_its_start(name, where, estimator, toy):
    options = {"agents": ("solo",), "group": {"size": 24}}
    kl = {"penalty": {"kl_coef": 1.0, "kl_in": where, "kl_estimator": estimator}}
    start = make(name, **options).policies["solo"]
    learner = make(name, **merge_options(kl, options, {"optimizer": {"lr": 3e-3}}))
    disturb(learner, 0.1)
    gone = []
    for number in range(12):
        rollouts = toy.play(learner, seed=number, reward=lambda *_: 0.0)
        rows = [_row(c) for r in rollouts for c in r.root.completions["solo"]]
        with torch.no_grad():
            now, _ = learner.policies["solo"].logprobs(rows, temperature=1.0)
            then, _ = start.logprobs(rows, temperature=1.0)
        gone.append(float((then - now).exp().sub(then - now).mean()) - 1.0)
        learner.update(rollouts)
    assert sum(gone[-3:]) < 0.9 * sum(gone[:3])


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("credit", ["difference", "leave_one_out", "outcome", "team"])
def test_every_credit_is_learnt_from_over_trees_of_crossed_answers(name, credit, toy):
    learner = make(name, group={"size": 2, "joint_mode": "cross"}, credit={"kind": credit})
    metrics = learner.update(toy.play(learner, max_turns=2))
    assert metrics["left/grad_norm"] > 0


def test_credit_leaves_value_targets_alone(toy):
    """A critic learns what is earned, whatever part of it is put down to one agent."""
    targets = {}
    for credit in ("shared", "difference", "leave_one_out"):
        learner = make("ippo", group={"joint_mode": "cross", "size": 3}, credit={"kind": credit})
        rollouts = toy.play(learner)
        estimates = learner.critics.estimate(rollouts)
        estimators = learner.advantage_estimators(rollouts, estimates)
        samples = turn_samples(
            rollouts, estimates, estimators, learner.config.credit, learner.learning
        )
        targets[credit] = [sample.value_sample.targets[0] for sample in samples]
    assert targets["shared"] == targets["difference"] == targets["leave_one_out"]


def test_a_difference_is_the_advantage_where_there_is_no_baseline(toy, monkeypatch):
    """`mareinforce` with it is `marloo` without: both compare an answer with the others' mean."""
    options = {"group": {"size": 3, "joint_mode": "cross"}}
    plain = make("marloo", **options)
    rollouts = toy.play(plain)
    expected = toy.gradients(plain, rollouts, monkeypatch)
    credited = make("mareinforce", **merge_options(options, {"credit": {"kind": "difference"}}))
    found = toy.gradients(credited, rollouts, monkeypatch)
    assert all(torch.allclose(a, b, atol=1e-6) for a, b in zip(found, expected, strict=True))


def test_a_difference_over_joint_actions_that_were_not_crossed_is_a_typed_error(toy):
    aligned = toy.play(make())
    with pytest.raises(ConfigError, match=r"set group\.joint_mode to cross"):
        make(credit={"kind": "difference"}, group={"joint_mode": "cross"}).update(aligned)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"credit": {"kind": "blame"}},
            "credit.kind must be shared or outcome or team or mixed",
        ),
        (
            {"penalty": {"overlong": "penalize"}},
            "overlong_penalty must be above 0 for overlong penalize",
        ),
        ({"penalty": {"overlong_penalty": 0.5}}, "and 0 otherwise, got 0.5 for keep"),
        (
            {"penalty": {"overlong": "drop"}},
            "overlong must be keep or mask or penalize or soft, got 'drop'",
        ),
        ({"penalty": {"kl_coef": -0.1}}, "kl_coef must be at least 0, got -0.1"),
    ],
)
@pytest.mark.parametrize("name", FAMILIES)
def test_a_mistake_is_one_clear_line(name, options, message):
    with pytest.raises(ConfigError, match=message):
        make(name, **options)


@pytest.mark.parametrize(
    ("options", "rollout", "message"),
    [
        (
            {"credit": {"kind": "difference"}},
            RolloutConfig(4),
            "takes group.joint_mode cross .* aligned and 4",
        ),
        (
            {"credit": {"kind": "difference"}, "group": {"joint_mode": "cross"}},
            RolloutConfig(4, "aligned"),
            "takes group.joint_mode cross .* got aligned and 4",
        ),
        ({"credit": {"kind": "difference"}}, RolloutConfig(1, "cross"), "got cross and 1"),
        ({"credit": {"kind": "leave_one_out"}}, RolloutConfig(1), "num_samples must be at least 2"),
    ],
)
@pytest.mark.parametrize("name", FAMILIES)
def test_a_way_of_walking_that_leaves_nothing_to_compare_is_refused(
    name, options, rollout, message
):
    with pytest.raises(ConfigError, match=message):
        make(name, **options).check_rollout(rollout)


@pytest.mark.parametrize("name", FAMILIES)
def test_a_difference_may_be_crossed_by_the_rollout_alone(name):
    make(name, credit={"kind": "difference"}).check_rollout(RolloutConfig(2, "cross"))


@pytest.mark.slow
def test_credit_lets_a_method_without_a_baseline_learn_what_a_shared_reward_hides(toy):
    """Every answer is paid 3 more than it earned: without a baseline what there is of a lesson
    drowns in it; what an agent's own part changed is still heard."""

    def reward(actions, agent):
        return 3.0 + toy.letters(actions, agent)

    def gains(credit):
        def student(seed):
            return make(
                "mareinforce",
                seed,
                credit={"kind": credit},
                group={"joint_mode": "cross"},
                optimizer={"lr": 1e-2},
            )

        return toy.gains(student, range(6), 16, reward=reward)

    shared = gains("shared")
    for credit in ("difference", "leave_one_out"):
        better = [mine - theirs for mine, theirs in zip(gains(credit), shared, strict=True)]
        low, _ = toy.interval(better)
        assert low > 0.02
