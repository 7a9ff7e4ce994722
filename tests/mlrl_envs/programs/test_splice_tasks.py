"""Splicing on every class of the sample split."""

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlrl_envs.datasets.classeval import load_classeval
from mlrl_envs.programs.methods import class_in, functions_in
from mlrl_envs.programs.splice import merge, splice

TASKS = load_classeval("sample")
texts = st.text(st.characters(exclude_categories=()), max_size=200) | st.builds(
    "```python\n{}def {}(self, {}):\n    {}\n```".format,
    st.sampled_from(["", "@staticmethod\n", "@x.setter\n", "class Inventory:\n  ", "async "]),
    st.sampled_from(["add", "mean", "total", "limit", "__init__", "é"]),
    st.sampled_from(["", "x", "*a, **k", "x=1, /", "x: int = 2", "\x00"]),
    st.sampled_from(["pass", "return x", "return self", "yield x", "break", "\ud800", "x = '''"]),
)


@given(st.sampled_from(TASKS), st.lists(texts, min_size=2, max_size=2))
def test_any_text_is_merged_and_the_skeleton_survives(task, answers):
    names = [method.name for method in task.methods]
    owners = {"coder_1": names[::2], "coder_2": names[1::2]}
    merged = merge(task, owners, dict(zip(owners, answers, strict=True)))
    if merged.source is None:
        return
    before = class_in(ast.parse(task.skeleton), task.class_name)
    after = class_in(ast.parse(merged.source), task.class_name)
    assert [ast.dump(node) for node in after.bases] == [ast.dump(node) for node in before.bases]
    old, new = functions_in(before), functions_in(after)
    assert list(old) == list(new)[: len(old)]
    for name, place in old.items():
        if place.decorator_list or name not in names:
            assert [*map(ast.unparse, new[name].decorator_list)] == [
                *map(ast.unparse, place.decorator_list)
            ]
        if name not in names:
            assert ast.dump(new[name]) == ast.dump(place)


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.class_name)
def test_splicing_twice_is_splicing_once(task):
    methods = {method.name: ast.parse(method.reference).body[0] for method in task.methods}
    once = splice(task.skeleton, task.class_name, methods)
    assert splice(once, task.class_name, methods) == once
    assert splice(once, task.class_name, {}) == once


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.class_name)
def test_completed_skeleton_is_the_solution(task):
    methods = {method.name: ast.parse(method.reference).body[0] for method in task.methods}
    spliced = functions_in(
        class_in(ast.parse(splice(task.skeleton, task.class_name, methods)), task.class_name)
    )
    for method in task.methods:
        assert ast.unparse(spliced[method.name]) == method.reference
