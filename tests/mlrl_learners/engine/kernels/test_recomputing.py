import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.functional import linear, silu

from mlrl_learners.engine.kernels.recomputing import gated, gated_product, rms_norm

EPSILON = 1e-5


def plain_rms_norm(states, weight):
    exact = states.float()
    normed = exact * torch.rsqrt(exact.pow(2).mean(-1, keepdim=True) + EPSILON)
    return weight * normed.to(states.dtype)


def plain_gated(gate, up):
    return silu(gate) * up


def plain_gated_product(gate, up, weight):
    return linear(silu(gate) * up, weight)


def numbers(*shape, seed, dtype=torch.float32):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator).to(dtype).requires_grad_()


def results(function, *inputs):
    """Return a value and the gradients of what depends on all of it."""
    inputs = [each.detach().requires_grad_() for each in inputs]
    out = function(*inputs)
    direction = torch.linspace(-1, 2, out.numel()).view(out.shape).to(out.dtype)
    (out * direction).sum().backward()
    return [out, *(each.grad for each in inputs)]


def kept_bytes(function, *inputs):
    """Return how much is kept for the backward pass beside the inputs."""
    given, kept = {each.data_ptr() for each in inputs}, {}

    def pack(tensor):
        if tensor.data_ptr() not in given:
            kept[tensor.data_ptr()] = tensor.nbytes
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        out = function(*inputs)
    del out
    return sum(kept.values())


def compare(ours, theirs, tolerance):
    for one, other in zip(ours, theirs, strict=True):
        assert one.dtype == other.dtype
        assert torch.allclose(one, other, rtol=tolerance, atol=tolerance)


@given(
    shape=st.lists(st.integers(1, 4), min_size=1, max_size=3),
    width=st.integers(1, 9),
    seed=st.integers(0, 99),
)
def test_norms_and_their_gradients_equal_those_of_autograd(shape, width, seed):
    inputs = numbers(*shape, width, seed=seed), numbers(width, seed=seed + 1)
    ours = results(lambda *x: rms_norm(*x, EPSILON), *inputs)
    compare(ours, results(plain_rms_norm, *inputs), 1e-4)


@given(
    shape=st.lists(st.integers(1, 4), min_size=1, max_size=2),
    width=st.integers(1, 9),
    out=st.integers(1, 5),
    seed=st.integers(0, 99),
)
def test_gated_products_and_their_gradients_equal_those_of_autograd(shape, width, out, seed):
    inputs = *(numbers(*shape, width, seed=seed + i) for i in (0, 1)), numbers(out, width, seed=9)
    compare(results(gated_product, *inputs), results(plain_gated_product, *inputs), 1e-5)
    compare(results(gated, *inputs[:2]), results(plain_gated, *inputs[:2]), 1e-5)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_in_half_precision_they_differ_by_rounding_alone(dtype):
    states, weight = numbers(5, 8, seed=0, dtype=dtype), numbers(8, seed=1, dtype=dtype)
    ours = results(lambda *x: rms_norm(*x, EPSILON), states, weight)
    assert torch.equal(ours[0], plain_rms_norm(states, weight))
    compare(ours, results(plain_rms_norm, states, weight), 0.05)
    inputs = [numbers(5, 8, seed=i, dtype=dtype) for i in range(3)]
    compare(results(gated_product, *inputs), results(plain_gated_product, *inputs), 0.05)


def test_under_autocast_a_gradient_has_the_type_of_its_weight():
    gate, up = (numbers(5, 8, seed=i, dtype=torch.bfloat16) for i in (0, 1))
    weight = numbers(3, 8, seed=2)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        ours = results(gated_product, gate, up, weight)
        theirs = results(plain_gated_product, gate, up, weight)
    compare(ours, theirs, 0.05)


def test_a_frozen_weight_is_given_no_gradient():
    states, weight = numbers(5, 8, seed=0), numbers(8, seed=1).detach()
    rms_norm(states, weight, EPSILON).sum().backward()
    assert weight.grad is None
    gate, up = numbers(5, 8, seed=2), numbers(5, 8, seed=3)
    factor = numbers(3, 8, seed=4).detach()
    gated_product(gate, up, factor).sum().backward()
    assert factor.grad is None
    assert gate.grad is not None


def test_a_norm_keeps_one_number_a_state_and_a_gated_product_nothing():
    states, weight = numbers(50, 64, seed=0), numbers(64, seed=1)
    assert kept_bytes(lambda *x: rms_norm(*x, EPSILON), states, weight) == 50 * 4
    assert kept_bytes(plain_rms_norm, states, weight) > 50 * 64 * 4
    inputs = numbers(50, 64, seed=2), numbers(50, 64, seed=3), numbers(8, 64, seed=4)
    assert kept_bytes(gated_product, *inputs) == 0
    assert kept_bytes(gated, *inputs[:2]) == 0
    assert kept_bytes(plain_gated, *inputs[:2]) == 50 * 64 * 4
    assert kept_bytes(plain_gated_product, *inputs) == 2 * 50 * 64 * 4
