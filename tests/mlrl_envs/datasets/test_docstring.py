import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlrl_envs.datasets.docstring import public_examples


def _examples(text, name="f"):
    return public_examples(f'def {name}(a, b=0):\n    """Say.\n{text}\n    """\n', name)


@pytest.mark.parametrize(
    ("text", "assertion"),
    [
        (">>> f(1)\n    2", "assert f(1) == 2"),
        (">>> f([1], 'a')\n    [1, 2]\n\n    more", "assert f([1], 'a') == [1, 2]"),
        (">>> f(1) == 2", "assert f(1) == 2"),
        (">>> f(1)\n\n    text", "assert f(1) == None"),
        (">>> round(f([1, 2]), 2) # f(x)\n    -0.5", "assert round(f([1, 2]), 2) == -0.5"),
        (">>> f('a\\nb')\n    'c'", "assert f('a\\nb') == 'c'"),
        ("f(1) == 2", "assert f(1) == 2"),
        ("f(1) ==> 2", "assert f(1) == 2"),
        ("f(1)==>2", "assert f(1) == 2"),
        ("f(1) => 2", "assert f(1) == 2"),
        ("f(1) -> 2", "assert f(1) == 2"),
        ("f(1) \u279e 2", "assert f(1) == 2"),
        ("f(1) = 2", "assert f(1) == 2"),
        ("* f(1) => [2]", "assert f(1) == [2]"),
        ("for f('x') == 'y.z'", "assert f('x') == 'y.z'"),
        ("f(1) returns 2", "assert f(1) == 2"),
        ("f(1) should return 2.", "assert f(1) == 2"),
        ("f(1) # => 'Yes'", "assert f(1) == 'Yes'"),
        ("f(1) # returns 'Yes'", "assert f(1) == 'Yes'"),
        ("f(1) => true", "assert f(1) == True"),
        ("f(1) # => 'No' (because of this)", "assert f(1) == 'No'"),
        ("f(1) returns [1, 5] # The sequence", "assert f(1) == [1, 5]"),
        ("f(1) == 1 + 9 = 10", "assert f(1) == 10"),
        ("f([\n  [1],\n  [2]\n], 1) == [(0, 0)]", "assert f([[1], [2]], 1) == [(0, 0)]"),
        ("For a = [1] the output should be 3", "assert f([1]) == 3"),
        ("For a = 1, b = 'x', the result should be (2, True)", "assert f(1, 'x') == (2, True)"),
        ("Input: a = [1], b = 2\n    Output: 3", "assert f([1], 2) == 3"),
    ],
)
def test_form_is_understood(text, assertion):
    assert _examples(f"    {text}") == (assertion,)


@pytest.mark.parametrize(
    "text",
    [
        "f(x) == 2",
        "f(1) == g(2)",
        "f(1) is nice",
        "f(1) == __import__('os')",
        ">>> g(1)\n    2",
        ">>> f(open('x'))\n    2",
        "xf(1) == 2",
        "x.f(1) == 2",
        "f(1",
        "f(1) == [1, 2",
        "f(1) == 2 3",
        "f(n) == f(n-1) + f(n-2)",
        "Input: text\n    Output: 3",
    ],
)
def test_what_is_no_literal_example_is_left_out(text):
    assert _examples(f"    {text}") == ()


def test_examples_keep_their_order_without_repetition():
    assert _examples("    f(2) == 1\n    f(1) == 1\n    f(2) == 1") == (
        "assert f(2) == 1",
        "assert f(1) == 1",
    )


def test_only_the_entry_points_docstring_is_read():
    prompt = (
        'def g():\n    """\n    f(1) == 2\n    """\n\ndef f(a):\n    """\n    f(2) == 3\n    """\n'
    )
    assert public_examples(prompt, "f") == ("assert f(2) == 3",)


@given(st.text() | st.text(st.sampled_from(list("f()=>-[]{}'\"\n ,.:1a#"))))
def test_any_docstring_is_survived_and_gives_asserts(text):
    for example in _examples(text):
        (statement,) = ast.parse(example).body
        assert isinstance(statement, ast.Assert)
