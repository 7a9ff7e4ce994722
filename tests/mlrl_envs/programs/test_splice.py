import ast
import textwrap

import pytest

from mlrl_envs.programs.methods import class_in, functions_in
from mlrl_envs.programs.splice import merge, read_answer, splice
from mlrl_envs.tasks import ClassTask, Method

SKELETON = '''import math


class Base:
    def hello(self):
        return "hello"


class Thing(Base):
    """A thing."""

    unit = "m"

    def __init__(self, size=1):
        self._size = size

    @property
    def size(self):
        """Its size."""

    @size.setter
    def size(self, value):
        """Change it."""

    @staticmethod
    def double(x):
        """Twice x."""

    async def wait(self, times, limit=3):
        """Wait."""

    def grow(self, by=1):
        raise NotImplementedError
'''
NAMES = ("size", "size.setter", "double", "wait", "grow")


def _task(skeleton=SKELETON, names=NAMES):
    methods = tuple(Method(name, 10, 2, "real", "") for name in names)
    return ClassTask("t", skeleton, "Thing", methods, (), "", 1)


def _fenced(code):
    return f"```python\n{textwrap.dedent(code)}\n```"


def _spliced(answer, own=NAMES):
    merged = merge(_task(), {"coder_1": own}, {"coder_1": _fenced(answer)})
    return merged, functions_in(class_in(ast.parse(merged.source), "Thing"))


def test_own_methods_take_the_place_of_the_skeletons():
    merged, methods = _spliced("def grow(self, by=1):\n    self._size += by")
    assert ast.unparse(methods["grow"]) == "def grow(self, by=1):\n    self._size += by"
    assert list(methods) == ["__init__", *NAMES]
    assert merged.answers["coder_1"].dropped == ()


def test_rest_of_the_skeleton_stays():
    merged, methods = _spliced("def grow(self, by=1): self._size += by")
    thing = class_in(ast.parse(merged.source), "Thing")
    assert ast.unparse(thing.bases[0]) == "Base"
    assert ast.unparse(methods["__init__"]).endswith("self._size = size")
    for kept in ("import math", "class Base", "unit = 'm'", "A thing.", "return 'hello'"):
        assert kept in merged.source


@pytest.mark.parametrize(
    ("answer", "name", "first_lines"),
    [
        ("def double(x): return 2 * x", "double", ["@staticmethod", "def double(x):"]),
        ("@print\ndef double(x): return 2 * x", "double", ["@staticmethod", "def double(x):"]),
        ("@property\ndef size(self): return self._size", "size", ["@property", "def size(self):"]),
        (
            "@size.setter\ndef size(self, value): self._size = value",
            "size.setter",
            ["@size.setter", "def size(self, value):"],
        ),
        (
            "async def wait(self, times, limit=3): return times",
            "wait",
            ["async def wait(self, times, limit=3):"],
        ),
        (
            "def wait(self, times, limit=3): return times",
            "wait",
            ["async def wait(self, times, limit=3):"],
        ),
        (
            "@staticmethod\ndef grow(by=1): return by",
            "grow",
            ["@staticmethod", "def grow(by=1):"],
        ),
        ("@lambda f: 1\ndef grow(self, by=1): return by", "grow", ["def grow(self, by=1):"]),
        ("@size.setter\n@print\ndef grow(self, by): return by", "grow.setter", None),
    ],
)
def test_decorators_and_async_are_the_skeletons(answer, name, first_lines):
    answer_of = read_answer(_task(), NAMES, _fenced(answer))
    if first_lines is None:
        assert answer_of.dropped == (f"method {name}",)
        return
    _, methods = _spliced(answer)
    assert ast.unparse(methods[name]).split("\n")[: len(first_lines)] == first_lines


def test_defaults_and_annotations_of_the_same_parameters_are_the_skeletons():
    _, methods = _spliced("def grow(self, by: Nowhere = exit()) -> np.array:\n    return by")
    assert ast.unparse(methods["grow"].args) == "self, by=1"


def test_other_parameter_names_are_the_answers():
    _, methods = _spliced("def grow(self, step=2): return step")
    assert ast.unparse(methods["grow"].args) == "self, step=2"


def test_annotations_are_never_evaluated():
    merged, _ = _spliced("def grow(self, step: Nowhere) -> NoSuchName: return step")
    exec(compile(merged.source, "merged", "exec"), {"__name__": "merged"})


def test_imports_functions_and_classes_inside_a_method_stay():
    code = (
        "def grow(self, by=1):\n    import re\n\n    class Step:\n        pass\n\n"
        "    def inner(x):\n        return x + by\n\n    return inner(self._size)"
    )
    _, methods = _spliced(code)
    assert [type(node).__name__ for node in methods["grow"].body] == [
        "Import",
        "ClassDef",
        "FunctionDef",
        "Return",
    ]


def test_statements_and_names_of_the_skeleton_are_left_out_and_named():
    code = """
    import os
    os.abort()
    class Base: pass
    class Thing(Base, metaclass=type):
        unit = "km"
        def __init__(self): self.hacked = True
        def __eq__(self, other): return True
        def grow(self, by=1): return by
        def _helper(self): return 1
    """
    merged, methods = _spliced(code, own=("grow",))
    assert "abort" not in merged.source
    assert "hacked" not in merged.source
    assert set(methods) == {"__init__", "_helper", *NAMES}
    assert merged.answers["coder_1"].dropped == (
        "method __init__",
        "method __eq__",
        "class Base",
        "os.abort()",
        "decorators and keywords of class Thing",
        "unit = 'km'",
    )


def test_helpers_beside_the_methods_are_used():
    code = """
    from __future__ import annotations
    LIMIT = twice(3)
    import re
    def twice(x): return 2 * x
    class Thing:
        def __init__(self, size=1):
            self._size = size
        def _step(self): return LIMIT
        def grow(self, by=1): return twice(by) + self._step()
    """
    merged, methods = _spliced(code, own=("grow",))
    assert merged.answers["coder_1"].dropped == ()
    assert "_step" in methods
    space = {"__name__": "merged"}
    exec(compile(merged.source, "merged", "exec"), space)
    assert space["Thing"]().grow(2) == 10


def test_an_example_of_use_beside_the_methods_is_left_out_and_named():
    code = """
    def grow(self, by=1): return by
    def make(): return Thing()
    LIMIT = 3
    class Maker:
        def make(self): return Thing()
    thing = Thing()
    print(thing.grow(2))
    grown = thing.grow(LIMIT)
    class Small(Thing): pass
    thing = 4
    more = thing + LIMIT
    call = lambda: Thing()
    """
    merged, _ = _spliced(code, own=("grow",))
    exec(merged.source, module := {})
    assert module["more"] == 7
    assert {"Maker", "call"} <= module.keys()
    dropped = merged.answers["coder_1"].dropped
    assert {"thing = Thing()", "grown = thing.grow(LIMIT)", "class Small"} <= set(dropped)


def test_the_first_of_two_helpers_with_one_name_stays():
    actions = {
        "coder_1": _fenced("def _h(self): return 1\ndef grow(self, by=1): return by + self._h()"),
        "coder_2": _fenced("def _h(self): return 2\n@staticmethod\ndef double(x): return 2 * x"),
    }
    merged = merge(_task(), {"coder_1": ("grow",), "coder_2": ("double",)}, actions)
    methods = functions_in(class_in(ast.parse(merged.source), "Thing"))
    assert ast.unparse(methods["_h"].body) == "return 1"


def test_signatures_of_others_without_a_body_are_no_overlap():
    text = _fenced("def grow(self, by=1): return by\n@staticmethod\ndef double(x):\n    pass")
    answer = read_answer(_task(), ("grow",), text)
    assert (answer.strays, answer.signatures) == ((), ("double",))


def test_methods_of_others_are_not_used():
    actions = {
        "coder_1": _fenced("def grow(self, by=1): return by\ndef double(x): return 'stolen' + x"),
        "coder_2": _fenced("def double(x): return 2 * x"),
    }
    merged = merge(_task(), {"coder_1": ("grow",), "coder_2": ("double",)}, actions)
    assert merged.answers["coder_1"].strays == ("double",)
    assert merged.answers["coder_2"].strays == ()
    assert "stolen" not in merged.source
    assert "2 * x" in merged.source


def test_stubs_are_left_out_unless_asked_for():
    actions = {"coder_1": _fenced("def grow(self, by=1): return 77\ndef double(x): return 2 * x")}
    merged = merge(_task(), {"coder_1": NAMES}, actions)
    assert list(merged.answers["coder_1"].stubs) == ["grow"]
    assert "77" not in merged.source
    assert "77" in merge(_task(), {"coder_1": NAMES}, actions, with_stubs=True).source


def test_setter_without_its_decorator_is_taken_for_what_its_author_owns():
    text = _fenced("def size(self, value): self._size = value")
    assert list(read_answer(_task(), ("size.setter",), text).methods) == ["size.setter"]
    assert read_answer(_task(), ("grow",), text).strays == ("size",)


def test_nothing_delivered_makes_no_program():
    merged = merge(_task(), {"coder_1": NAMES}, {"coder_1": "Not today."})
    assert merged.source is None
    assert merged.error == ""


def test_too_deep_a_body_is_an_error_of_its_author():
    deep = "def grow(self, by=1):\n    return " + "-" * 5_000 + "by"
    merged = merge(_task(), {"coder_1": NAMES}, {"coder_1": _fenced(deep)})
    assert merged.source is None
    assert merged.answers["coder_1"].errors


def test_docstring_of_a_module_stays_in_front():
    source = splice('"""Text."""\nimport re\n\nclass A:\n    pass', "A", {})
    assert source.startswith('"""Text."""\nfrom __future__ import annotations\nimport re\n')
