"""Every method learns: a tiny random model, a tiny text task, a few updates, three seeds or six.

A team shares its weights here, which halves the time. The interval is Student's, of 95 %; with
three seeds it is wide, so that methods whose gains differ much from seed to seed get six.
"""

import pytest

import mlrl_learners
from mlrl_learners.config.option_places import merge_options
from mlrl_learners.registry import BUILT_IN

TEAM, SOLO = ("left", "right"), ("solo",)
PAIRS = {"preferences": {"num_pairs": 4}}
OPTIONS = {
    "madpo": PAIRS,
    "dpo": PAIRS,
    "marlhf": {"group": {"size": 8}, "preferences": {"num_pairs": 4}, "reward_model": {"lr": 3e-3}},
    "sft": {"examples": {"filter_reward": 0.4}},
}
METHODS = {spec.name: OPTIONS.get(spec.name, {}) for spec in BUILT_IN}
NOISY = {"marlhf", "sft", "ipo"}  # of three seeds with a gain each the interval contains 0
LONG = {"marlhf"}  # trains a reward model in every update
SINGLE = [spec.name for spec in BUILT_IN if spec.max_agents == 1]
VARIANTS = [
    ("ippo", {"critic": {"kind": "value_head"}}),
    ("magrpo", {"loss": {"kind": "token_mean", "surrogate": "cispo"}}),
    ("magrpo", {"importance": {"correction": "token_truncate"}, "penalty": {"entropy_coef": 1e-3}}),
    ("magrpo", {"baseline": {"group_by": "task", "normalize_std": True}}),
    ("madpo", merge_options(PAIRS, {"loss": {"kind": "hinge"}})),
    ("madpo", merge_options(PAIRS, {"loss": {"kind": "ipo"}})),
    ("madpo", merge_options(PAIRS, {"loss": {"use_reference": False}})),
]


def interval_of_gains(name, options, toy):
    def student(seed):
        small = {
            "sampling": {"max_new_tokens": 8},
            "group": {"size": 16},
            "optimizer": {"lr": 1e-2},
            "team": {"share_weights": True},
        }
        agents = SOLO if name in SINGLE else TEAM
        return mlrl_learners.make(
            name, agents=agents, model="tiny-random", seed=seed, **merge_options(small, options)
        )

    is_noisy = {name, options.get("loss", {}).get("kind")} & NOISY
    return toy.interval(toy.gains(student, range(6 if is_noisy else 3), iterations=16))


def test_every_built_in_learner_is_tested_here():
    ours = [n for n, spec in mlrl_learners.registry.items() if "mlrl_learners" in str(spec.factory)]
    assert sorted(METHODS) == sorted(ours)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.long if name in LONG else pytest.mark.slow)
        for name in METHODS
    ],
)
def test_learning_raises_the_reward_over_three_seeds_or_more(name, toy):
    low, _ = interval_of_gains(name, METHODS[name], toy)
    assert low > 0.0


@pytest.mark.long
@pytest.mark.parametrize(("name", "options"), VARIANTS)
def test_so_do_its_variants(name, options, toy):
    low, _ = interval_of_gains(name, options, toy)
    assert low > 0.0
