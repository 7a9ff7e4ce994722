"""The corpora of honest answers: every file parses, fits its environment and is correct.

Nothing here looks at a reward. Programs run in plain Python, one process a file. A row of
`classeval.jsonl` with `"beside": true` has an import, a helper or a further method beside the
methods that were asked for, as many programmers write it.
"""

import ast
import functools
import json
import os
import re
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest

import mlrl_envs

HERE = Path(__file__).parent
DATA = Path(os.environ.get("MLRL_DATA_DIR", ""))
FILES = {
    "mlrl/humaneval-v1": "HumanEval.jsonl",
    "mlrl/mbpp-v1": "mbpp.jsonl",
    "mlrl/coophumaneval-v1": "CoopHumanEval.jsonl",
    "mlrl/classeval-v1": "ClassEval.jsonl",
}
CODE = ("mlrl/humaneval-v1", "mlrl/mbpp-v1", "mlrl/coophumaneval-v1", "mlrl/functions-v0")
LEAST = {  # rows, tasks, environments
    "coding": (100, 44, CODE),
    "classeval": (40, 25, ("mlrl/classeval-v1",)),
    "math": (45, 30, ("mlrl/math-v2",)),
    "tools": (40, 30, ("mlrl/tools-v1",)),
}
KEYS = {"env_id", "options", "split", "task_id", "style", "turns"}
FENCE = re.compile(r"^```[A-Za-z]*[ \t]*\n(.*?)^```", re.DOTALL | re.MULTILINE)
CALL = re.compile(r"<tool_call>(.*?)</tool_call>", re.DOTALL)

# Run in a process of their own: reads programs from stdin, writes the errors of those that fail.
RUN_CODE = """
import json, sys, traceback
failed = {}
for name, source in json.load(sys.stdin):
    try:
        exec(compile(source, name, "exec"), {"__name__": "program"})
    except Exception:
        failed[name] = traceback.format_exc()
print(json.dumps(failed))
"""
RUN_CLASSES = """
import contextlib, io, json, sys, unittest
failed = {}
for name, source in json.load(sys.stdin):
    space, output = {"__name__": "program"}, io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(compile(source, name, "exec"), space)
        load = unittest.defaultTestLoader.loadTestsFromTestCase
        kinds = [thing for thing in space.values() if isinstance(thing, type)]
        cases = [kind for kind in kinds if issubclass(kind, unittest.TestCase)]
        suite = unittest.TestSuite(map(load, cases))
        result = unittest.TextTestRunner(stream=output).run(suite)
    if not (result.testsRun and result.wasSuccessful()):
        failed[name] = output.getvalue()[-2000:]
print(json.dumps(failed))
"""


def rows_of(name):
    return [json.loads(line) for line in (HERE / f"{name}.jsonl").read_text().splitlines()]


def has_data(row):
    """Whether the rows that a split draws from are here; samples and made tasks need none."""
    file = FILES.get(row["env_id"])
    return row["split"] == "sample" or file is None or (DATA / file).is_file()


@functools.cache
def env_for(env_id, split, options, tasks):
    data = {"data_path": str(HERE / tasks)} if tasks else {}
    return mlrl_envs.make(env_id, split=split, **json.loads(options), **data)


def reset(row):
    """The environment of a row at its task, and the first observations."""
    env = env_for(row["env_id"], row["split"], json.dumps(row["options"]), row.get("tasks"))
    return env, env.reset(options={"task_id": row["task_id"]})[0]


def usable(name):
    return [row for row in rows_of(name) if has_data(row)]


def failures(script, programs, folder):
    run = subprocess.run(
        [sys.executable, "-c", script],
        input=json.dumps(programs),
        capture_output=True,
        text=True,
        timeout=200,
        cwd=folder,
        check=True,
    )
    return json.loads(run.stdout.splitlines()[-1])


@pytest.mark.parametrize("name", LEAST)
def test_the_files_hold_what_they_promise(name):
    rows = rows_of(name)
    least_rows, least_tasks, env_ids = LEAST[name]
    assert len(rows) >= least_rows
    assert len({(row["env_id"], row["task_id"]) for row in rows}) >= least_tasks
    assert {row["env_id"] for row in rows} == set(env_ids)
    # Data sets that are not in the repository are not needed for a third of the lines.
    assert sum(row["split"] == "sample" or "tasks" in row for row in rows) * 3 >= len(rows)
    labels = [(row["env_id"], row["task_id"], row["style"]) for row in rows]
    assert len(set(labels)) == len(labels)
    for row in rows:
        assert set(row) - {"beside", "tasks"} == KEYS
        assert row["turns"]
        assert all(text.strip() for turn in row["turns"] for text in turn.values())


@pytest.mark.parametrize("name", LEAST)
def test_tasks_and_agents_exist(name):
    for row in usable(name):
        env, _ = reset(row)
        assert env.task.task_id == row["task_id"]
        assert len(row["turns"]) <= env.max_turns
        for turn in row["turns"]:
            assert set(turn) == set(env.possible_agents), row["task_id"]


def label(row):
    return f"{row['task_id']}: {row['style']}"


def code_program(row):
    """What both agents wrote last, between the imports of the task and its tests."""
    env, _ = reset(row)
    task, (turn,) = env.task, row["turns"]
    written = []
    for agent, text in turn.items():
        name = task.entry_point if agent == "main" else agent
        named = re.compile(rf"^(def {name}\b|{name} = )", re.MULTILINE)
        written.append([block for block in FENCE.findall(text) if named.search(block)][-1])
    return "\n".join([task.prelude, *written, task.setup, task.hidden_tests])


def test_programs_are_correct(tmp_path):
    programs = [(label(row), code_program(row)) for row in usable("coding")]
    assert not failures(RUN_CODE, programs, tmp_path)


def test_main_calls_every_helper():
    for row in rows_of("coding"):
        (turn,) = row["turns"]
        for helper in set(turn) - {"main"}:
            assert re.search(rf"\b{helper}\(", turn["main"]), label(row)


def method_name(function):
    setter = any(
        isinstance(d, ast.Attribute) and d.attr == "setter" for d in function.decorator_list
    )
    return function.name + ".setter" * setter


def class_program(row):
    """The skeleton with the methods of all coders, and whether anything stands beside those."""
    env, observations = reset(row)
    task, (turn,) = env.task, row["turns"]
    skeleton = ast.parse(task.skeleton)
    (body,) = (
        node.body
        for node in skeleton.body
        if isinstance(node, ast.ClassDef) and node.name == task.class_name
    )
    methods = {method_name(node): node for node in body if isinstance(node, ast.FunctionDef)}
    known, beside = set(methods), []
    for agent, text in turn.items():
        asked = observations[agent].split("Your methods: ")[1].split(". Write")[0]
        own = set(re.findall(r"`([^`]+)`", asked))
        written, besides = written_by(FENCE.findall(text)[-1])
        assert own <= set(written), label(row)
        methods |= {n: node for n, node in written.items() if n in own or n not in known}
        beside += [*besides, *(n for n in written if n not in known)]
    rest = [node for node in body if not isinstance(node, ast.FunctionDef)]
    body[:] = [*rest, *methods.values()]
    skeleton.body[:0] = [node for node in beside if isinstance(node, ast.AST)]
    source = ast.unparse(ast.fix_missing_locations(skeleton))
    return "\n".join([task.helpers, source, task.tests]), bool(beside)


def written_by(block):
    """The methods of a code block, in a class or not, and what stands beside them."""
    methods, beside = {}, []
    for node in ast.parse(block).body:
        if isinstance(node, ast.ClassDef):
            inner = [child for child in node.body if isinstance(child, ast.FunctionDef)]
            methods |= {method_name(child): child for child in inner}
        elif isinstance(node, ast.FunctionDef) and takes_part(node):
            methods[method_name(node)] = node
        else:
            beside.append(node)
    return methods, beside


def takes_part(function):
    """Whether a function outside a class is a method."""
    first = [argument.arg for argument in function.args.args[:1]]
    return bool(function.decorator_list) or first in (["self"], ["cls"])


def test_classes_are_correct(tmp_path):
    programs = []
    for row in usable("classeval"):
        source, beside = class_program(row)
        assert beside == row.get("beside", False), label(row)
        programs.append((label(row), source))
    assert not failures(RUN_CLASSES, programs, tmp_path)


def test_answers_in_mathematics_are_right():
    for row in rows_of("math"):
        env, _ = reset(row)
        (turn,) = row["turns"]
        for text in turn.values():
            last = text.splitlines()[-1].strip("*")
            answer = last.removeprefix("Answer: ")
            assert answer != last, label(row)
            assert Fraction(answer.replace(",", "")) == Fraction(env.task.answer), label(row)


def test_episodes_with_tools_end_with_the_answer():
    for row in rows_of("tools"):
        env, _ = reset(row)
        *turns, last = row["turns"]
        assert len(turns) >= 2
        assert not any("<answer>" in text for turn in turns for text in turn.values())
        (answer,) = re.findall(r"<answer>(.*?)</answer>", last["solver"])
        assert env.task.answer.replace(",", "") in answer.replace(",", ""), label(row)
        for turn in row["turns"]:
            for text in turn.values():
                calls = [json.loads(call) for call in CALL.findall(text)]
                assert len(calls) <= 4
                assert all(set(call) == {"name", "parameters"} for call in calls)
