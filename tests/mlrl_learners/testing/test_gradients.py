"""Mean gradients over sampled trees or chains against closed forms.

Long tests measure every method and walk over 2,000 to 4,000 rollouts, the others some of them over
2,000.

The factor between them is what a baseline takes off: (G - 1) / G where the mean of a group contains
the answer itself, else 1.
"""

import pytest
import torch

import mlrl_learners
from mlrl_learners.config.option_places import merge_options
from mlrl_learners.errors import ConfigError
from mlrl_learners.testing.gradients import Slopes, measure_slopes, play_toy, update_gradient
from mlrl_learners.testing.toy_model import toy_model
from mlrl_learners.testing.toys import TOYS

AGENTS = ("left", "right")
SMALL = {
    "sampling": {"max_new_tokens": 1, "temperature": 1.0, "top_p": 1.0},
    "credit": {"gamma": 1.0},
    "group": {"size": 2},
    "loss": {"kind": "sequence"},
    "compute": {"device": "cpu", "max_rows": 2048, "micro_batch_tokens": 256},
}
PLAIN = {"advantage": {"normalize": False, "gae_lambda": 1.0}, "optimizer": {"epochs": 1}}
# What each method's baseline makes of the gradient, with 2 answers a prompt.
SCALES = {
    "magrpo": 0.5,
    "mareinforce": 1.0,
    "marloo": 1.0,
    "ippo": 1.0,
    "mappo": 1.0,
}
WALKS = [(b, m) for b in ("tree", "chain") for m in ("aligned", "cross")]


# In a tree of crossed answers a rollout has the most joint actions.
MANY = {
    ("tree", "aligned"): 2500,
    ("chain", "aligned"): 2500,
    ("tree", "cross"): 2000,
    ("chain", "cross"): 4000,
}


def cases(names):
    """Return every method and walk over many rollouts, and some over few."""
    every = [
        pytest.param(name, *walk, MANY[walk], marks=pytest.mark.long)
        for name in names
        for walk in WALKS
    ]
    some = [(name, *WALKS[number % len(WALKS)], 2000) for number, name in enumerate(names[::2])]
    return [*every, *some]


def make(name, branching="tree", joint_mode="aligned", agents=AGENTS, **options):
    own = PLAIN if name in ("ippo", "mappo", "iac", "maac", "ppo") else {}
    walk = {"group": {"branching": branching, "joint_mode": joint_mode}}
    return mlrl_learners.make(
        name, agents=agents, model=toy_model(0), **merge_options(SMALL, own, walk, options)
    )


def assert_exact(slopes, scale, rollouts):
    """Every slope is the exact one within 4 standard errors, which are small."""
    bound = 0.08 * (10_000 / rollouts) ** 0.5
    length = sum(value**2 for value in slopes.exact) ** 0.5
    for exact, found, error in zip(slopes.exact, slopes.found, slopes.errors, strict=True):
        assert found == pytest.approx(scale * exact, abs=4 * error + 1e-6)
        assert error < bound * scale * length


@pytest.mark.parametrize(("name", "branching", "joint_mode", "rollouts"), cases([*SCALES]))
def test_the_mean_gradient_is_that_of_the_return(name, branching, joint_mode, rollouts):
    toy = TOYS["doors"]  # episodes that end early, and answers that lead to different states
    learner = make(name, branching, joint_mode)
    slopes = measure_slopes(toy, learner, num_rollouts=rollouts)
    assert_exact(slopes, SCALES[name], rollouts)


@pytest.mark.parametrize(
    ("name", "branching", "joint_mode", "rollouts"), cases([*SCALES, "iac", "maac"])
)
def test_a_turn_weighs_what_it_pays(name, branching, joint_mode, rollouts):
    learner = make(name, branching, joint_mode)
    slopes = measure_slopes(TOYS["late_cost"], learner, num_rollouts=rollouts)
    assert_exact(slopes, SCALES.get(name, 1.0), rollouts)


@pytest.mark.parametrize(
    ("name", "branching", "rollouts"),
    [
        *(
            pytest.param(name, branching, rollouts, marks=mark)
            for name in [*SCALES, "iac", "maac"]
            for branching, rollouts, mark in (
                ("tree", 1500, pytest.mark.long),
                ("chain", 2500, pytest.mark.slow),
            )
        ),
        pytest.param("magrpo", "tree", 1500, marks=pytest.mark.slow),
        ("magrpo", "chain", 1000),
        ("mappo", "chain", 1000),
    ],
)
def test_turns_taken_one_by_one_follow_each_agents_own_return(name, branching, rollouts):
    """Rewards arrive while agents wait, and one leaves before the others."""
    slopes = measure_slopes(TOYS["relay"], make(name, branching), num_rollouts=rollouts)
    assert slopes.exact[0] == pytest.approx(1.5)  # -0.5 at once, and 2 while it waits
    assert slopes.exact[3] == pytest.approx(1.0, abs=0.3)  # none of what follows after leaving
    assert_exact(slopes, SCALES.get(name, 1.0), rollouts)


@pytest.mark.parametrize(
    ("name", "branching"),
    [
        *(
            pytest.param(name, branching, marks=pytest.mark.slow)
            for name in ("mareinforce", "magrpo")
            for branching in ("tree", "chain")
        ),
        # Critics make these three times as long.
        pytest.param("ippo", "tree", marks=pytest.mark.long),
        pytest.param("ippo", "chain", marks=pytest.mark.long),
    ],
)
def test_so_is_that_of_updates_on_one_rollout_each(name, branching):
    """A divisor that depended on how episodes end would weigh those that end early more."""
    learner = make(name, branching, agents=AGENTS[:1], group={"size": 2})
    slopes = measure_slopes(TOYS["doors"], learner, num_rollouts=1500, num_updates=1500)
    assert_exact(slopes, SCALES[name], 300)


@pytest.mark.slow
@pytest.mark.parametrize("branching", ["tree", "chain"])
def test_the_bias_of_the_best_of_a_group_as_a_baseline_is_bounded(branching):
    """The maximum contains the answer itself; `docs/learners.md` gives the figures."""
    learner = make("maremax", branching, group={"size": 4})
    slopes = measure_slopes(TOYS["doors"], learner, num_rollouts=2000)
    assert slopes.scale > 0
    assert slopes.error < 0.5


@pytest.mark.parametrize("name", ["grpo", "reinforce_pp", "rloo", "ppo"])
def test_methods_for_one_agent_go_the_right_way(name):
    learner = make(name, agents=AGENTS[:1], group={"size": 4})
    slopes = measure_slopes(TOYS["late_cost"], learner, num_rollouts=1000)
    assert slopes.error < 4 * slopes.standard_error + 0.05
    assert slopes.scale > 0


@pytest.mark.slow
def test_nodes_that_weigh_alike_follow_another_gradient():
    """4 answers a prompt: turn 1 counts 4 times, and 1 - 0.4 * 4 is below 0."""
    learner = make("magrpo", credit={"turn_weights": "nodes"}, group={"size": 4})
    slopes = measure_slopes(TOYS["late_cost"], learner, num_rollouts=2000)
    assert slopes.scale < 0
    assert slopes.error == 2.0


def test_constant_rewards_leave_a_gradient_of_noise_alone():
    slopes = measure_slopes(TOYS["constant"], make("mareinforce"), num_rollouts=2000)
    assert slopes.error < 4 * slopes.standard_error


def test_a_measured_learner_stays_as_it_is():
    learner = make("mappo")
    parameters = [
        p.clone() for o in (*learner.optimizers.values(), *learner.critics.optimizers.values())
        for p in o.parameters
    ]  # fmt: skip
    gradient = update_gradient(learner, play_toy(TOYS["retry"], learner, 4))
    after = [
        p for o in (*learner.optimizers.values(), *learner.critics.optimizers.values())
        for p in o.parameters
    ]  # fmt: skip
    assert float(gradient.abs().max()) > 0
    assert all(torch.equal(a, b) for a, b in zip(parameters, after, strict=True))


def test_sampling_that_has_no_exact_gradient_is_refused():
    with pytest.raises(ConfigError, match=r"top_p 1 .* got 1, 1\.0, 0\.9 and 0"):
        measure_slopes(TOYS["retry"], make("magrpo", sampling={"top_p": 0.9}), num_rollouts=20)


@pytest.mark.parametrize(
    ("found", "error"), [((2.0, 4.0), 0.0), ((-1.0, -2.0), 2.0), ((2.0, -1.0), 2.0)]
)
def test_an_error_does_not_depend_on_the_scale_of_a_loss(found, error):
    assert Slopes((1.0, 2.0), found, (0.0, 0.0)).error == pytest.approx(error)
