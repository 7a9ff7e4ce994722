import math
from fractions import Fraction

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from mlrl_learners.engine import TokenRow
from mlrl_learners.policies import OptimizerConfig, Policy, PolicyOptimizer, gradient_batches
from mlrl_learners.policies.gradient_batches import OrderedSums
from mlrl_learners.policies.tiny import tiny_model
from mlrl_learners.processes.work_sharing import World

# Float32 numbers of all sizes, whose sums depend on the order of addition.
NUMBERS = st.floats(-(2.0**60), 2.0**60, width=32, allow_subnormal=False)
GRADIENTS = st.lists(st.one_of(st.none(), st.tuples(NUMBERS, NUMBERS)), min_size=1, max_size=12)


class Peers:
    """Stands in for the other processes: all of them have the same tensor with other gradients."""

    def __init__(self, gradients):
        self.gradients = gradients

    def exchange(self, flags):
        return [[gradient is not None] * len(flags) for gradient in self.gradients]

    def gather_tensor(self, mine):
        found = [torch.tensor(each or (0.0, 0.0)) for each in self.gradients]
        assert any(torch.equal(mine, each) for each in found)
        return found


def summed(gradients, size):
    """Return the sum of the gradients of micro-batches as each of `size` processes adds them."""
    weight = torch.zeros(2)
    with pytest.MonkeyPatch.context() as patch:
        sums = OrderedSums([weight])
        for first in range(0, len(gradients), size):
            part = gradients[first : first + size]
            peers = Peers(part + [None] * (size - len(part)))
            patch.setattr(gradient_batches, "exchange", peers.exchange)
            patch.setattr(gradient_batches, "gather_tensor", peers.gather_tensor)
            weight.grad = None if part[0] is None else torch.tensor(part[0])
            sums.add()
            assert weight.grad is None
        sums.write()
    return weight.grad


def left_by_backward(gradients):
    """Return what one process has after a backward pass for each micro-batch."""
    weight = torch.zeros(2, requires_grad=True)
    for gradient in gradients:
        if gradient is not None:
            (weight * torch.tensor(gradient)).sum().backward()
    return weight.grad


@given(GRADIENTS, st.integers(2, 5))
@settings(deadline=None)
def test_all_numbers_of_processes_have_the_bits_of_one(gradients, size):
    expected, found = left_by_backward(gradients), summed(gradients, size)
    if expected is None:
        assert found is None
    else:
        assert found.numpy().tobytes() == expected.numpy().tobytes()


@given(GRADIENTS, st.integers(2, 5))
@settings(deadline=None)
def test_a_sum_is_as_near_to_the_exact_one_as_float32_is(gradients, size):
    given_ones = [each for each in gradients if each is not None]
    for column, found in enumerate(summed(gradients, size) if given_ones else ()):
        exact = sum(Fraction(each[column]) for each in given_ones)
        limit = len(given_ones) * 2.0**-24 * math.fsum(abs(each[column]) for each in given_ones)
        assert abs(Fraction(float(found)) - exact) <= Fraction(limit) * Fraction(1001, 1000)


class Nothing(OrderedSums):
    """Sums of a process whose peers are not there."""

    def add(self):
        pass


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_every_micro_batch_is_computed_once_and_cut_as_for_one_process(size, monkeypatch):
    policy = Policy(*tiny_model())
    optimizer = PolicyOptimizer(policy.parameters(), OptimizerConfig(lr=0.1))
    rows = [TokenRow([20 + i, *range(1, 3 + i)], range(1, 4 + i % 3)) for i in range(11)]
    cut = policy.engine.cut(rows, 24)
    assert len(cut) > 4
    monkeypatch.setattr(gradient_batches, "OrderedSums", Nothing)
    found = {}
    for rank in range(size):
        monkeypatch.setattr(gradient_batches, "world", lambda rank=rank: World(rank, size))
        found |= gradient_batches.gradient_batches(policy, rows, 24, [optimizer])
    assert [found[number] for number in range(len(cut))] == cut
