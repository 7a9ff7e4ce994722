import copy
import math

import pytest
import torch

from mlrl_learners.policies.optimizer import OptimizerConfig, PolicyOptimizer

HALF = [torch.bfloat16, torch.float16]


def numbers(seed, dtype=torch.float32, size=64, scale=0.02):
    generator = torch.Generator().manual_seed(seed)
    return (scale * torch.randn(size, generator=generator)).to(dtype)


def make(dtype, start, **options):
    parameter = torch.nn.Parameter(start.to(dtype))
    return parameter, PolicyOptimizer([parameter], OptimizerConfig(**{"lr": 1e-5, **options}))


def step(parameter, optimizer, gradient):
    parameter.grad = gradient.to(parameter.dtype)
    return optimizer.step()


@pytest.mark.parametrize("dtype", HALF)
@pytest.mark.parametrize("options", [{}, {"weight_decay": 0.1, "max_grad_norm": 0.5}])
def test_weights_are_those_of_a_float32_run_rounded(dtype, options):
    """So as many of them move, by steps of any size."""
    low, low_optimizer = make(dtype, numbers(0, dtype), **options)
    full, full_optimizer = make(torch.float32, numbers(0, dtype), **options)
    for number in range(200):
        gradient = numbers(number, dtype, scale=1.0)
        assert step(low, low_optimizer, gradient) == step(full, full_optimizer, gradient)
    assert torch.equal(low, full.to(dtype))
    assert low.dtype == dtype
    assert not torch.equal(low, numbers(0, dtype))


@pytest.mark.parametrize("dtype", HALF)
def test_gradients_of_many_backward_passes_add_up_in_float32(dtype):
    """257 parts of 1: in bfloat16, 256 + 1 is 256."""
    parameter, optimizer = make(dtype, torch.ones(1), max_grad_norm=0.0)
    for part in [256.0] + [1.0] * 64:
        (parameter * torch.tensor([part], dtype=dtype)).sum().backward()
        assert parameter.grad is None  # it takes no memory beside the master's
    assert optimizer.step() == 320.0


def test_weights_that_somebody_else_wrote_are_stepped_from():
    parameter, optimizer = make(torch.bfloat16, numbers(0))
    step(parameter, optimizer, numbers(1, scale=1.0))
    with torch.no_grad():
        parameter[:32] = numbers(5)[:32].bfloat16()
    alone, other = make(torch.bfloat16, parameter.detach())
    other.load_state_dict(copy.deepcopy(optimizer.state_dict()) | {"masters": {}})
    for each in ((parameter, optimizer), (alone, other)):
        step(*each, numbers(2, scale=1.0))
    assert torch.equal(parameter[:32], alone[:32])


def test_restored_it_goes_on_bit_by_bit():
    """Small steps: without the masters, what they have gathered would be lost."""
    (one, first), (two, second) = (make(torch.bfloat16, numbers(0)) for _ in range(2))
    for number in range(3):
        step(one, first, numbers(number, scale=1.0))
    with torch.no_grad():
        two.copy_(one)
    second.load_state_dict(copy.deepcopy(first.state_dict()))
    for number in range(3, 60):
        for each in ((one, first), (two, second)):
            step(*each, numbers(number, scale=1.0))
    assert torch.equal(one, two)
    ours, theirs = (each.state_dict()["masters"][0] for each in (first, second))
    assert torch.equal(ours, theirs)
    assert not torch.equal(ours, one.float())


def test_a_state_from_before_there_were_masters_starts_them_from_the_weights():
    parameter, optimizer = make(torch.bfloat16, numbers(0))
    step(parameter, optimizer, numbers(1, scale=1.0))
    state = copy.deepcopy(optimizer.state_dict())
    del state["masters"], state["num_updates"]
    old = {name: value.bfloat16() for name, value in state["adamw"]["state"][0].items()}
    state["adamw"]["state"][0] = old | {"step": torch.tensor(1.0)}
    other, restored = make(torch.bfloat16, parameter.detach())
    restored.load_state_dict(state)
    assert torch.equal(restored.state_dict()["masters"][0], other.float())
    assert restored.state_dict()["adamw"]["state"][0]["exp_avg"].dtype == torch.float32
    assert math.isfinite(step(other, restored, numbers(2, scale=1.0)))


def test_float32_has_no_masters():
    parameter, optimizer = make(torch.float32, numbers(0))
    step(parameter, optimizer, numbers(1))
    assert optimizer.state_dict()["masters"] == {}
    assert optimizer._trained[0] is parameter
