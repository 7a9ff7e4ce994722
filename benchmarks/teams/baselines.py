"""Scripts that avoid what a task is meant to need, as lower bounds of what a result shows.

A return above `random` is no sign of cooperation where a script earns as much that reads nothing,
or does not listen to the other agent.
"""

import random
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

__all__ = ["BASELINES"]

Actions = dict[str, str]
AROUND = re.compile(r"(up|down|left|right): (wall|free|goal)")
OPPOSITE = {"up": "down", "down": "up", "left": "right", "right": "left"}
NODE = re.compile(r"You are node (\d+)\. Your neighbours: ([\d, ]+)\.")
EXAMPLE = re.compile(r">>> (.*)\n\s*(.*)")
# The pattern that earns most on train tasks of levels 1 and 2, and the left end of each letter.
LETTER, LEFT_ENDS = ("####.", "#...#", "#.#.#", "#...#", "#####"), (0, 7, 14)


def _constant(digits: str) -> Callable[[Any, Sequence[int]], Actions]:
    """Each agent answers its digit, whatever it reads."""

    def answers(env: Any, seeds: Sequence[int]) -> Actions:  # noqa: ANN401, ARG001
        given = zip(env.acting, digits, strict=True)
        return {agent: f"<move>{digit}</move>" for agent, digit in given}

    return answers


def _rank(env: Any, seeds: Sequence[int]) -> Actions:  # noqa: ANN401, ARG001
    """Each node answers its rank among its neighbours by number, and tells them nothing else."""
    actions = {}
    for agent in env.acting:
        shown = env.family.observe(env.task, env.turns, agent)
        own, others = NODE.findall(shown)[0]
        smaller = sum(int(other) < int(own) for other in others.split(", "))
        actions[agent] = f"<move>{1 + smaller}</move>"
    return actions


def _alone(env: Any, seeds: Sequence[int]) -> Actions:  # noqa: ANN401
    """The executor of a puzzle goes to a goal beside it, else on at random, without a planner."""
    (agent,) = env.acting
    if agent == "planner":
        return {agent: "<move>go</move>"}
    seen = env.family.observe(env.task, env.turns, agent)
    around = {way: cell for way, cell in AROUND.findall(seen) if cell != "wall"}
    goals = [way for way, cell in around.items() if cell == "goal"]
    last = seen.partition("Your moves since then: ")[2].partition(".")[0].split(" ")[-1]
    forward = [way for way in around if way != OPPOSITE.get(last)] or list(around)
    draw = random.Random(seeds[0])  # noqa: S311 - reproducible on purpose
    return {agent: f"<move>{draw.choice(goals or forward)}</move>"}


def _equal_shares(env: Any, seeds: Sequence[int]) -> Actions:  # noqa: ANN401, ARG001
    """Two players halve each kind of item, whatever it is worth; seats take turns with odd ones."""
    actions = {}
    for seat, agent in enumerate(env.acting):
        shown = env.family.observe(env.task, env.turns, agent)
        items = re.findall(r"(\d+) (\w+)", shown.partition("Items: ")[2].partition(".")[0])
        shares = ((int(count) + (seat + kind) % 2) // 2 for kind, (count, _) in enumerate(items))
        demand = ", ".join(f"{n} {name}" for n, (_, name) in zip(shares, items, strict=True))
        actions[agent] = f"<move>{demand}</move>"
    return actions


def _copied_example(env: Any, seeds: Sequence[int]) -> Actions:  # noqa: ANN401, ARG001
    """The coder writes the solution, the tester copies the first example of the problem."""
    (agent,) = env.acting
    text = str(env.task.solution)
    if agent == "tester":
        examples = EXAMPLE.findall(env.family.observe(env.task, env.turns, agent))
        text = "\n".join(f"assert {call} == {result}" for call, result in examples[:1])
    return {agent: f"```python\n{text}\n```"}


def _same_letter(env: Any, seeds: Sequence[int]) -> Actions:  # noqa: ANN401, ARG001
    """Builders write one pattern in the place of every letter, whatever the string is."""
    blocks = {"builder_1": ("oak_planks", "stone"), "builder_2": ("white_concrete", "obsidian")}
    lines: dict[str, list[str]] = {agent: [] for agent in env.acting}
    for y, row in enumerate(LETTER):
        for x in (left + place for left in LEFT_ENDS for place in range(5) if row[place] == "#"):
            agent = env.acting[(x + y) % 2]
            block = blocks[agent][len(lines[agent]) % 2]
            lines[agent].append(f"/setblock {x} {y} 0 {block}")
    return {agent: "\n".join(each) for agent, each in lines.items()}


BASELINES: Mapping[str, Callable[[Any, Sequence[int]], Actions]] = {
    "constant 3231": _constant("3231"),
    "constant 1231": _constant("1231"),
    "rank": _rank,
    "alone": _alone,
    "equal shares": _equal_shares,
    "copied example": _copied_example,
    "same letter": _same_letter,
}
"""Scripts that return the answers of the agents that act, from an environment and seeds."""
