"""MBPP: 974 functions, each given by one sentence, 427 revised manually (CC BY 4.0, Google).

Rows of the full set come from `google-research-datasets/mbpp`, `full`, those of the revised one
from its `sanitized`. Splits are row ranges as in the literature on cooperating coders (train 15-64,
eval 0-14, `all`) and the data set's own by task id: `prompt` 1-10, `test` 11-510, `validation`
511-600, `finetune` 601-974 (there called train). `train` is part of `test`.

A row has no signature: the prompt is the sentence and the first test as an example; the other tests
and the challenge tests are hidden. If tests create instances of a class of the solution (367, 601,
927), that class is part of the problem. Test setup runs after the program is loaded. If tests
repeat each other (37, 337, 508, 713, 799, 862), the example is the first that differs from the
others. Line ends are converted to those of Unix.

Source: J. Austin et al., "Program Synthesis with Large Language Models", arXiv:2108.07732.
"""

import ast
import builtins
from collections.abc import Sequence
from typing import Any, Literal

from mlrl_envs.datasets.problems import definitions, source_of
from mlrl_envs.datasets.sources import DataSource, Row, load_split
from mlrl_envs.errors import InvalidDataError
from mlrl_envs.parsing.text import FunctionNode, parse_code
from mlrl_envs.tasks import CodeTask

__all__ = ["SLOW", "SOURCES", "SPLITS", "Variant", "load_mbpp", "parse_row"]

Variant = Literal["full", "sanitized"]
REVISION = "4bb6404fdc6cacfda99d4ac4205087b89d32030c"
HUB_SPLITS = "prompt+test+validation+train"  # by task id, as in the files
SOURCES = {
    "full": DataSource(
        file="mbpp",
        fields=("task_id", "text", "code", "test_list", "test_setup_code", "challenge_test_list"),
        hub="google-research-datasets/mbpp",
        hub_config="full",
        revision=REVISION,
        hub_split=HUB_SPLITS,
    ),
    "sanitized": DataSource(
        file="sanitized-mbpp",
        fields=("task_id", "prompt", "code", "test_list", "test_imports"),
        hub="google-research-datasets/mbpp",
        hub_config="sanitized",
        revision=REVISION,
        hub_split=HUB_SPLITS,
    ),
}
_BY_ROW = {"train": range(15, 65), "eval": range(15)}
SPLITS = {
    "full": _BY_ROW
    | {
        "all": range(974),
        "prompt": range(10),
        "test": range(10, 510),
        "validation": range(510, 600),
        "finetune": range(600, 974),
    },
    "sanitized": _BY_ROW
    | {
        "all": range(427),
        "prompt": range(7),
        "test": range(7, 264),
        "validation": range(264, 307),
        "finetune": range(307, 427),
    },
}
# Time limits of one assertion in seconds for solutions that are slower than the default allows:
# 123 sums the divisors of every number up to 9999 and needs 2 to 6 seconds.
SLOW = {"MBPP/123": 20.0}


def load_mbpp(
    split: str = "train", path: str | None = None, variant: Variant = "full"
) -> tuple[CodeTask, ...]:
    """Return the tasks of a split of `SPLITS[variant]`, or of `sample`; see `sources`.

    Args:
        split: Name of the split.
        path: A JSONL file with the rows; None searches the default locations.
        variant: `"full"` or `"sanitized"`.
    """
    return load_split(SOURCES[variant], parse_row, split=split, splits=SPLITS[variant], path=path)


def parse_row(row: Row) -> CodeTask:
    """Convert a row of either variant to a task.

    Raises:
        InvalidDataError: If code or tests do not parse, or the tests call no function of the code.
    """
    number = row["task_id"]
    task_id = f"MBPP/{number}" if isinstance(number, int) else str(number)
    tests = [_one_line(test) for test in row["test_list"]]
    hidden = [*tests, *map(_one_line, row.get("challenge_test_list", ()))]
    setup = _unix(row.get("test_setup_code") or "\n".join(row.get("test_imports", ())))
    statements = _parse(task_id, _unix(row["code"]))
    used = _names_read(_parse(task_id, "\n".join([setup, *hidden])))
    shared = [n for n in statements if isinstance(n, ast.ClassDef) and n.name in used]
    example = next((test for test in tests if hidden.count(test) == 1), tests[0])
    return CodeTask(
        task_id=task_id,
        prompt=_prompt(row.get("text") or row["prompt"], shared, example),
        entry_point=_entry_point(task_id, statements, used),
        prelude=source_of(shared),
        helper_names=definitions(shared),
        public_tests=(example,),
        hidden_tests="\n".join(hidden),
        num_hidden_tests=len(hidden),
        solution=source_of([node for node in statements if node not in shared]),
        setup=setup,
        shared_names=definitions(shared),
        test_seconds=SLOW.get(task_id),
    )


def _entry_point(task_id: str, statements: Sequence[ast.stmt], used: Sequence[str]) -> str:
    defined = [node.name for node in statements if isinstance(node, FunctionNode)]
    called = [name for name in used if name in defined]
    # A builtin is the entry point only if the tests call nothing else (126 asks for `sum`).
    own = [name for name in called if not hasattr(builtins, name)] or called
    if not own:
        raise InvalidDataError(f"{task_id}: the tests call no function of the code")
    return own[0]


def _parse(task_id: str, source: str) -> list[ast.stmt]:
    parsed = parse_code(source)
    if parsed.tree is None:
        raise InvalidDataError(f"{task_id} does not parse: {parsed.error}")
    return parsed.tree.body


def _names_read(statements: list[ast.stmt]) -> list[str]:
    nodes = [node for statement in statements for node in ast.walk(statement)]
    names = [node for node in nodes if isinstance(node, ast.Name)]
    return list(dict.fromkeys(node.id for node in names if isinstance(node.ctx, ast.Load)))


def _prompt(text: str, shared: Sequence[ast.stmt], example: str) -> str:
    given = f"{source_of(shared)}\n\n" if shared else ""
    return f"{given}# {' '.join(text.split())}\n# For example:\n{example}\n"


def _one_line(test: Any) -> str:  # noqa: ANN401  a value of a row
    return _unix(str(test)).strip()


def _unix(text: str) -> str:
    return text.replace("\r\n", "\n")
