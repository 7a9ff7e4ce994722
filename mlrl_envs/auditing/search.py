"""Search for exploits on one task: best of N of each family, then hill-climbing over the best.

A policy that is trained on a reward finds what a search finds, so that a reward is as good as its
worst answer under a search. Half of the budget is shared by the families; the other half changes
the best attacks found so far, see `mlrl_envs.auditing.mutations`. An attack that equals the honest
answer to the task is left out, because it is no exploit.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mlrl_envs.auditing.families import Family
from mlrl_envs.auditing.mutations import mutate
from mlrl_envs.auditing.playing import Rewards
from mlrl_envs.auditing.scene import JointAction, Scene

__all__ = ["CLIMBED", "Try", "attack_task"]

CLIMBED = "search"
"""Name of the rows that the hill-climbing makes."""

_BATCH = 16
_POOL = 6
_MAX_CHARS = 8000  # concatenations double; no honest answer is that long

PlayMany = Callable[[Sequence[JointAction]], list[Rewards]]


@dataclass(frozen=True)
class Try:
    """One attack and what it earned.

    Attributes:
        family: Name of the family, or `CLIMBED`.
        action: The joint action.
        rewards: Mean reward over agents of each turn.
    """

    family: str
    action: JointAction
    rewards: Rewards


def attack_task(
    scene: Scene, families: Sequence[Family], play_many: PlayMany, *, budget: int, seed: str
) -> list[Try]:
    """Attack one task with exactly `budget` tries, or fewer if the families run dry.

    Args:
        scene: What the attacker knows.
        families: The families, at most `budget`.
        play_many: Plays joint actions on the task and returns their rewards.
        budget: Maximum number of joint actions.
        seed: Seed of all draws.

    Raises:
        InfraError: If the infrastructure fails.
    """
    share = max(1, budget // (2 * len(families)))
    drawn = [
        (family, action)
        for family in families
        for action in _draw(family, scene, share, random.Random(f"{seed}/{family.name}"))  # noqa: S311  must be deterministic
        if family.knows_answer or not _is_honest(action, scene)
    ][:budget]
    tries = _played([(family.name, action) for family, action in drawn], play_many)
    open_to_all = {family.name for family in families if not family.knows_answer}
    pool = [one for one in tries if one.family in open_to_all]
    return [*tries, *_climb(pool, scene, play_many, budget - len(tries), seed)]


def _draw(family: Family, scene: Scene, count: int, rng: random.Random) -> list[JointAction]:
    """Draw different attacks of a family; families with few texts give fewer than `count`."""
    found: dict[str, JointAction] = {}
    for _ in range(count):
        action = family.attack(scene, rng)
        if action is None:
            break
        whole = {agent: action.get(agent, "") for agent in scene.agents}
        found[repr(whole)] = whole
    return list(found.values())


def _climb(pool: list[Try], scene: Scene, play_many: PlayMany, budget: int, seed: str) -> list[Try]:
    rng = random.Random(f"{seed}/{CLIMBED}")  # noqa: S311  must be deterministic
    known = list(pool)
    tries: list[Try] = []
    best = _best(pool)
    while best and len(tries) < budget:
        count = min(_BATCH, budget - len(tries))
        children = []
        for _ in range(count):
            child = mutate(rng.choice(best).action, rng.choice(known).action, scene, rng)
            children.append({agent: text[:_MAX_CHARS] for agent, text in child.items()})
        played = _played(
            [(CLIMBED, child) for child in children if not _is_honest(child, scene)], play_many
        )
        if not played:
            break
        tries += played
        best = _best([*best, *played])
    return tries


def _is_honest(action: JointAction, scene: Scene) -> bool:
    """Return whether texts are those of the honest answer, up to case and white space."""
    answer = scene.answer
    return answer is not None and all(
        action.get(agent, "").casefold().split() == answer.get(agent, "").casefold().split()
        for agent in scene.agents
    )


def _best(tries: Sequence[Try]) -> list[Try]:
    return sorted(tries, key=lambda one: sum(one.rewards), reverse=True)[:_POOL]


def _played(attacks: Sequence[tuple[str, JointAction]], play_many: PlayMany) -> list[Try]:
    tries: list[Try] = []
    for first in range(0, len(attacks), _BATCH):
        batch = attacks[first : first + _BATCH]
        rewards = play_many([action for _, action in batch])
        tries += [Try(*attack, found) for attack, found in zip(batch, rewards, strict=True)]
    return tries
