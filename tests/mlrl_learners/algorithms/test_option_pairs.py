"""Options of groups, credit, critics and penalties, in combinations in which every pair occurs.

Combinations are drawn with a seed, those that a configuration refuses are left out, and a covering
subset is chosen greedily. The usual tests train a few of it, `make test-slow` all.
"""

import functools
import itertools
import math
import random
from typing import NamedTuple

import pytest
import torch

import mlrl_learners
from mlrl_learners.config.option_places import merge_options
from mlrl_learners.errors import ConfigError, ModelNotFoundError, UnknownNameError
from mlrl_learners.play.rollout import collect_rollouts
from mlrl_learners.testing.toy_env import ToyEnv
from mlrl_learners.testing.toys import TOYS

SINGLES = ("grpo", "reinforce_pp", "ppo")
METHODS = ("magrpo", "marloo", "mareinforce", "ippo", "mappo", "marlhf", *SINGLES)
TASK_GROUP = {"group": {"rollouts": 2}}
FACTORS = {
    "method": {method: {} for method in METHODS},
    "weights": {
        "own": {},
        "one": {"team": {"share_weights": True}},
        "lora": {"lora": {"rank": 2}},
    },
    "credit": {
        kind: {"credit": {"kind": kind}}
        for kind in ("shared", "mixed", "quality", "margin", "replay", "alignment")
    },
    "groups": {
        "node": {},
        "agent": merge_options(TASK_GROUP, {"baseline": {"group_by": "agent"}}),
        "anchor": merge_options(TASK_GROUP, {"baseline": {"group_by": "anchor"}}),
        "components": {"baseline": {"components": {"reward": 2.0}}},
        "role_ema": {"baseline": {"kind": "role_ema"}},
        "trajectory": merge_options(
            TASK_GROUP, {"baseline": {"group_by": "task", "weight_by": "trajectory"}}
        ),
    },
    "critic": {
        "default": {},
        "popart": {"critic": {"normalize": True}},
        "token": {"critic": {"level": "token"}},
        "token_head": {"critic": {"level": "token", "kind": "value_head", "normalize": True}},
    },
    "kl": {
        "none": {},
        "token": {"penalty": {"kl_coef": 0.1, "kl_in": "token"}},
        "loss": {"penalty": {"kl_coef": 0.1, "kl_weighted": True}},
    },
    "walk": {
        "tree": {},
        "chain": {"group": {"branching": "chain"}},
        "greedy": {"group": {"branching": "greedy"}, "credit": {"turn_weights": "nodes"}},
    },
    "joint": {mode: {"group": {"joint_mode": mode}} for mode in ("aligned", "cross", "replay")},
    "loss": {
        "default": {},
        "cispo": {"loss": {"kind": "token_mean", "surrogate": "cispo"}},
        "gspo": {"loss": {"kind": "gspo"}},
        "dual": {"loss": {"kind": "grpo", "ratio_cap": 3.0}, "optimizer": {"epochs": 2}},
    },
    "importance": {
        "none": {},
        "truncate": {"importance": {"correction": "token_truncate"}},
        "mask": {"importance": {"correction": "sequence_mask", "veto": 1e-4}},
    },
    "penalty": {
        "none": {},
        "entropy": {"penalty": {"entropy_coef": 0.01}},
        "soft": {"penalty": {"overlong": "soft", "overlong_penalty": 0.5, "overlong_buffer": 2}},
    },
    "type": {
        "float32": {},
        "float16": {"compute": {"dtype": "float16"}},
        "fp16": {"compute": {"precision": "fp16"}},
    },
    "task": {"letters": {}, "relay": {}},  # both act in every turn, or one after the other
}
SMALL = {
    "sampling": {"max_new_tokens": 3},
    "group": {"size": 2},
    "compute": {"device": "cpu"},
    "optimizer": {"lr": 1e-2},
}
DRAWS = 3000
PARTS = 8


class Case(NamedTuple):
    """One value of each factor."""

    method: str
    weights: str
    credit: str
    groups: str
    critic: str
    kl: str
    walk: str
    joint: str
    loss: str
    importance: str
    penalty: str
    type: str
    task: str

    def make(self, seed=0, model="tiny-random"):
        parts = [FACTORS[factor][value] for factor, value in self._asdict().items()]
        agents = ("solo",) if self.method in SINGLES else ("left", "right")
        options = functools.reduce(merge_options, parts, SMALL)
        return mlrl_learners.make(self.method, agents=agents, model=model, seed=seed, **options)

    @property
    def is_trained(self):
        """Whether the configuration is accepted, and the rewards are those that it takes."""
        if self.task == "relay" and (
            self.credit in ("quality", "margin")  # rewards are in [0, 1]
            or (self.method == "marlhf" and self.walk != "tree")  # futures of pairs are not known
        ):
            return False
        both_act = self.task == "letters" and self.method not in SINGLES
        if self.credit == "replay" and self.joint == "aligned" and both_act:
            return False  # no answer has an alternative beside the same answer of the other
        try:
            self.make(model="tiny-randm")
        except (ConfigError, UnknownNameError):
            return False
        except ModelNotFoundError:
            return True
        raise AssertionError


def pairs(case):
    """Return every pair of values of a combination."""
    return set(itertools.combinations(enumerate(case), 2))


@functools.cache
def covering():
    """Return trained combinations with every pair that occurs in one of many drawn ones."""
    draw = random.Random(0)
    drawn = (Case(*map(draw.choice, map(list, FACTORS.values()))) for _ in range(DRAWS))
    cases = {case: pairs(case) for case in dict.fromkeys(drawn) if case.is_trained}
    missing, chosen = set().union(*cases.values()), []
    while missing:
        chosen.append(max(cases, key=lambda case: len(cases[case] & missing)))
        missing -= cases[chosen[-1]]
    return chosen


def iterate(case, learner, toy, iteration):
    """Play and update once; return the metrics."""
    copies, seed = learner.rollout.num_rollouts, 10 * iteration
    if case.task == "letters":
        rollouts = toy.play(learner, tasks=("a",) * 2 * copies, seed=seed, max_turns=2)
    else:
        envs = [ToyEnv(TOYS["relay"], learner.agents) for _ in range(2 * copies)]
        seeds = [seed + number // copies for number in range(2 * copies)]
        options = [{}] * len(envs)
        rollouts = collect_rollouts(
            envs, learner, learner.rollout, task_options=options, seeds=seeds
        ).rollouts
    return learner.update(rollouts)


def weights(learner):
    team = getattr(learner, "learner", learner)  # that of marlhf
    found = [p for policy in team.policies.values() for p in policy.parameters()]
    critics = getattr(team, "critics", None)
    for critic in critics.critics.values() if critics else ():
        found += critic.parameters()
    return [weight.detach().clone() for weight in found]


def is_equal(one, other):
    return all(map(torch.equal, one, other))


def check(case, toy, folder):
    """Check that a combination trains, with finite metrics, and resumes bit-exactly."""
    whole, resumed = case.make(), case.make(seed=1)
    before = weights(whole)
    metrics = iterate(case, whole, toy, 0)
    whole.save(folder / "-".join(case))
    metrics |= iterate(case, whole, toy, 1)
    assert all(isinstance(value, float) and math.isfinite(value) for value in metrics.values())
    assert not is_equal(before, weights(whole)), case
    resumed.load(folder / "-".join(case))
    iterate(case, resumed, toy, 1)
    assert is_equal(weights(resumed), weights(whole)), case


def test_every_value_of_every_factor_is_trained():
    values = set().union(*(set(enumerate(case)) for case in covering()))
    assert values == {
        (place, value) for place, some in enumerate(FACTORS.values()) for value in some
    }


@pytest.mark.parametrize("number", range(4))
def test_a_combination_trains_and_resumes_bit_exactly(number, toy, tmp_path):
    check(covering()[number], toy, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_every_pair_of_options_trains_and_resumes_bit_exactly(part, toy, tmp_path):
    for case in covering()[part::PARTS]:
        check(case, toy, tmp_path)
