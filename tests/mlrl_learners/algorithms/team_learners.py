"""Learners of teams of three on tiny models, and how to look at their weights."""

from dataclasses import replace

import torch

import mlrl_learners
from mlrl_learners.config.option_places import merge_options

AGENTS = ("left", "right", "third")
SMALL = {"sampling": {"max_new_tokens": 8}, "compute": {"device": "cpu"}, "optimizer": {"lr": 1e-2}}
LORA = {"lora": {"rank": 3}}
METHODS = {
    "magrpo": {"penalty": {"kl_coef": 0.1}},
    "ippo": {"critic": {"kind": "separate"}},
    "mappo": {},
    "iac": {"critic": {"kind": "value_head"}},
    "madpo": {"group": {"size": 4}},
    "sft": {},
}


def make(name="magrpo", agents=AGENTS, model="tiny-random", seed=0, **options):
    return mlrl_learners.make(
        name, agents=agents, model=model, seed=seed, **merge_options(SMALL, options)
    )


def weights_of(policy):
    return [weight.detach().clone() for weight in policy.parameters()]


def base_of(learner, agent="left"):
    policy = learner.policies[learner.policy_of[agent]]
    return [w.detach().clone() for w in policy.model.parameters() if not w.requires_grad]


def equal(some, others):
    return all(torch.equal(a, b) for a, b in zip(some, others, strict=True))


def without(rollouts, *agents):
    """Leave out what some agents wrote, so that others alone are learnt from."""
    return [
        replace(rollout, root=replace(rollout.root, completions=kept))
        for rollout in rollouts
        for kept in [{a: c for a, c in rollout.root.completions.items() if a not in agents}]
    ]
