"""Scoring stored episodes anew, without any model: what would change today?

An episode is its task and the joint actions of its turns; whatever the environment makes of them
follows. So several agents and turns are nothing special here. An episode that the environment now
ends sooner or later than it did is reported as such, and scored as far as its actions go.
"""

import copy
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import mlrl_envs
from mlrl_envs.errors import InvalidArgumentError
from mlrl_learners.errors import ConfigError
from mlrl_learners.progress import progress_bar

__all__ = ["Change", "rescore"]

Record = dict[str, Any]
ROUNDING = 1e-9
BATCH = 64


@dataclass(frozen=True, slots=True)
class Change:
    """An episode whose score is not what it was.

    Attributes:
        env_id: Its environment.
        task_id: Its task.
        old_return: Team return as it was stored.
        new_return: As it is now.
        old_solved: Whether it was solved.
        new_solved: Whether it is now.
        components: For each named part of the reward that changed, its old and new sum over turns
            and mean over agents.
        note: Anything else that changed: an agent's return, a turn's rewards, a turn that is no
            longer played.
    """

    env_id: str
    task_id: str
    old_return: float
    new_return: float
    old_solved: bool
    new_solved: bool
    components: Mapping[str, tuple[float, float]]
    note: str = ""


def rescore(
    env_id: str,
    options: Mapping[str, Any],
    episodes: Sequence[Record],
    *,
    progress: bool = False,
) -> tuple[list[Record], list[Change]]:
    """Score episodes of one environment anew.

    Args:
        env_id: A registered environment.
        options: Its arguments, the split included. A language model that only suggests edits
            between turns is not asked.
        episodes: Records with `task_id`, `seed` and `turns`, as `episode_record` returns them.
        progress: Show a progress bar.

    Returns:
        The records with their new scores, in order; and what changed.

    Raises:
        ConfigError: If a task is no longer there, or other agents play it.
        InfraError: If the machinery fails; nothing is then returned.
    """
    env = mlrl_envs.make(env_id, **_without_expert(options))
    try:
        scored: list[Record] = []
        changes: list[Change] = []
        with progress_bar(total=len(episodes), description=env_id, enabled=progress) as bar:
            for first in range(0, len(episodes), BATCH):
                batch = episodes[first : first + BATCH]
                for old, (new, note) in zip(batch, _score(env, batch), strict=True):
                    scored.append(new)
                    changes += _changes(env_id, old, new, note)
                bar.update(len(batch))
    finally:
        env.close()
    return scored, changes


def _without_expert(options: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out who suggests edits: scores do not depend on what agents read."""
    if options.get("feedback") != "expert_edits":
        return dict(options)
    return {k: v for k, v in options.items() if k != "expert"} | {"feedback": "plain"}


def _score(
    env: Any,  # noqa: ANN401 - any PettingZoo parallel environment
    episodes: Sequence[Record],
) -> list[tuple[Record, str]]:
    """Play the stored actions, all episodes side by side."""
    envs = [_at_task(env, episode) for episode in episodes]
    turns: list[list[Record]] = [[] for _ in episodes]
    number = 0
    while playing := [
        i for i, each in enumerate(envs) if each.agents and number < len(episodes[i]["turns"])
    ]:
        actions = [_actions(envs[i], episodes[i], number) for i in playing]
        results = mlrl_envs.step_many([envs[i] for i in playing], actions)
        for i, result in zip(playing, results, strict=True):
            turns[i].append(_scored_turn(episodes[i]["turns"][number], result))
        number += 1
    return [
        _scored(episode, played, is_over=not each.agents)
        for episode, played, each in zip(episodes, turns, envs, strict=True)
    ]


def _at_task(env: Any, episode: Record) -> Any:  # noqa: ANN401 - PettingZoo environments
    clone = copy.deepcopy(env)
    index = episode.get("task_index")
    known = {"task_id": episode["task_id"]} if episode["task_id"] else {}
    if not known and index is not None:  # a stranger's environment may know its tasks by number
        known = {"task_index": index}
    try:
        clone.reset(seed=episode["seed"], options=known)
    except InvalidArgumentError as error:
        raise ConfigError(f"the data no longer hold a task of an episode: {error}") from error
    return clone


def _actions(env: Any, episode: Record, number: int) -> dict[str, str]:  # noqa: ANN401
    actions: dict[str, str] = episode["turns"][number]["actions"]
    if set(actions) != set(env.agents):
        raise ConfigError(
            f"{episode['task_id']}: played by {', '.join(sorted(actions))}, "
            f"the environment has {', '.join(sorted(env.agents))}; give its options"
        )
    return actions


def _scored_turn(old: Record, result: tuple[Any, ...]) -> Record:
    _, rewards, _, _, infos = result
    parts = {
        agent: dict(infos.get(agent, {}).get("components", {"reward": float(reward)}))
        for agent, reward in rewards.items()
    }
    new = {**old, "rewards": dict(rewards), "components": parts}
    if "diagnostics" in old:
        new["diagnostics"] = {agent: info.get("diagnostics") for agent, info in infos.items()}
    new["solved"] = any(bool(info.get("solved")) for info in infos.values())
    return new


def _scored(old: Record, turns: Sequence[Record], *, is_over: bool) -> tuple[Record, str]:
    returns = {a: sum(turn["rewards"][a] for turn in turns) for a in turns[0]["rewards"]}
    solved = turns[-1]["solved"]
    played = [{k: v for k, v in turn.items() if k != "solved"} for turn in turns]
    new = {
        **old,
        "return": sum(returns.values()) / len(returns),
        "returns": returns,
        "solved": solved,
        "turns": played,
    }
    note = ""
    if len(turns) < len(old["turns"]):
        note = f"ends after turn {len(turns)} of {len(old['turns'])}"
    elif not is_over:
        note = f"would go on after turn {len(turns)}"
    return new, note


def _changes(env_id: str, old: Record, new: Record, note: str) -> Iterator[Change]:
    before, after = _parts(old), _parts(new)
    parts = {
        name: (before.get(name, 0.0), after.get(name, 0.0))
        for name in sorted(before.keys() | after.keys())
        if not _is_same(before.get(name, 0.0), after.get(name, 0.0))
    }
    notes = [*([note] if note else []), *_differing(old, new)]
    if parts or notes or not _is_same(old["return"], new["return"]):
        yield Change(
            env_id,
            old["task_id"] or f"seed {old['seed']}",
            float(old["return"]),
            float(new["return"]),
            bool(old["solved"]),
            bool(new["solved"]),
            parts,
            "; ".join(notes),
        )


def _differing(old: Record, new: Record) -> Iterator[str]:
    """Name what differs apart from the team's return and the parts of the reward."""
    if old["solved"] != new["solved"]:
        yield "solved"
    if agents := _unlike(old["returns"], new["returns"]):
        yield f"returns of {', '.join(agents)}"
    for number, (before, after) in enumerate(zip(old["turns"], new["turns"], strict=False), 1):
        if agents := _unlike(before["rewards"], after["rewards"]):
            yield f"rewards of {', '.join(agents)} in turn {number}"


def _unlike(old: Mapping[str, float], new: Mapping[str, float]) -> list[str]:
    """Return the agents whose numbers differ."""
    return [
        agent
        for agent in sorted(old.keys() | new.keys())
        if not _is_same(old.get(agent, math.nan), new.get(agent, math.nan))
    ]


def _is_same(old: float, new: float) -> bool:
    return abs(old - new) <= ROUNDING


def _parts(record: Record) -> dict[str, float]:
    """Return each part of the reward, summed over turns, mean over agents."""
    totals: dict[str, float] = {}
    for turn in record["turns"]:
        for parts in turn["components"].values():
            for name, value in parts.items():
                totals[name] = totals.get(name, 0.0) + value / len(turn["components"])
    return totals
