import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mlrl_learners.functional.ratio_histogram import add_ratios, ratio_percentiles

LOG_RATIOS = st.lists(st.floats(-4.0, 4.0), min_size=1, max_size=50)


@given(LOG_RATIOS)
def test_percentiles_are_those_of_all_ratios_to_within_a_bin(log_ratios):
    stats = {}
    add_ratios(stats, torch.tensor(log_ratios, dtype=torch.float64))
    for name, found in ratio_percentiles(stats).items():
        percent = int(name.removeprefix("ratio_p"))
        exact = np.percentile(log_ratios, percent, method="inverted_cdf")
        assert abs(math.log(found) - exact) <= math.log(2) / 32 + 1e-9


@given(LOG_RATIOS, LOG_RATIOS)
def test_counts_of_two_batches_are_those_of_both(first, second):
    apart, together = {}, {}
    for part in (first, second):
        add_ratios(apart, torch.tensor(part))
    add_ratios(together, torch.tensor(first + second))
    assert apart == together


def test_equal_distributions_have_ratios_of_one():
    stats = {}
    add_ratios(stats, torch.zeros(7))
    assert ratio_percentiles(stats) == {"ratio_p5": 1.0, "ratio_p50": 1.0, "ratio_p95": 1.0}


def test_extreme_ratios_are_limited_and_no_ratio_gives_no_percentile():
    stats = {"tokens": 3.0}
    assert ratio_percentiles(stats) == {}
    add_ratios(stats, torch.tensor([-100.0, 100.0]))
    found = ratio_percentiles(stats)
    assert (found["ratio_p5"], found["ratio_p95"]) == (pytest.approx(1 / 64), pytest.approx(64))
