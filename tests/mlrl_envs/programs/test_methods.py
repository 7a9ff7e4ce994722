import ast
import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlrl_envs.programs.methods import (
    find_methods,
    functions_in,
    is_incomplete,
    method_key,
    work_of,
)


def _function(source):
    return ast.parse(textwrap.dedent(source)).body[0]


def _fenced(code):
    return f"Here it is:\n```python\n{textwrap.dedent(code)}\n```\n"


WORKS = {
    "def f(self): pass": "nothing",
    "def f(self): ...": "nothing",
    "def f(self):\n    'docstring only'": "nothing",
    "def f(self):\n    'text'\n    pass\n    'more'": "nothing",
    "def f(self): return": "nothing",
    "def f(self): return None": "nothing",
    "def f(self): return ...": "nothing",
    "def f(self): raise NotImplementedError": "nothing",
    "def f(self): raise NotImplementedError('later')": "nothing",
    "def f(self, x): raise ValueError(x)": "nothing",
    "def f(self): return True": "constant",
    "def f(self): return []": "constant",
    "def f(self): return list()": "constant",
    "def f(self):\n    x = 1\n    return x": "constant",
    "def f(self):\n    try:\n        return 0\n    except Exception:\n        pass": "constant",
    "def f(self):\n    for i in range(3):\n        print(i)": "constant",
    "def f(self): return self.x": "real",
    "def f(self, x): x.append(1)": "real",
    "def f(self):\n    import os\n    return os.sep": "real",
    "def f(self): return pattern": "real",
    "def f(self, *, key=1): return key": "real",
    "def f(self, *items): return items": "real",
}


@pytest.mark.parametrize("source", WORKS)
def test_work_of_a_body_is_found(source):
    assert work_of(_function(source)) == WORKS[source]


@pytest.mark.parametrize(
    ("source", "incomplete"),
    [
        ("def f(self): pass", True),
        ("def f(self):\n    'text'", True),
        ("async def f(self): raise NotImplementedError", True),
        ("def f(self): return None", False),
        ("def f(self): raise ValueError", False),
        ("def f(self): self.x = 1", False),
    ],
)
def test_incomplete_methods_are_those_without_a_body(source, incomplete):
    assert is_incomplete(_function(source)) == incomplete


def test_accessors_of_a_property_have_keys_of_their_own():
    tree = ast.parse(
        "class A:\n    @property\n    def x(self): pass\n"
        "    @x.setter\n    def x(self, v): pass\n    @staticmethod\n    def f(): pass\n"
    )
    assert list(functions_in(tree.body[0])) == ["x", "x.setter", "f"]
    assert method_key(_function("@x.deleter\ndef x(self): pass")) == "x.deleter"


ANSWERS = {
    "bare": "def f(self):\n    return self.x\n\ndef g(self):\n    return 1",
    "in the class": (
        "class A:\n    def f(self):\n        return self.x\n\n    def g(self):\n        return 1"
    ),
    "indented": "    def f(self):\n        return self.x\n\n    def g(self):\n        return 1",
    "first line not indented": (
        "def f(self):\n        return self.x\n\n    def g(self):\n        return 1"
    ),
    "with another header": (
        "class A(B):\n    def f(self): return self.x\n    def g(self): return 1"
    ),
    "a line of prose inside": (
        "def f(self):\n    return self.x\n\nAnd now the other:\n\ndef g(self):\n    return 1"
    ),
    "long signatures": (
        "def f(\n    self,\n):\n    return self.x\n\nnot code at all\n"
        "def g(\n    self\n) -> int:\n    return 1"
    ),
}


FORMS = {
    "fenced": _fenced,
    "raw": str,
    "closing fence": "{}\n```\n".format,
    "in a list": lambda code: f"1. Mine:\n\n{textwrap.indent(_fenced(code), '   ')}",
    "byte order mark": "\ufeff{}".format,
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ANSWERS)
def test_methods_are_found_however_they_are_laid_out(name, form):
    found = find_methods(FORMS[form](ANSWERS[name]), "A")
    assert sorted(found.methods) == ["f", "g"]
    assert ast.unparse(found.methods["f"]).endswith("return self.x")
    assert found.errors == []


def test_a_method_with_a_long_run_of_combining_marks_does_not_parse():
    marked = "def g(self):\n    a" + "\u0301\u0327" * 12_000 + " = 1\n    return a"
    found = find_methods(_fenced(f"def f(self):\n    return 1\n\n{marked}"), "A")
    assert list(found.methods) == ["f"]
    assert found.errors == ["g, more than 30 combining marks in a row"]


def test_imports_before_a_closing_fence_count():
    found = find_methods("import os\n\ndef f(self):\n    return os.sep\n```", "A")
    assert [ast.unparse(node) for node in found.beside] == ["import os"]


def test_several_blocks_count_together_and_the_last_definition_wins():
    text = _fenced("def f(self): return 1") + _fenced(
        "def g(self): return 2\ndef f(self): return 3"
    )
    found = find_methods(text, "A")
    assert {name: ast.unparse(node)[-1] for name, node in found.methods.items()} == {
        "f": "3",
        "g": "2",
    }


def test_cut_answer_keeps_its_whole_methods():
    found = find_methods(
        "```python\ndef f(self):\n    return 1\n\ndef g(self):\n    return (2,", "A"
    )
    assert list(found.methods) == ["f"]
    assert found.errors == ["g, line 2, column 12: '(' was never closed"]


def test_decorators_belong_to_their_method_in_broken_answers():
    found = find_methods(_fenced("@staticmethod\ndef f(x):\n    return x\n\ndef g(:"), "A")
    assert [ast.unparse(d) for d in found.methods["f"].decorator_list] == ["staticmethod"]


def test_methods_of_another_class_do_not_count():
    for tail in ("", "\nthis is no code"):
        found = find_methods(_fenced(f"class B:\n    def f(self):\n        return 1\n{tail}"), "A")
        assert found.methods == {}


def test_functions_inside_a_method_do_not_count():
    found = find_methods(_fenced("def f(self):\n    def g(self): return 1\n    return g"), "A")
    assert list(found.methods) == ["f"]


def test_what_else_stands_there_is_named():
    code = (
        "import re\nX = 1\nclass B: pass\n"
        "class A(metaclass=M):\n    y = 2\n    def f(self): return 1"
    )
    found = find_methods(_fenced(code), "A")
    assert list(found.methods) == ["f"]
    assert found.others == ["decorators and keywords of class A", "y = 2"]
    assert [ast.unparse(node) for node in found.beside][:2] == ["import re", "X = 1"]
    assert len(found.beside) == 3


def test_prose_is_no_error():
    found = find_methods("I would rather not (yet).", "A")
    assert (found.methods, found.others, found.errors) == ({}, [], [])


def test_huge_answers_are_refused_at_once():
    for text in ("x" * 1_000_000, "```\nx\n```\n" * 100_000, "def f(self):\n    pass\n" * 50_000):
        found = find_methods(text, "A")
        assert found.methods == {}
        assert found.errors == ["more than 50000 characters of code"] or len(text) > 500_000


@given(
    st.text(st.characters(exclude_categories=()), max_size=300)
    | st.lists(
        st.sampled_from(
            ["def f(self):", "    def g(x, y):", "class A:", "class B:", "  return (", ")", "@a",
             "        pass", "\t", "```", "```python", "", "'''", "x = 1", "async def h():", "\x00"]
        ),
        max_size=20,
    ).map("\n".join)
)  # fmt: skip
def test_any_text_is_read(text):
    found = find_methods(text, "A")
    assert all(isinstance(name, str) for name in found.methods)
    assert len(found.errors) <= 20
