import json
import os
from pathlib import Path

import pytest

from mlrl_envs.datasets.class_examples import class_examples, public_case
from mlrl_envs.datasets.classeval import SPLITS, UNCERTIFIED, load_classeval, parse_row
from mlrl_envs.datasets.classeval_corrections import CONTRADICTED, correct_field
from mlrl_envs.datasets.sources import SAMPLES
from mlrl_envs.errors import InvalidDataError, UnknownNameError
from mlrl_envs.parsing.syntax import parse_module
from mlrl_envs.programs.assignment import assign
from mlrl_envs.programs.methods import class_in, functions_in, is_incomplete

FILE = Path(os.environ.get("MLRL_DATA_DIR", "")) / "ClassEval.jsonl"
needs_data = pytest.mark.skipif(not FILE.is_file(), reason="needs MLRL_DATA_DIR/ClassEval.jsonl")
SAMPLE_ROWS = [json.loads(line) for line in (SAMPLES / "ClassEval.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def tasks():
    """All hundred, in the order of the rows."""
    both = (*load_classeval("all"), *load_classeval("uncertified"))
    return sorted(both, key=lambda task: int(task.task_id.split("_")[1]))


@needs_data
def test_every_row_is_loaded(tasks):
    assert [task.task_id for task in tasks] == [f"ClassEval_{n}" for n in range(100)]


@needs_data
def test_splits_are_row_ranges_less_what_is_listed():
    sizes = {split: len(load_classeval(split)) for split in SPLITS}
    assert sizes == {"train": 52, "eval": 15, "all": 84, "uncertified": 16}
    assert not set(SPLITS["train"]) & set(SPLITS["eval"])
    for split in ("train", "eval", "all"):
        assert not set(SPLITS[split]) & set(UNCERTIFIED)


def test_rows_that_cannot_be_certified_are_listed_with_a_reason():
    assert sorted(UNCERTIFIED) == [17, 28, 30, 34, 38, 44, 45, 48, 50, 51, 52, 57, 58, 59, 69, 93]
    assert all(UNCERTIFIED.values())


@needs_data
def test_rows_that_need_a_package_say_which(tasks):
    for number, reason in UNCERTIFIED.items():
        guarded = tasks[number].helpers.count("except ImportError")
        assert (guarded > 0) == reason.startswith("needs"), number
    assert all("except" not in tasks[number].helpers for number in SPLITS["all"])


@needs_data
def test_every_skeleton_parses_once_mended(tasks):
    rows = [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]
    broken = []
    for row, task in zip(rows, tasks, strict=True):
        try:
            node = class_in(parse_module(row["skeleton"]), row["class_name"])
        except SyntaxError:
            node = None
        broken += [] if node else [row["task_id"]]
        assert class_in(parse_module(task.skeleton), task.class_name)
    assert broken == [f"ClassEval_{n}" for n in (5, 22, 43, 46)]


@needs_data
def test_methods_that_tests_need_are_in_the_skeleton(tasks):
    assert "set_cookies" in [method.name for method in tasks[25].methods]
    assert "matches_requirements" in [method.name for method in tasks[49].methods]
    assert "@staticmethod\n    def matches_requirements" in tasks[49].skeleton
    assert tasks[92].skeleton.startswith("import sqlite3\n")


@needs_data
def test_methods_to_write_are_those_without_a_body(tasks):
    assert sum(len(task.methods) for task in tasks) == 420
    for task in tasks:
        places = functions_in(class_in(parse_module(task.skeleton), task.class_name))
        assert [method.name for method in task.methods] == [
            name for name, place in places.items() if is_incomplete(place)
        ]


@needs_data
def test_few_references_do_no_work(tasks):
    idle = [(task.task_id, m.name) for task in tasks for m in task.methods if m.work == "nothing"]
    assert idle == [(f"ClassEval_{n}", "__init__") for n in (0, 24, 26, 38, 46, 57, 66, 88)]
    constant = [m.name for task in tasks for m in task.methods if m.work == "constant"]
    assert len(constant) == 4


@needs_data
def test_published_assignment_leaves_somebody_idle_balanced_nobody(tasks):
    def idle(kind, num_coders):
        shares = [assign(kind, task.methods, num_coders) for task in tasks]
        return sum(not all(share.values()) for share in shares)

    assert idle("by_parameter_count", 2) == 43
    for number in range(1, 6):
        assert idle("balanced", number) == sum(len(task.methods) < number for task in tasks)


@needs_data
def test_most_classes_show_examples(tasks):
    certified = [tasks[number] for number in SPLITS["all"]]
    assert sum(len(task.public_tests) for task in certified) == 232
    assert sum(not task.public_tests for task in certified) == 14
    assert sum(task.num_hidden_tests for task in certified) == 1884


@needs_data
def test_examples_that_are_left_out_exist(tasks):
    for task in tasks:
        places = functions_in(class_in(parse_module(task.skeleton), task.class_name))
        assert set(CONTRADICTED.get(task.task_id, ())) <= set(places)


def test_unknown_split_names_the_nearest():
    with pytest.raises(UnknownNameError, match="did you mean 'eval'"):
        load_classeval("evall")


def test_samples_have_the_schema_of_the_data():
    fields = {
        *("task_id", "skeleton", "test", "solution_code", "import_statement", "class_name"),
        *("class_description", "test_classes", "class_constructor", "fields", "methods_info"),
    }
    for row in SAMPLE_ROWS:
        assert set(row) == fields
        cases = [node.name for node in parse_module(row["test"]).body if hasattr(node, "name")]
        assert cases == row["test_classes"]
        assert {info["test_class"] for info in row["methods_info"]} < set(cases)


def test_samples_offer_what_the_data_lacks():
    names = {task.class_name: [m.name for m in task.methods] for task in load_classeval("sample")}
    assert len(names) == 6
    assert names["Playlist"] == ["limit", "limit.setter", "add", "play", "__len__"]
    rectangle = next(t for t in load_classeval("sample") if t.class_name == "Rectangle")
    assert "class Rectangle(Shape):" in rectangle.skeleton


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"skeleton": "class A(:"}, "sample/classeval/0 does not parse"),
        ({"solution_code": "def"}, "sample/classeval/0 does not parse"),
        ({"class_name": "Nobody"}, "has no class Nobody"),
        ({"solution_code": "class TemperatureLog: pass"}, "has no reference of add"),
    ],
)
def test_row_that_is_broken_is_named(change, message):
    with pytest.raises(InvalidDataError, match=message):
        parse_row({**SAMPLE_ROWS[0], **change})


def test_mend_without_its_text_is_an_error():
    with pytest.raises(InvalidDataError, match="ClassEval_22 lacks"):
        correct_field("ClassEval_22", "skeleton", "class A: pass")
    assert correct_field("ClassEval_1", "skeleton", "as it is") == "as it is"


def test_missing_packages_do_not_stop_the_judge():
    task = parse_row({**SAMPLE_ROWS[0], "import_statement": ["import re", "import no_such_one"]})
    namespace = {}
    exec(task.helpers, namespace)
    assert "re" in namespace
    assert task.skeleton.startswith("import re\nimport no_such_one\n")


SESSIONS = {
    ">>> A().f(1)\n2": "self.assertEqual(A().f(1), 2)",
    ">>> a = A()\n>>> a.f(1)\n2": "a = A()\nself.assertEqual(a.f(1), 2)",
    ">>> a.f(1)\n2": "a = A()\nself.assertEqual(a.f(1), 2)",
    ">>> a.f(b)\n2": "",
    ">>> a = A()\n>>> a.f(1)\nsome words": "",
    ">>> a = A()": "",
    ">>> A().f([math.inf])\n[1]": "self.assertEqual(A().f([math.inf]), [1])",
    ">>>A().f(1)\n2": "",
    ">>> A().f(\n2": "",
    "no example": "",
}


@pytest.mark.parametrize("docstring", SESSIONS)
def test_sessions_of_docstrings_become_tests(docstring):
    source = f"class A:\n    def f(self, x):\n        {docstring!r}\n"
    methods = functions_in(class_in(parse_module(source), "A"))
    body = class_examples("A", methods, {"math"}).get("f", "")
    assert body == SESSIONS[docstring]


def test_instance_is_made_only_where_nothing_is_needed():
    doc = repr(">>> a.f()\n2")
    source = f"class A:\n    def __init__(self, {{}}): pass\n    def f(self): {doc}\n"
    found = {
        parameters: class_examples(
            "A", functions_in(class_in(parse_module(source.format(parameters)), "A")), ()
        )
        for parameters in ("", "x=1", "x", "*, x", "*, x=1")
    }
    assert {name for name, bodies in found.items() if bodies} == {"", "x=1", "*, x=1"}


def test_public_case_keeps_the_order():
    case = public_case([("b", "x = 1"), ("a.setter", "y = 2")])
    tests = parse_module(case).body[0].body
    assert [test.name for test in tests] == ["test_00_b", "test_01_a_setter"]
    assert public_case([]) == ""
