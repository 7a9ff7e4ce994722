"""Answers cut by the token limit: kept, penalized or masked (`penalty.overlong`)."""

import dataclasses

import pytest
import torch

from mlrl_learners.algorithms.policy_gradient_config import PolicyGradientConfig
from mlrl_learners.algorithms.policy_update import answer_weights
from mlrl_learners.algorithms.reward_terms import RewardTerms
from mlrl_learners.config.groups import build_config
from mlrl_learners.config.option_places import merge_options
from mlrl_learners.functional.returns import joint_returns
from mlrl_learners.types import Completion, Node
from tests.mlrl_learners.algorithms.reward_learners import AGENTS, FAMILIES, make


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
