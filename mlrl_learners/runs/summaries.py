"""Summaries of stored episodes, for indexes and lists.

A line of a file holds one rollout of training, or an evaluation with many episodes, which are
numbered as its parts. A summary needs no texts; `levels` decodes the turns of one path on request.
"""

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mlrl_learners.figures.means import mean
from mlrl_learners.runs.keys import OPPONENTS
from mlrl_learners.runs.stored import (
    UNREADABLE,
    Record,
    StoredTurn,
    decode_turns,
    texts,
    whole_number,
)
from mlrl_learners.runs.tree import (
    Json,
    follow,
    is_over,
    is_tree,
    nodes,
    own_agents,
    paths,
    root_of,
    step_values,
    team_reward,
    turn_of,
)

__all__ = [
    "WHOLE_LINE",
    "EpisodeSummary",
    "TreeBranch",
    "TreeLevel",
    "answers",
    "beginning",
    "episode_at",
    "levels",
    "opponents_of",
    "parse_line",
    "path_to",
    "seed_of",
    "summarise",
    "summarise_line",
]

_BEGINNING = 120
WHOLE_LINE = -1
"""Part of a line that is a single episode; in a line of many episodes parts count from 0."""


@dataclass(frozen=True, slots=True)
class EpisodeSummary:
    """Figures by which an episode is searched and sorted.

    Attributes:
        task_id: Id of its task.
        mean: Team return, without opponents, averaged over the joint actions of the first turn.
        best: Highest team return of a path, among those that were played to their end if any were.
        solved: Share of its paths that ended solved, in [0, 1].
        turns: Number of turns of the longest path.
        branches: Number of paths; 1 for an episode of an evaluation.
    """

    task_id: str
    mean: float
    best: float
    solved: float
    turns: int
    branches: int

    @property
    def solved_paths(self) -> int:
        """Number of paths that ended solved."""
        return round(self.solved * self.branches)


@dataclass(frozen=True, slots=True)
class TreeBranch:
    """One joint action among those played at a node.

    Attributes:
        value: Expected team return from this turn on.
        solved: Whether this joint action solved the task.
        samples: Agent -> index of its answer.
        goes_on: Whether the node has a child for it.
        is_estimate: Whether it was not played to its end, so that its value holds the mean of the
            joint actions beside it.
    """

    value: float
    solved: bool
    samples: Mapping[str, int]
    goes_on: bool
    is_estimate: bool = False


@dataclass(frozen=True, slots=True)
class TreeLevel:
    """One turn on a path through a tree.

    Attributes:
        turn: The joint action on the path.
        branches: All joint actions of the node.
        chosen: Index in `branches` of the one on the path.
        reward: Its team reward.
    """

    turn: StoredTurn
    branches: Sequence[TreeBranch]
    chosen: int
    reward: float


def summarise(record: Record) -> EpisodeSummary:
    """Return the figures of a rollout or of a single episode."""
    if not is_tree(record):
        total = float(record["return"])
        turns = len(record.get("turns") or ())
        solved = float(bool(record.get("solved")))
        return EpisodeSummary(str(record["task_id"]), total, total, solved, turns, 1)
    root = root_of(record)
    agents = own_agents(record)
    values = step_values(root, agents)
    played = [[step for _, step in path] for path in paths(root)]
    return EpisodeSummary(
        task_id=str(record["task_id"]),
        mean=mean(values, default=0.0),
        best=_best(played, agents),
        solved=mean([float(bool(path[-1].get("solved"))) for path in played], default=0.0),
        turns=max(map(len, played), default=0),
        branches=len(played),
    )


def summarise_line(line: bytes) -> tuple[list[tuple[int, int, EpisodeSummary]], int]:
    """Summarise every episode of a line.

    Returns:
        Part, iteration and summary of each episode, and the number of episodes that were
        unreadable (1 if the line itself was).
    """
    try:
        record = json.loads(line)
        is_whole = is_tree(record) or "turns" in record  # a suite stores an episode a line
        iteration = 0 if "turns" in record else whole_number(record["iteration"])
        found_parts: Mapping[int, Record] = (
            {WHOLE_LINE: record} if is_whole else dict(enumerate(record["episodes"]))
        )
    except UNREADABLE:
        return [], 1
    found = []
    for part, episode in found_parts.items():
        try:
            found.append((part, iteration, summarise(episode)))
        except UNREADABLE:
            continue
    return found, len(found_parts) - len(found)


def episode_at(line: bytes, part: int) -> Record | None:
    """Return the record of a part of a line; None if the line no longer holds it."""
    try:
        record = json.loads(line)
        found = record if part == WHOLE_LINE else record["episodes"][part]
    except UNREADABLE:
        return None
    return found if isinstance(found, dict) else None


def parse_line(line: bytes) -> object:
    """Return the JSON value of a line; None if it has none."""
    try:
        return json.loads(line)
    except UNREADABLE:
        return None


def beginning(parsed: object, part: int) -> str:
    """Return the first line that an agent wrote in a part of a line; empty if there is none.

    Lines that open a block of code are left out, because they are alike in all episodes.
    """
    try:
        record: Any = parsed if part == WHOLE_LINE else parsed["episodes"][part]  # type: ignore[index]
        lines = (line.strip() for text in answers(record) for line in text.splitlines())
        written = next((line for line in lines if line and not line.startswith("```")), "")
    except UNREADABLE:
        return ""
    return written[:_BEGINNING]


def answers(record: Record) -> Iterator[str]:
    """Yield every text that an agent wrote, in every branch."""
    if is_tree(record):
        for node in nodes(root_of(record)):
            for completions in (node.get("completions") or {}).values():
                for completion in completions:
                    yield str(completion["text"])
    for turn in record.get("turns") or ():
        yield from map(str, (turn.get("actions") or {}).values())


def levels(record: Record, path: Sequence[int]) -> list[TreeLevel]:
    """Decode the turns of one path through a tree.

    Args:
        record: A rollout, or a single episode, which has one path.
        path: Index of the joint action to take in each turn. Where it ends or is out of range, the
            joint action of the highest value is taken, those with a child before those without.
    """
    if not is_tree(record):
        opponents = opponents_of(record)
        return [_only_level(turn, opponents) for turn in decode_turns(record)]
    choices: list[tuple[list[TreeBranch], int]] = []
    agents = own_agents(record)

    def choose(node: Json, depth: int) -> int:
        branches = _branches(node, agents)
        wanted = path[depth] if depth < len(path) else -1
        chosen = wanted if 0 <= wanted < len(branches) else _most_promising(branches)
        choices.append((branches, chosen))
        return chosen

    taken = list(follow(root_of(record), choose))
    return [
        TreeLevel(turn_of(node, step), branches, chosen, team_reward(step, agents))
        for (node, step), (branches, chosen) in zip(taken, choices, strict=True)
    ]


def path_to(record: Record, is_wanted: Callable[[str], bool]) -> list[int]:
    """Return the path to the first joint action with a wanted text, as `levels` takes it.

    It is empty if the record is not a tree or no agent wrote such a text.
    """
    return (_path_to(root_of(record), is_wanted) or []) if is_tree(record) else []


def seed_of(record: Record) -> int | None:
    """Return the seed of an episode; None if the record does not hold one."""
    seed = record.get("seed")
    return seed if isinstance(seed, int) else None


def opponents_of(record: Record) -> dict[str, str]:
    """Return the names of the opponents of a rollout or an episode, by agent."""
    return texts(record.get(OPPONENTS))


def _path_to(node: Json, is_wanted: Callable[[str], bool]) -> list[int] | None:
    for index, step in enumerate(node["steps"]):
        samples = (step.get("samples") or {}).items()
        written = (node["completions"][agent][sample] for agent, sample in samples)
        if any(is_wanted(str(completion["text"])) for completion in written):
            return [index]
        below = _path_to(step["child"], is_wanted) if step.get("child") else None
        if below is not None:
            return [index, *below]
    return None


def _best(played: Sequence[Sequence[Json]], agents: Sequence[str] | None) -> float:
    """Return the highest return that was earned; estimates of `step_values` are none."""
    ended = [steps for steps in played if is_over(steps[-1])] or played
    returns = (math.fsum(team_reward(step, agents) for step in steps) for steps in ended)
    return max(returns, default=0.0)


def _branches(node: Json, agents: Sequence[str] | None) -> list[TreeBranch]:
    return [
        TreeBranch(
            value,
            solved=bool(step.get("solved")),
            samples=step.get("samples") or {},
            goes_on=bool(step.get("child")),
            is_estimate=not (step.get("child") or is_over(step)),
        )
        for value, step in zip(step_values(node, agents), node["steps"], strict=True)
    ]


def _most_promising(branches: Sequence[TreeBranch]) -> int:
    return max(range(len(branches)), key=lambda i: (branches[i].goes_on, branches[i].value))


def _only_level(turn: StoredTurn, opponents: Mapping[str, str]) -> TreeLevel:
    own = [value for agent, value in turn.rewards.items() if agent not in opponents]
    reward = mean(own, default=0.0)
    return TreeLevel(turn, [TreeBranch(reward, solved=False, samples={}, goes_on=True)], 0, reward)
