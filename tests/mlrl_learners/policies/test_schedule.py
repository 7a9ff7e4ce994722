import copy
import itertools
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mlrl_learners.errors import ConfigError
from mlrl_learners.policies.optimizer import PolicyOptimizer
from mlrl_learners.policies.schedule import OptimizerConfig, learning_rate_share, planned_steps

FALLING = ["linear", "cosine"]


class ManySteps(OptimizerConfig):
    """Three steps an update."""

    @property
    def steps_per_update(self):
        return 3


def make(kind=ManySteps, **options):
    parameter = torch.nn.Parameter(torch.ones(2))
    return parameter, PolicyOptimizer([parameter], kind(**{"lr": 1.0, **options}))


def update(parameter, optimizer, steps=3):
    """Take the steps of an update; return their rates."""
    optimizer.begin_update()
    rates = []
    for _ in range(steps):
        parameter.grad = torch.ones(2)
        optimizer.step()
        rates.append(optimizer.last_lr)
    return rates


def slow_share(step, config):
    """The rate after `step` steps, counted by hand."""
    if step < config.warmup_steps:
        return (step + 1) / config.warmup_steps
    if config.schedule == "constant":
        return 1.0
    done = (step - config.warmup_steps) / (config.total_steps - config.warmup_steps)
    if done >= 1:
        return 0.0
    return 1 - done if config.schedule == "linear" else math.cos(math.pi * done / 2) ** 2


@given(
    step=st.integers(0, 60),
    warmup=st.integers(0, 20),
    span=st.integers(1, 30),
    schedule=st.sampled_from(["constant", "linear", "cosine"]),
)
def test_rates_equal_a_slow_reference(step, warmup, span, schedule):
    total = 0 if schedule == "constant" else warmup + span
    told = OptimizerConfig(schedule=schedule, warmup_steps=warmup, total_steps=total)
    derived = OptimizerConfig(schedule=schedule, warmup_steps=warmup)
    expected = pytest.approx(slow_share(step, told), abs=1e-12)
    assert learning_rate_share(step, told) == expected
    assert learning_rate_share(step, derived, total) == expected


@given(
    num_updates=st.integers(1, 20),
    warmup=st.integers(0, 2),
    schedule=st.sampled_from(FALLING),
)
def test_a_planned_rate_falls_with_every_step_and_never_to_0(num_updates, warmup, schedule):
    config = ManySteps(schedule=schedule, warmup_steps=warmup)
    total = planned_steps(config, num_updates)
    assert total == 3 * num_updates
    shares = [learning_rate_share(step, config, total) for step in range(total)]
    after = shares[warmup:]
    assert all(later < earlier for earlier, later in itertools.pairwise(after))
    assert shares[-1] > 0


@pytest.mark.parametrize("schedule", FALLING)
@pytest.mark.parametrize("taken", [(3, 3, 3, 3), (0, 3, 1, 3), (3, 0, 0, 3)])
def test_an_update_that_took_fewer_steps_counts_all_of_them(schedule, taken):
    full, other = (make(schedule=schedule) for _ in range(2))
    for each in (full, other):
        each[1].plan_updates(4)
    for steps in taken:
        rates = update(*full)
        assert update(*other, steps) == rates[:steps]
    assert full[1].last_lr == other[1].last_lr > 0


def test_a_resumed_optimizer_takes_the_rates_of_one_that_was_never_stopped():
    whole, second = make(schedule="cosine", warmup_steps=2), make(schedule="cosine", warmup_steps=2)
    for each in (whole, second):
        each[1].plan_updates(5)
    update(*whole)
    update(*whole, 0)  # the last update before the checkpoint took no steps
    second[1].load_state_dict(copy.deepcopy(whole[1].state_dict()))
    for _ in range(3):
        assert update(*whole) == update(*second)


def test_a_resume_for_more_updates_falls_over_the_new_total():
    parameter, optimizer = make(schedule="linear")
    optimizer.plan_updates(2)
    update(parameter, optimizer)
    optimizer.plan_updates(4)
    assert update(parameter, optimizer) == pytest.approx([1 - step / 12 for step in (3, 4, 5)])


def test_a_state_from_before_updates_were_counted_goes_on_at_its_steps():
    parameter, optimizer = make(schedule="linear", total_steps=12)
    for _ in range(2):
        update(parameter, optimizer)
    state = copy.deepcopy(optimizer.state_dict())
    del state["num_updates"]
    other, restored = make(schedule="linear", total_steps=12)
    restored.load_state_dict(state)
    assert update(other, restored) == update(parameter, optimizer)


@pytest.mark.parametrize("schedule", FALLING)
def test_an_update_after_the_end_is_an_error_and_not_a_step_at_rate_0(schedule):
    parameter, optimizer = make(schedule=schedule)
    optimizer.plan_updates(2)
    for _ in range(2):
        update(parameter, optimizer)
    with pytest.raises(ConfigError, match="is over after 6 optimizer steps, 2 updates"):
        update(parameter, optimizer)


@pytest.mark.parametrize("schedule", FALLING)
def test_a_length_that_nobody_told_is_an_error_at_the_first_update(schedule):
    parameter, optimizer = make(schedule=schedule)
    with pytest.raises(ConfigError, match=r"its length is not known.*plan_updates.*total_steps"):
        update(parameter, optimizer)
    with pytest.raises(ConfigError, match="its length is not known"):
        optimizer.step()
    assert parameter.tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("options", "num_updates", "message"),
    [
        (
            {"schedule": "linear", "total_steps": 8},
            3,
            "total_steps 8 is below the 9 optimizer steps of 3 updates.*at least 9",
        ),
        (
            {"schedule": "cosine", "warmup_steps": 9},
            3,
            "warmup_steps must be below the 9 optimizer steps of 3 updates.*got 9",
        ),
    ],
)
def test_a_run_that_would_train_at_rate_0_is_refused(options, num_updates, message):
    _, optimizer = make(**options)
    with pytest.raises(ConfigError, match=message):
        optimizer.plan_updates(num_updates)


def test_an_explicit_length_beyond_the_run_is_kept():
    parameter, optimizer = make(schedule="linear", total_steps=30)
    optimizer.plan_updates(2)
    assert update(parameter, optimizer) == pytest.approx([1, 29 / 30, 28 / 30])


def test_a_constant_rate_needs_no_plan_and_warms_up_over_updates_without_steps():
    parameter, optimizer = make(warmup_steps=6)
    assert update(parameter, optimizer, 1) == pytest.approx([1 / 6])
    assert update(parameter, optimizer, 1) == pytest.approx([4 / 6])
    assert update(parameter, optimizer, 3) == [1, 1, 1]
