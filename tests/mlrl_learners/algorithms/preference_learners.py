"""Learners of preferences on a tiny model, files of episodes, and slow log-probabilities."""

import json

import torch

import mlrl_learners
from mlrl_learners.config.option_places import merge_options

AGENTS = ("left", "right")


def make(name="madpo", seed=0, agents=AGENTS, **options):
    small = {
        "model": "tiny-random",
        "sampling": {"max_new_tokens": 8},
        "compute": {"device": "cpu"},
        "group": {"size": 8},
    }
    return mlrl_learners.make(name, agents=agents, seed=seed, **merge_options(small, options))


def disturb(learner, size=0.05):
    """Move the weights away from the reference."""
    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for policy in learner.policies.values():
            for parameter in policy.model.parameters():
                parameter.add_(size * torch.randn(parameter.shape, generator=generator))


def weights(learner):
    return [p.clone() for policy in learner.policies.values() for p in policy.model.parameters()]


def episode(left, right, earned, prompt="one, turn 0"):
    turn = {
        "observations": dict.fromkeys(AGENTS, prompt),
        "actions": {"left": left, "right": right},
        "rewards": dict.fromkeys(AGENTS, earned),
    }
    return {"return": earned, "turns": [turn]}


def write(path, *episodes):
    path.write_text("".join(json.dumps(each) + "\n" for each in episodes))
    return str(path)


def slow_logprob(policy, row, temperature):
    """The log-probability of one whole answer, by the model's own logits."""
    ids = torch.tensor([[*row.prompt_ids, *row.token_ids]])
    logprobs = (policy.model(input_ids=ids).logits[0] / temperature).log_softmax(-1)
    start = len(row.prompt_ids)
    return sum(logprobs[i - 1, ids[0, i]] for i in range(start, ids.shape[1]))
