"""No agent ever reads what its task keeps secret, whatever is played and whatever feedback it gets.

A family joins by naming what its tasks keep secret, `SECRETS`, and what is played on them,
`PLAYS`, both by the type of its tasks. Everything that an environment hands out in an episode is
searched: observations, infos, `state()`, `render()`.
"""

import ast
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import pytest

import mlrl_envs
from mlrl_envs.errors import DataNotFoundError
from mlrl_envs.registration import BUILT_IN
from mlrl_envs.sandbox import Limits
from mlrl_envs.tasks import CodeTask
from mlrl_envs.types import Task

FEEDBACK = ("plain", "passed", "level_passed", "diagnostics")
SHORTEST_SECRET = 8
MAX_TASKS = 40


@dataclass(frozen=True)
class Secrets:
    """What a task keeps from agents.

    Attributes:
        tests: Texts that nobody may read in any episode: hidden tests, answers.
        solution: Texts that nobody may read unless somebody wrote them in this episode.
    """

    tests: frozenset[str]
    solution: frozenset[str] = frozenset()


def _code_secrets(task: CodeTask) -> Secrets:
    shown = " ".join([task.prompt, *task.public_tests, ast.unparse(ast.parse(task.prompt))])
    tests = {text for text in _calls(task) if text not in shown}
    lines = {line.strip() for line in (task.solution or "").split("\n")}
    return Secrets(
        frozenset(text for text in tests if len(text) >= SHORTEST_SECRET),
        frozenset(line for line in lines if len(line) >= 20 and line not in shown),
    )


def _calls(task: CodeTask) -> Iterator[str]:
    """Yield each hidden call with arguments, and each assertion, in the spellings it may have."""
    for node in ast.walk(ast.parse(task.hidden_tests)):
        if isinstance(node, ast.Assert):
            yield from _spellings(node.test, task)
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") in (
            "candidate",
            task.entry_point,
        ):
            yield from _spellings(node, task)
            if len(node.args) == 1 and len(ast.unparse(node.args[0])) >= 2 * SHORTEST_SECRET:
                yield ast.unparse(node.args[0])


def _spellings(node: ast.expr, task: CodeTask) -> Iterator[str]:
    plain = ast.unparse(node)
    yield from (plain, plain.replace("candidate(", f"{task.entry_point}("))
    raw = ast.get_source_segment(task.hidden_tests, node) or plain
    yield from (raw, raw.replace("candidate(", f"{task.entry_point}("))


# What each joint action of the coding family does with the calls it gets.
BODIES = {
    "wrong": "return None",
    "raises what it was given": "raise ValueError(repr((a, k)))",
    "returns what it was given before": "SEEN.append((a, k))\n    return SEEN",
    "prints what it was given": "print(a, k)\n    return repr((a, k))",
    "exits with what it was given": "raise SystemExit(repr((a, k)))",
}


def _code_plays(task: CodeTask, reference: Mapping[str, str] | None) -> dict[str, dict[str, str]]:
    helpers = {
        agent: f"```python\ndef {agent}(*a, **k):\n    return a, k\n```" for agent in ("aux",)
    }
    plays = {"nothing": {"aux": "", "main": ""}}
    for name, body in BODIES.items():
        main = f"SEEN = []\ndef {task.entry_point}(*a, **k):\n    {body}"
        plays[name] = {**helpers, "main": f"```python\n{main}\n```"}
    if reference is not None:
        own = reference["main"].removesuffix("\n```")
        half = (
            f"{own}\n_whole = {task.entry_point}\ndef {task.entry_point}(*a, **k):\n"
            "    return _whole(*a, **k) if len(repr(a)) % 2 else None\n```"
        )
        plays |= {"half right": {**helpers, "main": half}, "right": dict(reference)}
    return plays


SECRETS: dict[type[Task], Callable[..., Secrets]] = {CodeTask: _code_secrets}
PLAYS: dict[type[Task], Callable[..., dict[str, dict[str, str]]]] = {CodeTask: _code_plays}
# Plays in which an agent writes the solution itself.
WITH_SOLUTION = ("half right", "right")


def _make(env_id, split, **options):
    limits = Limits(wall_seconds=3.0, test_seconds=1.0)
    return mlrl_envs.make(env_id, split=split, render_mode="ansi", limits=limits, **options)


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for name, item in value.items():
            yield from (str(name), *_texts(item))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)


def _episode(env, task_index: int, actions: Mapping[str, str]) -> str:
    """Play the same joint action until the end and return everything that could be read."""
    read: list[object] = list(env.reset(options={"task_index": task_index}))
    while env.agents:
        observations, _, _, _, infos = env.step(actions)
        read += [observations, infos, env.state(), env.render()]
    # An escaped quote is still the same text to a reader.
    return "\n".join(_texts(read)).replace("\\'", "'")


def _leaks(env, task_index: int) -> list[tuple[str, str]]:
    env.reset(options={"task_index": task_index})
    secrets = SECRETS[type(env.task)](env.task)
    found = []
    for name, actions in PLAYS[type(env.task)](env.task, env.reference_actions()).items():
        text = _episode(env, task_index, actions)
        kept = secrets.tests if name in WITH_SOLUTION else secrets.tests | secrets.solution
        written = "\n".join(actions.values())
        found += [(name, secret) for secret in kept if secret in text and secret not in written]
    return found


def _check(env_id, split, **options):
    env = _make(env_id, split, **options)
    step = max(1, env.num_tasks // MAX_TASKS)
    env.reset(options={"task_index": 0})
    if type(env.task) not in SECRETS:
        pytest.skip(f"{type(env.task).__name__} names no secrets")
    leaks = {index: _leaks(env, index) for index in range(0, env.num_tasks, step)}
    assert {index: found for index, found in leaks.items() if found} == {}


@pytest.mark.parametrize("mode", FEEDBACK)
@pytest.mark.parametrize("env_id", BUILT_IN)
def test_no_secret_of_the_sample_is_read(env_id, mode):
    _check(env_id, "sample", feedback=mode, max_turns=2)


@pytest.mark.parametrize("env_id", BUILT_IN)
def test_no_secret_of_the_sample_is_read_when_all_is_broadcast(env_id):
    _check(env_id, "sample", max_turns=3, communication="broadcast")


@pytest.mark.slow
@pytest.mark.parametrize("env_id", BUILT_IN)
@pytest.mark.skipif(not os.environ.get("MLRL_DATA_DIR"), reason="MLRL_DATA_DIR is not set")
def test_no_secret_of_the_full_data_is_read(env_id):
    try:
        _check(env_id, "all", max_turns=2, communication="broadcast")
    except DataNotFoundError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("env_id", [env_id for env_id in BUILT_IN if "eval" in env_id])
def test_the_search_finds_what_is_there(env_id):
    env = _make(env_id, "sample")
    env.reset(options={"task_index": 0})
    if type(env.task) not in SECRETS:
        pytest.skip("names no secrets")
    secrets = SECRETS[type(env.task)](env.task)
    assert secrets.tests
    assert secrets.solution
