"""The secrets of each type of task, and the joint actions that are played to find leaks.

For a type that is neither in `SECRETS` nor in `PLAYS`, the lines of the reference answer are the
secrets, and an empty, a wrong and the reference answer are played. List a type whose tasks hide
more than that.
"""

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from mlrl_envs.tasks import (
    ClassTask,
    CodeTask,
    DebateTask,
    MathTask,
    StoryTask,
    ToolTask,
    WritingTask,
)
from mlrl_envs.types import Task

SHORTEST_SECRET = 8


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


def _class_secrets(task: ClassTask) -> Secrets:
    tests, shown = ast.parse(task.tests), task.skeleton
    calls = {ast.unparse(node) for node in ast.walk(tests) if isinstance(node, ast.Call)}
    lines = {line.strip() for method in task.methods for line in method.reference.split("\n")}
    # A call without arguments, such as `T.reset()`, says nothing that the skeleton does not.
    return Secrets(
        frozenset(call for call in calls if len(call) >= 20 and call not in shown),
        frozenset(line for line in lines if len(line) >= 20 and line not in shown),
    )


def _class_plays(task: ClassTask, reference: Mapping[str, str] | None) -> dict[str, dict[str, str]]:
    agents = list(reference or {"coder_1": "", "coder_2": ""})
    plays = {"nothing": dict.fromkeys(agents, "")}
    names = [method.name for method in task.methods if "." not in method.name]
    for play, body in (("wrong", "return None"), *list(BODIES.items())[1:]):
        methods = "\n".join(f"def {name}(self, *a, **k):\n    {body}" for name in names)
        methods = methods.replace("SEEN", "self.__dict__.setdefault('seen', [])")
        plays[play] = dict.fromkeys(agents, f"```python\n{methods}\n```")
    return plays | ({"right": dict(reference)} if reference else {})


def _math_secrets(task: MathTask) -> Secrets:
    shown = task.question
    lines = {line for line in task.solution.split("\n") if len(line) >= SHORTEST_SECRET}
    long = {task.answer} if len(task.answer) >= 3 else set()  # "7" may be the number of anything
    return Secrets(frozenset(secret for secret in lines | long if secret not in shown))


def _math_plays(task: MathTask, reference: Mapping[str, str] | None) -> dict[str, dict[str, str]]:
    agents = list(reference or {"solver": "", "verifier": ""})
    near = "About the size of it.\nAnswer: 1"
    return {
        "nothing": dict.fromkeys(agents, ""),
        "wrong": dict.fromkeys(agents, near),
        "right": dict(reference or {}),
    }


def _debate_secrets(task: DebateTask) -> Secrets:
    return Secrets(frozenset((*task.pro_points, *task.con_points)))


def _debate_plays(task: DebateTask, _: object) -> dict[str, dict[str, str]]:
    claim = f"{task.proposition} This holds because everybody says so, for example my uncle."
    return {"nothing": {"pro": "", "con": ""}, "claims": {"pro": claim, "con": claim}}


def _tool_secrets(task: ToolTask) -> Secrets:
    shown = "\n".join([task.question, *(brief for _, brief in task.briefs)])
    lines = {line for _, text in task.twin_files for line in text.split("\n")}
    lines -= {line for _, text in task.files for line in text.split("\n")}
    long = {task.answer} if len(task.answer) >= 4 else set()
    secrets = {line for line in lines if len(line) >= SHORTEST_SECRET} | long
    return Secrets(frozenset(secret for secret in secrets if secret not in shown))


def _tool_plays(task: ToolTask, _: object) -> dict[str, dict[str, str]]:
    agents = [agent for agent, _ in task.briefs]
    call = '<tool_call>{"name": "calculator", "parameters": {"expression": "1 + 1"}}</tool_call>'
    return {
        "nothing": dict.fromkeys(agents, ""),
        "calculates": dict.fromkeys(agents, call),
        "wrong": dict.fromkeys(agents, "<answer>nobody knows</answer>"),
    }


def reference_secrets(env) -> Secrets:
    """Take the lines of the reference answer that no prompt shows."""
    shown = env.state()
    texts = (env.reference_actions() or {}).values()
    lines = {line.strip() for text in texts for line in text.split("\n")}
    return Secrets(
        frozenset(), frozenset(x for x in lines if len(x) >= SHORTEST_SECRET and x not in shown)
    )


def any_plays(env) -> dict[str, dict[str, str]]:
    agents, reference = env.possible_agents, env.reference_actions()
    plays = {"nothing": dict.fromkeys(agents, ""), "wrong": dict.fromkeys(agents, "Who knows?")}
    return plays | ({"right": reference} if reference else {})


def no_secrets(_: Task) -> Secrets:
    """Return no secrets: freely written texts have no right answer."""
    return Secrets(frozenset())


def _no_plays(_: Task, __: object) -> dict[str, dict[str, str]]:
    return {}


SECRETS: dict[type[Task], Callable[..., Secrets]] = {
    CodeTask: _code_secrets,
    ClassTask: _class_secrets,
    MathTask: _math_secrets,
    DebateTask: _debate_secrets,
    ToolTask: _tool_secrets,
    StoryTask: no_secrets,
    WritingTask: no_secrets,
}
PLAYS: dict[type[Task], Callable[..., dict[str, dict[str, str]]]] = {
    CodeTask: _code_plays,
    ClassTask: _class_plays,
    MathTask: _math_plays,
    DebateTask: _debate_plays,
    ToolTask: _tool_plays,
    StoryTask: _no_plays,
    WritingTask: _no_plays,
}
# Plays in which an agent writes the solution itself.
WITH_SOLUTION = ("half right", "right")
