import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mlrl_learners.errors import ConfigError
from mlrl_learners.functional.value_normalization import ValueStatistics, rescaled_head

updates = st.lists(
    st.lists(st.tuples(st.integers(-50, 50), st.integers(0, 1)), min_size=1, max_size=4),
    min_size=1,
    max_size=4,
)  # targets and the value that each is for, by update


def add(statistics, batch, scale=1.0):
    targets, columns = zip(*batch, strict=True)
    statistics.update(scale * torch.tensor(targets, dtype=torch.float64), torch.tensor(columns))


def slow_statistics(batches, column, decay):
    """Weight each update by decay^(updates after it), and divide by the sum of the weights."""
    seen = [[x for x, c in batch if c == column] for batch in batches]
    seen = [values for values in seen if values]
    if not seen:
        return 0.0, 1.0
    weights = [decay ** (len(seen) - 1 - k) for k in range(len(seen))]
    first, second = (
        sum(
            w * sum(x**power for x in values) / len(values)
            for w, values in zip(weights, seen, strict=True)
        )
        / sum(weights)
        for power in (1, 2)
    )
    return first, max(math.sqrt(max(second - first**2, 0.0)), 1e-4)


@given(batches=updates, decay=st.floats(0, 0.99))
def test_statistics_equal_a_slow_reference(batches, decay):
    statistics = ValueStatistics(2, decay=decay)
    for batch in batches:
        add(statistics, batch)
    for column in range(2):
        mean, std = slow_statistics(batches, column, decay)
        assert float(statistics.mean[column]) == pytest.approx(mean, abs=1e-7)
        assert float(statistics.std[column]) == pytest.approx(std, abs=1.1e-4)


def test_bias_correction_makes_the_first_update_the_statistics_of_its_targets():
    statistics = ValueStatistics(1)
    add(statistics, [(2, 0), (6, 0)])
    assert statistics.mean.tolist() == pytest.approx([4.0])
    assert statistics.std.tolist() == pytest.approx([2.0])


def test_with_the_decay_of_mappo_all_updates_count_alike():
    statistics = ValueStatistics(1, decay=0.99999)
    for target in range(11):
        add(statistics, [(target, 0)])
    assert statistics.mean.tolist() == pytest.approx([5.0], abs=1e-3)
    assert statistics.std.tolist() == pytest.approx([10**0.5], abs=1e-3)


@given(batches=updates)
def test_values_are_normalised_and_back(batches):
    statistics = ValueStatistics(2)
    for batch in batches:
        add(statistics, batch)
    values, columns = torch.linspace(-9, 9, 6).double(), torch.tensor([0, 1] * 3)
    there = statistics.normalize(values, columns)
    assert statistics.denormalize(there, columns).tolist() == pytest.approx(values.tolist())


@given(batches=updates, later=updates)
def test_a_restored_state_continues_bit_identically(batches, later):
    first, second = ValueStatistics(2, decay=0.9), ValueStatistics(2, decay=0.9)
    for batch in batches:
        add(first, batch)
    second.load_state_dict(first.state_dict())
    for batch in later:
        add(first, batch)
        add(second, batch)
    assert first.mean.tolist() == second.mean.tolist()
    assert first.std.tolist() == second.std.tolist()


def test_weights_count_like_repetitions():
    weighted, repeated = ValueStatistics(1), ValueStatistics(1)
    targets, columns = torch.tensor([1.0, 7.0]), torch.tensor([0, 0])
    weighted.update(targets, columns, torch.tensor([3.0, 1.0]))
    add(repeated, [(1, 0), (1, 0), (1, 0), (7, 0)])
    assert weighted.mean.tolist() == pytest.approx(repeated.mean.tolist())
    assert weighted.std.tolist() == pytest.approx(repeated.std.tolist())


@given(batches=updates)
def test_outputs_are_preserved_when_the_statistics_change(batches):
    torch.manual_seed(0)
    head = torch.nn.Linear(3, 2).double()
    states, columns = torch.randn(5, 3).double(), torch.tensor([0, 1, 0, 1, 1])
    statistics = ValueStatistics(2, decay=0.5)

    def outputs():
        raw = head(states)[torch.arange(5), columns]
        return statistics.denormalize(raw, columns).tolist()

    for batch in batches:
        expected, before = outputs(), (statistics.mean, statistics.std)
        add(statistics, batch)
        after = (statistics.mean, statistics.std)
        head.weight.data, head.bias.data = rescaled_head(
            head.weight.data, head.bias.data, before, after
        )
        assert outputs() == pytest.approx(expected, rel=1e-9, abs=1e-7)


def regress(scale, *, first_weight=0.0):
    """Fit y = scale * (2 x + 3) by gradient descent, and return values and losses over time."""
    statistics = ValueStatistics(1)
    head = torch.nn.Linear(1, 1).double()
    torch.nn.init.constant_(head.weight, first_weight)
    torch.nn.init.zeros_(head.bias)
    states = torch.linspace(-1, 1, 8).double()[:, None]
    targets, columns = scale * (2 * states[:, 0] + 3), torch.zeros(8, dtype=torch.long)
    optimizer = torch.optim.SGD(head.parameters(), lr=0.3)
    values, losses = [], []
    for _ in range(60):
        before, known = (statistics.mean, statistics.std), statistics.known
        statistics.update(targets, columns)
        head.weight.data, head.bias.data = rescaled_head(
            head.weight.data, head.bias.data, before, (statistics.mean, statistics.std), known
        )
        raw = head(states)[:, 0]
        loss = (raw - statistics.normalize(targets, columns)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
        values.append(statistics.denormalize(raw.detach(), columns))
    return torch.stack(values), losses


@pytest.mark.parametrize("first_weight", [0.0, 0.7])
def test_rewards_times_a_hundred_are_learnt_alike(first_weight):
    (values, losses), (larger, others) = (
        regress(scale, first_weight=first_weight) for scale in (1.0, 100.0)
    )
    assert losses == pytest.approx(others, rel=1e-6, abs=1e-9)
    assert torch.allclose(100 * values, larger, rtol=1e-6, atol=1e-6)
    assert losses[-1] < 1e-3


def test_a_head_of_zeros_starts_at_the_mean_of_the_first_targets():
    statistics = ValueStatistics(2)
    before, known = (statistics.mean, statistics.std), statistics.known
    add(statistics, [(90, 0), (110, 0)])
    weight, bias = rescaled_head(
        torch.zeros(2, 3), torch.zeros(2), before, (statistics.mean, statistics.std), known
    )
    assert weight.abs().max() == bias.abs().max() == 0.0
    assert statistics.denormalize(bias, torch.tensor([0, 1])).tolist() == [100.0, 0.0]


def test_a_value_clip_bounds_deviations_instead_of_rewards():
    """A value clip of 0.2 an update holds values in the scale of the rewards back for long."""
    statistics = ValueStatistics(1)
    add(statistics, [(90, 0), (110, 0)])
    step = statistics.denormalize(torch.tensor([0.2]), torch.tensor([0])) - 100.0
    assert float(step) == pytest.approx(2.0)


@pytest.mark.parametrize(("option", "value"), [("decay", 1.0), ("min_std", 0.0)])
def test_values_outside_their_range_are_refused_by_name(option, value):
    with pytest.raises(ConfigError, match=f"{option} must be .* got {value}"):
        ValueStatistics(1, **{option: value})
