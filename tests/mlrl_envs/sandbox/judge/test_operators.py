"""Tests of the detection of operators that tests use."""

import pytest

from mlrl_envs.sandbox.judge.operators import used_operators


@pytest.mark.parametrize(
    ("use", "found"),
    [
        ("x[0]", ("__getitem__",)),
        ("x[0] = 1", ("__setitem__",)),
        ("del x[0]", ("__delitem__",)),
        ("len(x)", ("__len__",)),
        ("x.__len__()", ("__len__",)),
        ("[y for y in x]", ("__iter__",)),
        ("self.assertNotIn(1, x)", ("__contains__",)),
        ("1 in x", ("__contains__",)),
        ("len(x.items())", ()),
        ("x.items()[0]", ()),
        ("x == x", ()),
        ("len(other)", ()),
    ],
)
def test_operators_used_on_instances_of_the_tests_are_found(use, found):
    assert used_operators(f"x = Box(3)\n{use}", ("Box",)) == found


def test_results_of_functions_get_no_operators():
    assert used_operators("x = box(3)\nlen(x)", ("box",)) == ()
    assert used_operators("x = Box(3).get()\nlen(x)", ("Box",)) == ()
