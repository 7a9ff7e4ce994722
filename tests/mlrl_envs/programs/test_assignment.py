import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlrl_envs.errors import UnknownNameError
from mlrl_envs.programs.assignment import assign, balanced, by_parameter_count
from mlrl_envs.tasks import Method


def _method(name, size=10, num_parameters=2):
    return Method(name, size, num_parameters, "real", "")


METHODS = [_method("a", 50, 1), _method("b", 10, 3), _method("c", 30, 2), _method("d", 20, 1)]
sizes = st.lists(st.integers(1, 500), min_size=1, max_size=12)


def _named(lengths):
    return [_method(f"m{n}", size) for n, size in enumerate(lengths)]


def test_balanced_spreads_characters():
    assert balanced(METHODS, 2) == [["a", "b"], ["c", "d"]]
    assert balanced(METHODS, 3) == [["a"], ["c"], ["b", "d"]]


def test_published_assignment_splits_by_self_only():
    assert by_parameter_count(METHODS, 2) == [["a", "d"], ["b", "c"]]
    assert by_parameter_count(METHODS[1:3], 2) == [[], ["b", "c"]]


def test_published_assignment_counts_on_with_more_coders():
    assert by_parameter_count(METHODS, 1) == [["a", "b", "c", "d"]]
    assert by_parameter_count(METHODS, 4) == [["a", "d"], ["c"], ["b"], []]


def test_parameters_of_static_methods_may_be_none():
    assert by_parameter_count([_method("f", 1, 0)], 2) == [["f"], []]


def test_coders_are_numbered_and_keep_the_order_of_the_class():
    assert assign("balanced", METHODS, 2) == {"coder_1": ("a", "b"), "coder_2": ("c", "d")}


def test_unknown_assignment_names_the_nearest():
    with pytest.raises(UnknownNameError, match="did you mean 'balanced'"):
        assign("balance", METHODS, 2)


@given(sizes, st.integers(1, 5), st.sampled_from(["balanced", "by_parameter_count"]))
def test_every_method_has_one_owner(lengths, num_coders, kind):
    methods = _named(lengths)
    shares = assign(kind, methods, num_coders)
    assert len(shares) == num_coders
    assert sorted(name for share in shares.values() for name in share) == sorted(
        method.name for method in methods
    )


@given(sizes, st.integers(1, 5))
def test_balanced_leaves_nobody_idle_and_loads_even(lengths, num_coders):
    methods = _named(lengths)
    shares = balanced(methods, num_coders)
    assert all(shares) == (len(methods) >= num_coders)
    size = {method.name: method.size for method in methods}
    loads = [sum(size[name] for name in share) for share in shares]
    assert max(loads) - min(loads) <= max(lengths)
