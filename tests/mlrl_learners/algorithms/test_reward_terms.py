"""Changes to rewards before the update: none by default, and invalid options."""

import pytest
import torch

from mlrl_learners.errors import ConfigError
from tests.mlrl_learners.algorithms.reward_learners import FAMILIES, make


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
