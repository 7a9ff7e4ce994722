import copy
import math

import pytest
import torch

from mlrl_learners.errors import NumericsError
from mlrl_learners.policies import loss_scale
from mlrl_learners.policies.loss_scale import LossScale
from mlrl_learners.policies.optimizer import OptimizerConfig, PolicyOptimizer


def make(start, dtype=torch.float16, *, is_active=True, **options):
    parameter = torch.nn.Parameter(start.to(dtype))
    config = OptimizerConfig(**{"lr": 0.1, **options})
    return parameter, PolicyOptimizer([parameter], config, make_scale(is_active=is_active))


def make_scale(*, is_active=True):
    scale = LossScale(is_active=is_active)
    scale.value = 2.0**16 if is_active else 1.0
    return scale


def take_step(parameter, optimizer, factor):
    optimizer.backward((parameter.float() * factor).sum())
    return optimizer.step()


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
def test_steps_and_scales_are_those_of_torch(dtype, monkeypatch):
    """Slow twin: torch's scaler, with the masters and the clipping written out."""
    monkeypatch.setattr(loss_scale, "GROWTH_STEPS", 3)
    generator = torch.Generator().manual_seed(0)
    start = torch.randn(8, generator=generator).to(dtype)
    ours, optimizer = make(start, dtype, max_grad_norm=0.5)
    theirs, master = start.clone(), torch.nn.Parameter(start.float())
    adamw = torch.optim.AdamW([master], lr=0.1, betas=(0.9, 0.99), weight_decay=0.0)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**16, growth_interval=3)
    skipped = 0
    for number in range(40):
        before = scaler.get_scale()
        factor = torch.randn(8, generator=generator)
        if number % 7 == 5:
            factor[3] = math.inf
        take_step(ours, optimizer, factor)
        weights = theirs.clone().requires_grad_()
        scaler.scale((weights.float() * factor).sum()).backward()
        master.grad = weights.grad.float()
        scaler.unscale_(adamw)
        torch.nn.utils.clip_grad_norm_([master], 0.5)
        scaler.step(adamw)
        scaler.update()
        theirs = master.detach().to(dtype)
        assert torch.equal(ours, theirs)
        assert optimizer.scale.value == scaler.get_scale()
        skipped += scaler.get_scale() < before
    assert optimizer.scale.num_skipped == skipped > 3


@pytest.mark.parametrize("is_active", [True, False])
def test_gradients_that_underflow_are_kept_by_the_scale(is_active):
    parameter, optimizer = make(torch.zeros(2), is_active=is_active)
    norm = take_step(parameter, optimizer, 1e-8)  # the smallest float16 is 6e-8
    assert norm == pytest.approx(2**0.5 * 1e-8 if is_active else 0.0, rel=1e-2)
    expected = -0.1 / 2 if is_active else 0.0  # half, because AdamW's epsilon is 1e-8, too
    assert parameter.tolist() == pytest.approx([expected] * 2, rel=1e-2)


def test_an_overflow_skips_the_step_and_halves_the_scale():
    parameter, optimizer = make(torch.ones(2))
    take_step(parameter, optimizer, 1e-3)
    before, state = parameter.detach().clone(), copy.deepcopy(optimizer.state_dict())
    assert take_step(parameter, optimizer, 2.0) == 0.0  # 2 * 2^16 is above 65504
    assert optimizer.scale.metrics("a/") == {"a/loss_scale": 2.0**15, "a/skipped_steps": 1.0}
    assert torch.equal(parameter, before)
    after = optimizer.state_dict()["adamw"]["state"][0]
    assert all(torch.equal(after[name], state["adamw"]["state"][0][name]) for name in after)
    assert take_step(parameter, optimizer, 1.5) == pytest.approx(1.5 * 2**0.5)
    assert not torch.equal(parameter, before)


def test_the_scale_doubles_after_enough_steps_without_an_overflow(monkeypatch):
    monkeypatch.setattr(loss_scale, "GROWTH_STEPS", 2)
    scale = make_scale()
    values = []
    for is_finite in (True, True, True, False, True, True):
        scale.report(is_finite=is_finite)
        values.append(scale.value / 2.0**16)
    assert values == [1, 2, 2, 1, 1, 2]


def test_gradients_that_overflow_at_any_scale_are_an_error():
    parameter, optimizer = make(torch.ones(1))
    for _ in range(16):
        take_step(parameter, optimizer, math.inf)
    with pytest.raises(NumericsError, match="gradients overflow float16 without a loss scale"):
        take_step(parameter, optimizer, math.inf)
    assert optimizer.scale.num_skipped == 16
    assert parameter.tolist() == [1.0]


def test_optimizers_of_one_loss_step_by_one_scale_which_is_then_adapted():
    scale = make_scale()
    weights = [torch.nn.Parameter(torch.ones(1, dtype=t)) for t in (torch.float16, torch.float32)]
    both = [PolicyOptimizer([weight], OptimizerConfig(lr=0.1), scale) for weight in weights]
    both[0].backward((weights[0].float() * 4.0 + weights[1]).sum())  # 4 * 2^16 overflows
    assert [each.step() for each in both] == [0.0, 1.0]
    assert [weight.item() for weight in weights] == pytest.approx([1.0, 0.9])
    assert (scale.value, scale.num_skipped) == (2.0**15, 1)
    both[0].backward((weights[0].float() * 0.25 + weights[1]).sum())
    assert [each.step() for each in both] == [0.25, 1.0]
    assert [weight.item() for weight in weights] == pytest.approx([0.9, 0.8], rel=1e-3)
    assert (scale.value, scale.num_skipped) == (2.0**15, 1)


def test_an_update_that_failed_leaves_no_report():
    scale = make_scale()
    scale.num_optimizers = 2
    scale.report(is_finite=False)
    scale.begin_update()
    for _ in range(2):
        scale.report(is_finite=True)
    assert (scale.value, scale.num_skipped) == (2.0**16, 0)


def test_restored_it_goes_on_exactly_where_it_was(monkeypatch):
    monkeypatch.setattr(loss_scale, "GROWTH_STEPS", 3)
    (one, first), (two, second) = (make(torch.ones(3)) for _ in range(2))
    for factor in (0.1, 2.0, 0.2, 0.3):
        take_step(one, first, factor)
    with torch.no_grad():
        two.copy_(one)
    second.load_state_dict(copy.deepcopy(first.state_dict()))
    for factor in (0.5, 0.01, 3.0, 0.7):
        for each in ((one, first), (two, second)):
            take_step(*each, factor)
    assert torch.equal(one, two)
    assert first.scale.state_dict() == second.scale.state_dict()
    assert first.scale.num_skipped > 1


def test_without_float16_nothing_is_scaled_or_stored():
    parameter, optimizer = make(torch.ones(1), torch.float32, is_active=False)
    optimizer.backward(parameter.sum())
    assert parameter.grad.tolist() == [1.0]
    assert "loss_scale" not in optimizer.state_dict()
    assert optimizer.scale.metrics("a/") == {}
