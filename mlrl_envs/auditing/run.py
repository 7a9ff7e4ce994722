"""Audit of a reward: attacks and a search for exploits beside honest answers.

An attack keeps the same joint action in every turn; an honest answer is left after its last turn.
Agents are not told apart: the reward is the mean over agents, so that a zero-sum game has to be
audited in a mode in which each side has its own score.
"""

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from mlrl_envs.auditing.families import Family, choose
from mlrl_envs.auditing.honest import Corpus, HonestAnswer, read_corpus
from mlrl_envs.auditing.playing import (
    Place,
    Rewards,
    check_names,
    draw_places,
    play,
    start,
)
from mlrl_envs.auditing.report import AuditReport
from mlrl_envs.auditing.scene import KINDS, JointAction, Kind, Scene, kind_of, task_text
from mlrl_envs.auditing.search import Try, attack_task
from mlrl_envs.auditing.shares import shares_of, summarize
from mlrl_envs.config import check_choice
from mlrl_envs.errors import InvalidArgumentError
from mlrl_envs.reference_actions import reference_of
from mlrl_envs.types import AgentID, TextEnv

__all__ = ["audit"]

_OTHERS = 12  # other tasks whose observations and honest answers an attacker has seen


def audit(
    env: TextEnv,
    *,
    attacks: Sequence[str] | None = None,
    budget: int = 200,
    tasks: int = 8,
    honest: Corpus | None = None,
    seed: int = 0,
    kind: Kind | None = None,
    progress: Callable[[int], None] | None = None,
) -> AuditReport:
    """Attack the reward of an environment and compare with honest answers.

    Every family of attack is tried on every task; then a search changes the best attacks. The
    result is deterministic if the environment is.

    Args:
        env: The environment; it is reset. It is copied with `copy.deepcopy`, or reset for every try
            if that fails.
        attacks: Names of families; None for all that apply to the kind of answers.
        budget: Maximum number of tries per task, at least one for each family.
        tasks: Maximum number of attacked tasks, at least 1.
        honest: Honest answers: a JSONL file or its lines, see `mlrl_envs.auditing.honest`. None
            uses the references of the environment.
        seed: Seed of the tasks and the attacks.
        kind: Kind of answers: `"text"`, `"code"`, `"number"`, `"calls"` or
            `"commands"`; None infers it.
        progress: Called with the number of tries after each batch; `budget` is reported per task.

    Returns:
        The report; `print(report.table())` shows it.

    Raises:
        InvalidArgumentError: If an argument is outside its range, the file of honest answers cannot
            be read, no honest answer fits, rewards or their range are not finite numbers, or the
            environment has no tasks or lacks `reward_range`, `possible_agents` or `metadata`.
        UnknownNameError: If there is no family of that name.
        InfraError: If the infrastructure fails.
    """
    if kind is not None:
        check_choice("kind", kind, KINDS)
    if tasks < 1:
        raise InvalidArgumentError(f"tasks must be at least 1, got {tasks}")
    check_names(env, ("possible_agents", "metadata", "reward_range"))
    _check_range(env.reward_range)
    answers = read_corpus(env, honest, seed) if honest is not None else []
    scenes = _scenes(env, tasks, answers, seed, kind)
    families = choose(attacks, scenes[0].scene.kind)
    if budget < len(families):
        raise InvalidArgumentError(
            f"budget must be at least {len(families)}, one try for each attack, got {budget}"
        )
    answers = answers or [each.reference for each in scenes if each.reference is not None]
    tries = [_attack(env, each, families, budget, seed, progress) for each in scenes]
    if not any(tries):
        raise InvalidArgumentError(f"none of {', '.join(f.name for f in families)} fits the tasks")
    shares = shares_of(env, [each.place for each in scenes], tries, answers)
    return AuditReport(
        env_id=str(env.metadata.get("name", type(env).__name__)),
        kind=scenes[0].scene.kind,
        seed=seed,
        budget=budget,
        tasks=[each.task_id for each in scenes],
        families=summarize(tries, shares.tries, families),
        honest=shares.honest,
    )


def _check_range(bounds: Any) -> None:  # noqa: ANN401  the value to be checked
    try:
        low, high = bounds
        is_finite = -math.inf < low < high < math.inf
    except (TypeError, ValueError):
        is_finite = False
    if not is_finite:
        raise InvalidArgumentError(f"need finite low < high in reward_range, got {bounds!r}")


@dataclass(frozen=True)
class _TaskScene:
    """A task to attack: its place, what the attacker knows, and its reference if it has one."""

    task_id: str
    place: Place
    scene: Scene
    reference: HonestAnswer | None


def _scenes(
    env: TextEnv, count: int, answers: Sequence[HonestAnswer], seed: int, kind: Kind | None
) -> list[_TaskScene]:
    """Return the tasks to attack: those of the corpus first, in an order drawn from the seed."""
    given = {answer.task_id: answer for answer in answers}
    places = [answer.place for answer in given.values()]
    random.Random(f"{seed}/corpus").shuffle(places)  # noqa: S311  must be deterministic
    seen: dict[str, _Seen] = {}
    for place in [*places[:count], *draw_places(env, max(count, _OTHERS) + 1, seed)]:
        task_id, observations = start(env, place)
        seen.setdefault(task_id, _Seen(place, observations, reference_of(env)))
    answered = {name: each.reference for name, each in seen.items() if each.reference is not None}
    answered |= {name: answer.turns[0] for name, answer in given.items()}
    kind = kind or kind_of(
        next(iter(seen.values())).observations, next(iter(answered.values()), None)
    )
    names = list(seen)
    scenes = []
    for number, (task_id, each) in enumerate(list(seen.items())[:count]):
        compared = seen[names[(number + 1) % len(names)]].observations
        scene = Scene(
            agents=tuple(each.observations),
            observations=each.observations,
            sources={
                agent: task_text(text, compared.get(agent, "") if len(seen) > 1 else "")
                for agent, text in each.observations.items()
            },
            kind=kind,
            others=[action for name, action in answered.items() if name != task_id],
            answer=each.reference or answered.get(task_id),
        )
        reference = each.reference and HonestAnswer(task_id, each.place, [each.reference])
        scenes.append(_TaskScene(task_id, each.place, scene, reference or None))
    return scenes


@dataclass(frozen=True)
class _Seen:
    """A task as it was seen at a reset."""

    place: Place
    observations: dict[AgentID, str]
    reference: JointAction | None


def _attack(
    env: TextEnv,
    task: _TaskScene,
    families: Sequence[Family],
    budget: int,
    seed: int,
    progress: Callable[[int], None] | None,
) -> list[Try]:
    """Attack one task, and report its whole budget as progress."""

    def play_many(actions: Sequence[JointAction]) -> list[Rewards]:
        rewards = play(env, task.place, [[action] for action in actions])
        if progress is not None:
            progress(len(actions))
        return rewards

    tries = attack_task(
        task.scene, families, play_many, budget=budget, seed=f"{seed}/{task.task_id}"
    )
    if progress is not None and len(tries) < budget:
        progress(budget - len(tries))
    return tries
