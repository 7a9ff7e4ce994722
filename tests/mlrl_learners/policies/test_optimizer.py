import copy
import math

import pytest
import torch

from mlrl_learners.errors import ConfigError, NumericsError
from mlrl_learners.policies.optimizer import OptimizerConfig, PolicyOptimizer


def make(*values, **options):
    parameter = torch.nn.Parameter(torch.tensor(values or (1.0, 2.0)))
    return parameter, PolicyOptimizer([parameter], OptimizerConfig(**{"lr": 0.1, **options}))


def step(parameter, optimizer, *gradient):
    before = parameter.detach().clone()
    parameter.grad = torch.tensor(gradient)
    norm = optimizer.step()
    return norm, (parameter.detach() - before)


@pytest.mark.parametrize(
    ("options", "shares"),
    [
        ({}, [1, 1, 1, 1, 1]),
        ({"warmup_steps": 2}, [0.5, 1, 1, 1, 1]),
        ({"warmup_steps": 1, "total_steps": 5, "schedule": "linear"}, [1, 1, 0.75, 0.5, 0.25]),
        ({"total_steps": 4, "schedule": "cosine"}, [1, (2 + 2**0.5) / 4, 0.5, (2 - 2**0.5) / 4, 0]),
    ],
)
def test_steps_are_as_long_as_the_schedule_says(options, shares):
    """AdamW with one and the same gradient steps by the learning rate, every time."""
    parameter, optimizer = make(1.0, **options)
    for share in shares:
        assert optimizer.lr == pytest.approx(0.1 * share)
        _, moved = step(parameter, optimizer, 0.5)
        assert moved.tolist() == pytest.approx([-0.1 * share], abs=1e-5)


@pytest.mark.parametrize(("limit", "kept"), [(1.0, 0.2), (10.0, 1.0), (0.0, 1.0)])
def test_a_gradient_is_scaled_down_to_the_limit_and_its_own_norm_is_told(limit, kept):
    parameter, optimizer = make(max_grad_norm=limit, beta1=0.0)
    norm, _ = step(parameter, optimizer, 3.0, 4.0)
    assert norm == pytest.approx(5.0)
    (state,) = optimizer._adamw.state.values()
    assert state["exp_avg"].tolist() == pytest.approx([3.0 * kept, 4.0 * kept], rel=1e-5)


def test_clipping_keeps_one_wild_gradient_from_deciding_what_follows():
    """What AdamW remembers of it makes the next steps short: a limit keeps them long."""
    moved = {}
    for limit in (1.0, 0.0):
        parameter, optimizer = make(1.0, max_grad_norm=limit, beta1=0.0)
        step(parameter, optimizer, 1000.0)
        moved[limit] = float(step(parameter, optimizer, -1.0)[1])
    assert moved[1.0] > 50 * moved[0.0] > 0


def test_accumulated_gradients_are_one_step():
    one, whole = make(), make()
    whole_gradient = torch.tensor([0.5, -1.0])
    for part in (0.25, 0.75):
        (one[0] * part * whole_gradient).sum().backward()
    one[1].step()
    step(*whole, *whole_gradient.tolist())
    assert torch.allclose(one[0], whole[0], atol=1e-7)
    assert one[1].num_steps == whole[1].num_steps == 1


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_gradient_that_is_no_number_is_an_error_and_changes_nothing(bad):
    parameter, optimizer = make()
    with pytest.raises(NumericsError, match="the gradient norm is"):
        step(parameter, optimizer, bad, 1.0)
    assert parameter.tolist() == [1.0, 2.0]
    assert parameter.grad is None
    assert optimizer.num_steps == 0


def test_weight_decay_is_decoupled_from_the_gradient():
    parameter, optimizer = make(1.0, weight_decay=0.5)
    _, moved = step(parameter, optimizer, 0.0)
    assert moved.tolist() == pytest.approx([-0.05])


def test_restored_it_goes_on_exactly_where_it_was():
    (one, first), (two, second) = make(warmup_steps=3), make(warmup_steps=3)
    step(one, first, 1.0, -2.0)
    with torch.no_grad():
        two.copy_(one)
    second.load_state_dict(copy.deepcopy(first.state_dict()))
    assert torch.equal(step(one, first, 0.3, 0.2)[1], step(two, second, 0.3, 0.2)[1])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lr": 0.0}, "lr must be above 0, got 0"),
        ({"schedule": "step"}, "schedule must be constant, linear or cosine, got 'step'"),
        (
            {"schedule": "linear", "warmup_steps": 5, "total_steps": 5},
            r"total_steps must be above warmup_steps \(5\)",
        ),
        ({"max_grad_norm": -1.0}, "max_grad_norm must be at least 0, got -1"),
        ({"max_grad_norm": math.nan}, "max_grad_norm must be at least 0, got nan"),
        ({"weight_decay": -1.0}, "weight_decay must be at least 0, got -1"),
        ({"warmup_steps": -3}, "warmup_steps must be at least 0, got -3"),
        ({"total_steps": -1}, "total_steps must be at least 0, got -1"),
        ({"total_steps": 9}, "total_steps 9 has no meaning for schedule 'constant'"),
        ({"beta1": 1.5}, r"beta1 must be in \[0, 1\), got 1.5"),
        ({"beta2": 1.0}, r"beta2 must be in \[0, 1\), got 1.0"),
    ],
)
def test_a_value_outside_its_range_is_named(options, message):
    with pytest.raises(ConfigError, match=message):
        OptimizerConfig(**options)


def test_nothing_to_train_is_said_so():
    frozen = torch.nn.Parameter(torch.ones(2), requires_grad=False)
    with pytest.raises(ConfigError, match="nothing to train"):
        PolicyOptimizer([frozen], OptimizerConfig())
