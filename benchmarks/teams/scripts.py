"""Scripted answers: by scripts of an environment, from its correct answers, or with its tools."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from benchmarks.teams.baselines import BASELINES
from benchmarks.teams.tester_scripts import TESTER_SCRIPTS
from benchmarks.teams.tool_scripts import TOOL_SCRIPTS

__all__ = ["FROM_REFERENCE", "scripted_actions"]

Answers = Mapping[str, str]
# A function: its name, its parameters, its first step and the name that it assigns, the rest.
STEP = re.compile(r"(def \w+)(\(.*\) -> .*:)\n    ((\w+) = .*)\n([\s\S]*)")


def scripted_actions(env: Any, script: str, seeds: Sequence[int]) -> dict[str, str]:  # noqa: ANN401
    """Return the answers of all agents that act.

    Args:
        env: The environment.
        script: A name of `BASELINES`, `FROM_REFERENCE`, `TESTER_SCRIPTS` or `TOOL_SCRIPTS`, or a
            script of the environment.
        seeds: A seed for each agent that acts.
    """
    if script in BASELINES:
        return BASELINES[script](env, seeds)
    if script in FROM_REFERENCE:
        return FROM_REFERENCE[script](env.reference_actions())
    if script in TESTER_SCRIPTS:
        return TESTER_SCRIPTS[script](env, seeds[0])
    if script in TOOL_SCRIPTS:
        shown = {agent: env.family.observe(env.task, env.turns, agent) for agent in env.acting}
        return TOOL_SCRIPTS[script](shown)
    return {
        agent: env.scripted_action(agent, script, seed)
        for agent, seed in zip(env.acting, seeds, strict=True)
    }


def _half(reference: Answers) -> dict[str, str]:
    """Return the first half of the lines of each answer."""
    lines = {agent: text.splitlines() for agent, text in reference.items()}
    return {agent: "\n".join(each[: (len(each) + 1) // 2]) for agent, each in lines.items()}


def _short(reference: Answers) -> dict[str, str]:
    """Return the last line of each answer: a result without working."""
    return {agent: "".join(text.splitlines()[-1:]) for agent, text in reference.items()}


def _together(reference: Answers) -> dict[str, str]:
    """Return programs in which the helper does the first step of the function."""
    main = reference["main"]
    found = STEP.search(main)
    if found is None:
        return dict(reference)
    define, signature, step, name, rest = found.groups()
    parameter = re.findall(r"\((\w+)", signature)[0]
    helper = f"```python\ndef aux({parameter}):\n    {step}\n    return {name}\n```"
    body = f"{define}{signature}\n    {name} = aux({parameter})\n{rest}"
    return {"aux": helper, "main": main[: found.start()] + body}


FROM_REFERENCE: Mapping[str, Callable[[Answers], dict[str, str]]] = {
    "reference": dict,
    "half": _half,
    "short": _short,
    "together": _together,
}
"""Scripts that change the correct answers of an environment, by name."""
