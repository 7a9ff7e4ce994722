"""ClassEval: 100 Python classes to complete, with `unittest` tests for each method (MIT).

Rows come from `FudanSELab/ClassEval`. Splits are row ranges, train 0-65 and eval 66-81; `all` has
every row. They leave out the rows of `UNCERTIFIED`, whose reference cannot pass for a reason that
does not depend on the class; these are the split `uncertified`.

Six skeletons and one reference are corrected, see `classeval_corrections`. ClassEval_98 passes live
objects to the class, so that its tests run in the process of the program. Agents write the methods
with an empty body, which include constructors that are correctly `pass`.

Source: X. Du et al., "ClassEval: A Manually-Crafted Benchmark for Evaluating LLMs on Class-level
Code Generation", arXiv:2308.01861. The revision is not pinned; a copy with the SHA-256
09d04e5f52413e9846e871517f67e0a1989c9afc22956340506048d6230a77aa was checked.
"""

import ast
import sys
from collections.abc import Sequence

from mlrl_envs.datasets.class_examples import class_examples, public_case
from mlrl_envs.datasets.classeval_corrections import CONTRADICTED, correct_field
from mlrl_envs.datasets.sources import DataSource, Row, load_split
from mlrl_envs.errors import InvalidDataError
from mlrl_envs.parsing.syntax import parse_module
from mlrl_envs.parsing.text import FunctionNode, bound_names
from mlrl_envs.programs.methods import class_in, functions_in, is_incomplete, work_of
from mlrl_envs.tasks import ClassTask, Method

__all__ = ["SOURCE", "SPLITS", "UNCERTIFIED", "load_classeval", "parse_row"]

SOURCE = DataSource(
    file="ClassEval",
    fields=("task_id", "skeleton", "test", "solution_code", "import_statement", "class_name"),
    hub="FudanSELab/ClassEval",
    revision="main",
    hub_split="test",
)

# Rows whose reference fails some tests, always or on some machines: row number and reason.
UNCERTIFIED = {
    17: "a test wants a day in January 2024 to lie ahead of today",
    28: "needs the package pandas",
    30: "needs the package numpy",
    34: "needs the package python-docx",
    38: "needs the package openpyxl",
    44: "needs the packages gensim and beautifulsoup4",
    45: "needs the package Pillow",
    48: "a test holds the name of its author's host",
    50: "a test wants a file that cannot be written, and root can write any",
    51: "needs the package numpy",
    52: "needs the package nltk and its data",
    57: "needs the package numpy",
    58: "the class is random, and so are its tests",
    59: "needs the package numpy",
    69: "needs the package PyPDF2; the skeleton calls a reader that newer versions lack",
    93: "needs the packages numpy and gensim",
}
_RANGES = {"train": range(66), "eval": range(66, 82), "all": range(100)}
SPLITS: dict[str, Sequence[int]] = {
    **{
        name: tuple(row for row in rows if row not in UNCERTIFIED) for name, rows in _RANGES.items()
    },
    "uncertified": tuple(UNCERTIFIED),
}
# The tests pass live XML elements to the class.
SHARED = ("ClassEval_98",)
# The reference needs several seconds for one test.
PATIENT = ("ClassEval_35",)


def load_classeval(split: str = "train", path: str | None = None) -> tuple[ClassTask, ...]:
    """Return the tasks of a split in `SPLITS`, or of `sample`; see `sources`."""
    return load_split(SOURCE, parse_row, split=split, splits=SPLITS, path=path)


def parse_row(row: Row) -> ClassTask:
    """Convert a row to a task.

    Raises:
        InvalidDataError: If skeleton, solution or tests do not parse, or the class or the reference
            of one of its methods is missing.
    """
    task_id, name = str(row["task_id"]), str(row["class_name"])
    original = correct_field(task_id, "skeleton", row["skeleton"])
    skeleton = _with_imports(original, row["import_statement"])
    places = _methods(task_id, skeleton, name)
    solution = correct_field(task_id, "solution_code", row["solution_code"])
    references = _methods(task_id, solution, name)
    methods = tuple(
        _method(task_id, key, place, references)
        for key, place in places.items()
        if is_incomplete(place)
    )
    examples = class_examples(name, places, _known(row["import_statement"]))
    left_out = CONTRADICTED.get(task_id, ())
    public = [
        (method.name, examples[method.name])
        for method in methods
        if method.name in examples and method.name not in left_out
    ]
    return ClassTask(
        task_id=task_id,
        skeleton=skeleton,
        class_name=name,
        methods=methods,
        public_tests=tuple(key for key, _ in public),
        tests="\n\n\n".join(["import unittest", public_case(public), row["test"]]),
        num_hidden_tests=_count_tests(task_id, row["test"]),
        helpers="\n".join(map(_guarded, row["import_statement"])),
        dunders=_dunders(solution, name),
        shared=task_id in SHARED,
        patient=task_id in PATIENT,
    )


def _with_imports(skeleton: str, imports: Sequence[str]) -> str:
    lines = {line.strip() for line in skeleton.split("\n")}
    missing = [statement for statement in imports if statement.strip() not in lines]
    return "\n".join([*missing, skeleton]).strip("\n") + "\n"


def _methods(task_id: str, source: str, class_name: str) -> dict[str, FunctionNode]:
    node = class_in(_parsed(task_id, source), class_name)
    if node is None:
        raise InvalidDataError(f"{task_id} has no class {class_name}")
    return functions_in(node)


def _parsed(task_id: str, source: str) -> ast.Module:
    try:
        return parse_module(source)
    except SyntaxError as error:
        raise InvalidDataError(f"{task_id} does not parse: {error}") from error


def _method(
    task_id: str, key: str, place: FunctionNode, references: dict[str, FunctionNode]
) -> Method:
    if key not in references:
        raise InvalidDataError(f"{task_id} has no reference of {key}")
    reference = ast.unparse(references[key])
    num_parameters = sum(isinstance(node, ast.arg) for node in ast.walk(place.args))
    return Method(key, len(reference), num_parameters, work_of(references[key]), reference)


def _known(imports: Sequence[str]) -> set[str]:
    return {name for node in parse_module("\n".join(imports)).body for name in bound_names(node)}


def _count_tests(task_id: str, tests: str) -> int:
    cases = [node for node in _parsed(task_id, tests).body if isinstance(node, ast.ClassDef)]
    return sum(name.startswith("test") for case in cases for name in functions_in(case))


def _guarded(statement: str) -> str:
    # Without the package only the tests that need it fail; the judge must still load.
    (node,) = parse_module(statement).body
    names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
    roots = names or [getattr(node, "module", None) or ""]
    if all(root.split(".")[0] in sys.stdlib_module_names for root in roots):
        return statement
    return f"try:\n    {statement}\nexcept ImportError:\n    pass"


def _dunders(solution: str, class_name: str) -> tuple[str, ...]:
    from mlrl_envs.sandbox import infer_dunders

    return infer_dunders(solution, (class_name,))
