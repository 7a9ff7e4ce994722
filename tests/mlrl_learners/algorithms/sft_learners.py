"""Imitating learners on a tiny model, and files of episodes for them."""

import json

import mlrl_learners
from mlrl_learners.config.option_places import merge_options

AGENTS = ("left", "right")


def make(seed=0, agents=AGENTS, **options):
    small = {
        "model": "tiny-random",
        "sampling": {"max_new_tokens": 8},
        "compute": {"device": "cpu"},
    }
    return mlrl_learners.make("sft", agents=agents, seed=seed, **merge_options(small, options))


def episode(left, right, earned=1.0, prompt="one, turn 0", reason="stop", later=None):
    first = {
        "observations": dict.fromkeys(AGENTS, prompt),
        "actions": {"left": left, "right": right},
        "finish_reasons": dict.fromkeys(AGENTS, reason),
    }
    turns = [first]
    if later is not None:
        actions = dict.fromkeys(AGENTS, "end")
        turns.append({"observations": dict.fromkeys(AGENTS, later), "actions": actions})
    return {"return": earned, "turns": turns}


def write(path, *episodes):
    path.write_text("".join(json.dumps(each) + "\n" for each in episodes))
    return str(path)


def weights(learner):
    return [p.clone() for policy in learner.policies.values() for p in policy.model.parameters()]


def texts(learner, rows, agent="left"):
    tokenizer = learner.policies[learner.policy_of[agent]].tokenizer
    return [tokenizer.decode(list(row.token_ids)) for row in rows]
