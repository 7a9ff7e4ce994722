"""Tokens as actions: values, advantages and KL charges of tokens."""

import math

import pytest
import torch

import mlrl_learners
from mlrl_learners.algorithms.answer_advantages import with_token_charges
from mlrl_learners.algorithms.policy_update import AnswerSample
from mlrl_learners.algorithms.token_actions import TokenActions
from mlrl_learners.algorithms.turn_samples import turn_samples
from mlrl_learners.errors import ConfigError
from mlrl_learners.figures.means import mean
from mlrl_learners.testing.gradients import play_toy
from mlrl_learners.testing.toy_model import toy_model
from mlrl_learners.testing.toy_training import mean_return
from mlrl_learners.testing.toys import TOYS
from mlrl_learners.types import Completion, Node

TOKEN = {"critic": {"level": "token"}, "group": {"size": 2}}


def samples_of(learner, rollouts):
    """Return the samples of an update, and the rollouts that they are from."""
    rewarded = learner.reward_terms.apply(rollouts)
    estimates = learner.critics.estimate(rewarded)
    tokens = learner.token_actions(estimates)
    estimators = learner.advantage_estimators(rewarded, estimates, tokens)
    return turn_samples(
        rewarded, estimates, estimators, learner.config.credit, learner.learning, tokens
    )


def returns_of(sample):
    values = sample.value_sample.old_values
    return [a + v for a, v in zip(sample.by_token[: len(values)], values, strict=True)]


@pytest.mark.parametrize("kind", ["separate", "value_head", "central"])
def test_with_lambda_1_every_token_is_credited_with_the_return_of_its_answer(make, toy, kind):
    """Whatever the critic says of tokens, and of the next turn."""
    rollouts = []
    for level in ("token", "turn"):
        learner = make(
            "ippo",
            group={"size": 2},
            critic={"level": level, "kind": kind},
            advantage={"gae_lambda": 1.0},
            credit={"gamma": 0.5},
        )
        rollouts = rollouts or toy.play(learner, max_turns=2)
        found = [returns_of(sample) for sample in samples_of(learner, rollouts)]
        if level == "token":
            of_tokens = found
    values = [v for s in samples_of(learner, rollouts) for v in s.value_sample.old_values]
    assert len(set(values)) > 1
    for tokens, whole in zip(of_tokens, found, strict=True):
        assert tokens == pytest.approx(whole[:1] * len(tokens), abs=1e-5)


def test_advantages_of_tokens_follow_the_recursion_of_gae(make, toy):
    learner = make("ippo", **TOKEN, advantage={"gae_lambda": 0.7})
    rollouts = toy.play(learner)
    (node,) = {id(r.root): r.root for r in rollouts[:1]}.values()
    for sample in samples_of(learner, rollouts[:1]):
        number = node.completions[sample.agent].index(sample.completion)
        (reward,) = (s.rewards[sample.agent] for s in node.steps if s.samples["left"] == number)
        values = (*sample.value_sample.old_values, 0.0)
        rewards = [0.0] * (len(values) - 2) + [reward]
        expected = 0.0
        for t in reversed(range(len(rewards))):
            expected = rewards[t] + values[t + 1] - values[t] + 0.7 * expected
            assert sample.by_token[t] == pytest.approx(expected, abs=1e-5)


def test_a_charge_of_a_token_counts_for_it_and_those_before_it():
    answer = Completion("", (1,), (2, 3, 4), (-1.0,) * 3)
    sample = AnswerSample("a", answer, 1.0 - 0.6, 1.0)
    other = AnswerSample("b", answer, 1.0, 1.0)
    found = with_token_charges([sample, other], {("a", answer): [0.1, 0.2, 0.3]})
    assert found[0].by_token == pytest.approx([1.0 - 0.6, 1.0 - 0.5, 1.0 - 0.3])
    assert found[1] == other


def moved(learner, toy):
    """Move a policy away from its reference; return rollouts of the moved one."""
    with torch.no_grad():
        for policy in learner.policies.values():
            for weight in policy.parameters():
                weight.add_(0.05 * torch.randn_like(weight))
    return toy.play(learner)


@pytest.mark.parametrize("name", ["mareinforce", "ippo"])
def test_charges_of_tokens_sum_to_the_charge_of_the_answer(name, toy):
    torch.manual_seed(0)
    found = {}
    for kl_in in ("token", "reward"):
        learner = mlrl_learners.make(
            name,
            agents=("left", "right"),
            model="tiny-random",
            sampling={"max_new_tokens": 4},
            penalty={"kl_coef": 0.3, "kl_in": kl_in, "kl_estimator": "k1"},
        )
        rollouts = found.get("rollouts") or moved(learner, toy)
        found["rollouts"] = rollouts
        for mine in learner.policies.values():
            for weight in mine.parameters():
                weight.data.zero_()  # charges depend on the sampled log-probs and the reference
        (first, *_), terms = learner.reward_terms.apply(rollouts), learner.reward_terms
        found[kl_in] = [step.rewards["left"] for step in first.root.steps]
        assert bool(terms.token_charges) == (kl_in == "token")
    assert found["token"] == pytest.approx(found["reward"], rel=1e-5)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        (
            "ippo",
            {"critic": {"level": "token"}, "credit": {"kind": "leave_one_out"}},
            "credit.kind leave_one_out compares whole answers",
        ),
        ("ippo", {"critic": {"level": "word"}}, "level must be turn or token, got 'word'"),
        (
            "magrpo",
            {"penalty": {"kl_coef": 0.1, "kl_in": "token"}, "baseline": {"normalize_std": True}},
            "set baseline.normalize_batch instead",
        ),
        ("magrpo", {"penalty": {"kl_in": "token"}}, "kl_in token means nothing with kl_coef 0"),
        (
            "magrpo",
            {"penalty": {"kl_coef": 0.1, "kl_in": "token", "kl_weighted": True}},
            "kl_weighted True means nothing with kl_in token",
        ),
    ],
)
def test_a_combination_without_meaning_is_refused_in_one_line(name, options, message):
    with pytest.raises(ConfigError, match=message) as error:
        mlrl_learners.make(name, agents=("left", "right"), model="tiny-randm", **options)
    assert "\n" not in str(error.value)


class Foresight:
    """Values of a critic that has learnt that the first token alone earns the reward."""

    def of_tokens(self, _agent, _observations, answer):
        earned = float(answer.token_ids[0] == 7)
        return [0.5] + [earned] * (len(answer.token_ids) - 1)


@pytest.mark.parametrize("gae_lambda", [0.0, 0.5, 1.0])
@pytest.mark.parametrize(("first", "advantage"), [(7, 0.5), (3, -0.5)])
def test_an_early_token_that_earned_the_reward_has_all_of_the_advantage(
    gae_lambda, first, advantage
):
    """With a critic of answers, the tokens after it have as much."""
    answer = Completion("", (1,), (first, 4, 5, 6), (-1.0,) * 4)
    node = Node(0, {"solo": "go"}, {"solo": (answer,)}, ())
    tokens = TokenActions(Foresight(), {}, gae_lambda)
    found = tokens.advantages(node, "solo", 0, float(first == 7))
    assert found == pytest.approx([advantage, 0.0, 0.0, 0.0])


def trained(level, lr, seed=0):
    """Train PPO on answers of four tokens, whose first token alone decides the reward."""
    learner = mlrl_learners.make(
        "ppo",
        agents=("solo",),
        model=toy_model(seed, hidden_size=32),
        seed=seed,
        sampling={"max_new_tokens": 4, "temperature": 1.0, "top_p": 1.0},
        compute={"device": "cpu"},
        optimizer={"lr": lr, "epochs": 4},
        critic={"level": level, "lr": 1e-2, "value_clip": math.inf},
        group={"size": 8},
    )
    for number in range(30):
        learner.update(play_toy(TOYS["retry"], learner, 8, seed=number))
    return learner


@pytest.mark.slow
def test_a_critic_of_tokens_credits_the_early_token_that_decides_the_reward():
    """The policy stays nearly as it is, so that the first token stays random."""
    sizes = {}
    for level in ("token", "turn"):
        learner = trained(level, lr=1e-6)
        samples = samples_of(learner, play_toy(TOYS["retry"], learner, 16, seed=100))
        first = mean([abs(sample.by_token[0]) for sample in samples])
        later = mean([abs(value) for sample in samples for value in sample.by_token[1:]])
        sizes[level] = (first, later)
    assert sizes["token"][0] > 2 * sizes["token"][1]
    assert sizes["turn"][0] == pytest.approx(sizes["turn"][1], rel=0.1)
    assert sizes["token"][0] == pytest.approx(sizes["turn"][0], rel=0.3)


@pytest.mark.slow
@pytest.mark.parametrize("level", ["token", "turn"])
def test_both_critics_learn_a_task_that_an_early_token_decides(level):
    learner = trained(level, lr=3e-3)
    assert mean_return(TOYS["retry"], learner, ("solo",)) > 0.95
