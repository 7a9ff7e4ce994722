import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional

from mlrl_learners.engine.kernels.onednn import has_onednn, linear, pack_weight, product

needs_onednn = pytest.mark.skipif(not has_onednn(), reason="this torch has no oneDNN")
SIZES = st.integers(1, 40)


def draw(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@given(st.lists(SIZES, max_size=2), SIZES, SIZES, st.integers(0, 9))
def test_products_and_gradients_equal_torch(batch, inner, outer, seed):
    results = []
    for function in (linear, functional.linear):
        rows = draw(seed, *batch, inner).requires_grad_()
        weight = draw(seed + 1, outer, inner).requires_grad_()
        out = function(rows, weight)
        (out * draw(seed + 2, *out.shape)).sum().backward()
        results.append((out, rows.grad, weight.grad))
    for ours, theirs in zip(*results, strict=True):
        assert torch.allclose(ours, theirs, atol=1e-4)


@needs_onednn
@given(SIZES, SIZES, SIZES, SIZES)
def test_packed_weights_give_the_same_product(rows, hint, inner, outer):
    left, weight = draw(0, rows, inner), draw(1, outer, inner)
    assert torch.allclose(product(left, pack_weight(weight, hint)), left @ weight.t(), atol=1e-4)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_other_types_take_the_usual_way(dtype):
    rows, weight = draw(0, 3, 4).to(dtype), draw(1, 5, 4).to(dtype)
    assert torch.equal(linear(rows, weight), functional.linear(rows, weight))
    assert torch.equal(product(rows, weight), functional.linear(rows, weight))


def test_a_bias_and_no_rows_take_the_usual_way():
    rows, weight, bias = draw(0, 3, 4), draw(1, 5, 4), draw(2, 5)
    assert torch.equal(linear(rows, weight, bias), functional.linear(rows, weight, bias))
    assert linear(rows[:0], weight).shape == (0, 5)


def test_a_frozen_side_gets_no_gradient():
    rows, weight = draw(0, 3, 4).requires_grad_(), draw(1, 5, 4)
    linear(rows, weight).sum().backward()
    assert torch.allclose(rows.grad, weight.sum(0).expand(3, 4), atol=1e-5)
    rows, weight = rows.detach(), weight.requires_grad_()
    linear(rows, weight).sum().backward()
    assert torch.allclose(weight.grad, rows.sum(0).expand(5, 4), atol=1e-5)
