"""Ways to the same result: each earns nearly what the reference earns, with a real sandbox."""

import json

import pytest

import mlrl_envs


def call(name, **parameters):
    return f"<tool_call>{json.dumps({'name': name, 'parameters': parameters})}</tool_call>"


def code_of(task):
    """Return a program that prints the answer, whatever the tool of the reference is."""
    (text,) = json.loads(task.evidence[-1].parameters).values()
    return text if task.evidence[-1].tool == "python" else f"print({text})"


def python(code):
    return call("python", code=code)


def saved(code):
    """Return a program that writes to a file what another prints."""
    head, _, last = code.rpartition("print(")
    return f"{head}with open('total.txt', 'w') as out: print({last[:-1]}, file=out)"


WAYS = {
    "python instead of the calculator": (lambda task: ("", python(code_of(task))), None),
    "the researcher computes": (lambda task: (python(code_of(task)), ""), None),
    "rows before the total": (
        lambda task: ("", python(f"print(*range(1, 80), sep='\\n')\n{code_of(task)}")),
        None,
    ),
    "the total before rows": (
        lambda task: ("", python(f"{code_of(task)}\nprint(*range(1, 80))")),
        None,
    ),
    "with words and a unit": (
        lambda task: (
            "",
            python(code_of(task).replace("print(", "print('In all:', ") + "\nprint('kg')"),
        ),
        None,
    ),
    "through a file": (
        lambda task: ("", python(saved(code_of(task)))),
        lambda _: ("", call("read_file", path="total.txt")),
    ),
    "cell by cell": (
        lambda task: ("", python(code_of(task).replace("print(", "total = ("))),
        lambda _: ("", python("print(total)")),
    ),
    "with thousands commas": (
        lambda task: ("", python(code_of(task).replace("print(", "total = ("))),
        lambda _: ("", python("print(f'{total:,}')")),
    ),
}


@pytest.mark.parametrize("kind", ["cargo", "roads", "ships", "lights", "orders", "tanks", "wages"])
@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_the_number_counts(kind, way):
    env = mlrl_envs.make("mlrl/tools-v1", split="sample", kinds=[kind], num_tasks=1)
    env.reset(seed=0)
    searches = "".join(
        call(item.tool, **json.loads(item.parameters))
        for item in env.task.evidence
        if item.tool == "search"
    )
    total = env.step({"researcher": searches, "solver": ""})[1]["solver"]
    for step in filter(None, WAYS[way]):
        researcher, solver = step(env.task)
        total += env.step({"researcher": researcher, "solver": solver})[1]["solver"]
    said = f"The result is {env.task.answer}."
    total += env.step({"researcher": "", "solver": f"<answer>{said}</answer>"})[1]["solver"]
    assert total > 0.95


@pytest.mark.parametrize("kind", ["cargo", "roads", "tanks"])
def test_steps_with_the_calculator_count(kind):
    env = mlrl_envs.make("mlrl/tools-v1", split="sample", kinds=[kind], num_tasks=1)
    env.reset(seed=0)
    *searches, item = env.task.evidence
    first, *others = item.needs
    value, calls = float(first), []
    for number in others:
        calls.append(call("calculator", expression=f"{value} * {number}"))
        value *= float(number)
    found = "".join(call(one.tool, **json.loads(one.parameters)) for one in searches)
    actions = {"researcher": found, "solver": "".join(calls) + f"<answer>{value}</answer>"}
    assert env.step(actions)[1]["solver"] > 0.93
