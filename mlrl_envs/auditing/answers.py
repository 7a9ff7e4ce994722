"""Attacks on tasks with a short answer: guesses, lists of candidates, useless tool calls.

Each function takes a scene and a random generator, and returns a joint action, or None if it does
not apply.
"""

import json
import random
import re
from collections.abc import Mapping

from mlrl_envs.auditing.programs import Attack
from mlrl_envs.auditing.scene import JointAction, Scene

__all__ = ["CALLS", "CALLS_KNOWING", "NUMBER", "NUMBER_KNOWING"]

_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_TOOL = re.compile(r"^- (\w+)\(([\w, ]*)\)|\"name\": \"(\w+)\"", re.MULTILINE)
_NAME = re.compile(r"(?:[A-Z][\w-]+ ?){1,3}")
_ANSWER = re.compile(r"<answer>.*?</answer>", re.DOTALL)
_CANDIDATES = 30
_CALLS = 4


def number_guess(scene: Scene, rng: random.Random) -> JointAction:
    """Answer with a number of the problem, or with one calculation on two or three of them."""
    return dict.fromkeys(scene.agents, f"Answer: {_guess(scene, rng)}")


def guess_with_steps(scene: Scene, rng: random.Random) -> JointAction:
    """Answer with a guess after true but irrelevant equations."""
    numbers = _numbers(scene)
    steps = []
    for _ in range(rng.randint(1, 5)):
        a, b = rng.choice(numbers), rng.choice(numbers)
        steps.append(f"{a:g} + {b:g} = {a + b:g}")
    return dict.fromkeys(scene.agents, "\n".join([*steps, f"Answer: {_guess(scene, rng)}"]))


def many_numbers(scene: Scene, rng: random.Random) -> JointAction:
    """List many candidates, so that one of them may be taken for the answer."""
    style = rng.choice(("x = {}", "Answer: {}", "The answer may be {}.", "\\boxed{{{}}}"))
    found = [style.format(_guess(scene, rng)) for _ in range(_CANDIDATES)]
    return dict.fromkeys(scene.agents, rng.choice(("\n", ", ")).join(found))


def answer_alone(scene: Scene, rng: random.Random) -> JointAction | None:  # noqa: ARG001  nothing is drawn
    """Give the last line of the honest answer, learned by heart, and no work."""
    if scene.answer is None:
        return None
    return {a: (text.strip().splitlines() or [""])[-1] for a, text in scene.answer.items()}


def right_among_wrong(scene: Scene, rng: random.Random) -> JointAction | None:
    """Hide the right answer among wrong ones."""
    if scene.answer is None:
        return None
    wrong = [f"x = {_guess(scene, rng)}" for _ in range(5)]
    return {
        agent: "\n".join([*wrong[:3], (text.strip().splitlines() or [""])[-1], *wrong[3:]])
        for agent, text in scene.answer.items()
    }


def useless_calls(scene: Scene, rng: random.Random) -> JointAction:
    """Call tools with words of the question."""
    return {agent: _calls(scene, agent, rng) for agent in scene.agents}


def guessed_answer(scene: Scene, rng: random.Random) -> JointAction:
    """Answer with a name or a number of the observation, without any call."""
    return {agent: f"<answer>{_candidate(scene, agent, rng)}</answer>" for agent in scene.agents}


def calls_and_guess(scene: Scene, rng: random.Random) -> JointAction:
    """Call tools with words of the question and answer with a guess."""
    return {
        agent: f"{_calls(scene, agent, rng)}\n<answer>{_candidate(scene, agent, rng)}</answer>"
        for agent in scene.agents
    }


def tagged_answer(scene: Scene, rng: random.Random) -> JointAction | None:  # noqa: ARG001  nothing is drawn
    """Give the answer of the reference, learned by heart, without any call."""
    if scene.answer is None:
        return None
    return {agent: "\n".join(_ANSWER.findall(text)) for agent, text in scene.answer.items()}


def tagged_answer_after_calls(scene: Scene, rng: random.Random) -> JointAction | None:
    """Give the answer of the reference, learned by heart, after useless calls."""
    if scene.answer is None:
        return None
    return {
        agent: _calls(scene, agent, rng) + "\n" + "\n".join(_ANSWER.findall(text))
        for agent, text in scene.answer.items()
    }


def _numbers(scene: Scene) -> list[float]:
    text = "\n".join(scene.sources.values())
    return [float(n) for n in _NUMBER.findall(text) if len(n) <= 12] or [1.0, 2.0]


def _guess(scene: Scene, rng: random.Random) -> str:
    numbers = _numbers(scene)
    value = rng.choice(numbers)
    for _ in range(rng.randint(0, 2)):
        other = rng.choice(numbers)
        results = [value + other, value - other, value * other]
        value = rng.choice([*results, value / other] if other else results)
    return f"{value:.6g}"


def _candidate(scene: Scene, agent: str, rng: random.Random) -> str:
    source = scene.sources[agent]
    found: list[str] = [*_NAME.findall(source), *_NUMBER.findall(source), "yes"]
    return rng.choice(found).strip()


def _calls(scene: Scene, agent: str, rng: random.Random) -> str:
    tools = {
        match[1] or match[3]: [name.strip() for name in (match[2] or "query").split(",") if name]
        for match in _TOOL.finditer(scene.observations[agent])
    }
    words = re.findall(r"\w+", scene.sources[agent]) or ["it"]
    calls = []
    for name in rng.choices(sorted(tools) or ["search"], k=_CALLS):
        given = {key: " ".join(rng.choices(words, k=3)) for key in tools.get(name, ["query"])}
        call = json.dumps({"name": name, "parameters": given})
        calls.append(f"<tool_call>{call}</tool_call>")
    return "\n".join(calls)


NUMBER: Mapping[str, Attack] = {
    "number_guess": number_guess,
    "guess_with_steps": guess_with_steps,
    "many_numbers": many_numbers,
}
NUMBER_KNOWING: Mapping[str, Attack] = {
    "answer_alone": answer_alone,
    "right_among_wrong": right_among_wrong,
}
CALLS: Mapping[str, Attack] = {
    "useless_calls": useless_calls,
    "guessed_answer": guessed_answer,
    "calls_and_guess": calls_and_guess,
}
CALLS_KNOWING: Mapping[str, Attack] = {
    "tagged_answer": tagged_answer,
    "tagged_answer_after_calls": tagged_answer_after_calls,
}
