"""Rescoring of stored episodes with the current environment, without any model.

The stored actions are played again from the stored task and seed, and the new scores are compared
with the stored ones. An episode that now ends earlier or later is reported and scored as far as its
actions go.
"""

import copy
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import mlrl_envs
from mlrl_envs.errors import InvalidArgumentError
from mlrl_learners.errors import ConfigError
from mlrl_learners.play.steps import acting_observations
from mlrl_learners.progress import progress_bar
from mlrl_learners.runs.labels import TurnScore, rescored_record
from mlrl_learners.runs.stored import Record, StoredEpisode, decode_episode
from mlrl_learners.types import AgentID

__all__ = ["ScoreChange", "replayed", "rescore", "with_same_observations"]

ROUNDING = 1e-9
BATCH = 64


@dataclass(frozen=True, slots=True)
class ScoreChange:
    """An episode whose score has changed.

    Attributes:
        env_id: Its environment.
        task_id: Its task.
        old_return: Stored team return.
        new_return: Team return now.
        old_solved: Stored flag.
        new_solved: Flag now.
        components: Named part of the reward that changed -> old and new value, summed over turns,
            mean over agents.
        note: Other changes: returns of agents, rewards of turns, number of turns.
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
) -> tuple[list[dict[str, Any]], list[ScoreChange]]:
    """Rescore episodes of one environment.

    Args:
        env_id: A registered environment.
        options: Its arguments, split included. A model that suggests edits between turns
            (`feedback: expert_edits`) is not called.
        episodes: Records of episodes, see `mlrl_learners.runs.records`.
        progress: Show a progress bar.

    Returns:
        The records with their new scores, in order, and the changes.

    Raises:
        ConfigError: If the data lack a task, or its agents differ.
        InfraError: If infrastructure fails.
    """
    env = mlrl_envs.make(env_id, **_without_expert(options))
    try:
        scored: list[dict[str, Any]] = []
        changes: list[ScoreChange] = []
        with progress_bar(total=len(episodes), description=env_id, enabled=progress) as bar:
            for first in range(0, len(episodes), BATCH):
                batch = episodes[first : first + BATCH]
                stored = [decode_episode(record) for record in batch]
                for record, old, (scores, note) in zip(
                    batch, stored, _score(env, stored), strict=True
                ):
                    scored.append(rescored_record(record, scores))
                    changes += _changes(env_id, old, decode_episode(scored[-1]), note)
                bar.update(len(batch))
    finally:
        env.close()
    return scored, changes


def replayed(
    env: Any,  # noqa: ANN401 - any PettingZoo parallel environment
    episodes: Sequence[StoredEpisode],
) -> Iterator[Any]:
    """Yield a copy of an environment after the stored actions of each episode.

    Raises:
        ConfigError: If the data lack a task, or its agents differ.
    """
    for episode in episodes:
        *_, (clone, _) = _positions(env, episode)
        yield clone


def with_same_observations(
    env_id: str, options: Mapping[str, Any], episodes: Sequence[Record]
) -> list[Record]:
    """Return the episodes in which agents would read the same, up to the end.

    Args:
        env_id: A registered environment.
        options: Its arguments, split included. A model that suggests edits between turns is not
            called, so that episodes that read its edits are left out.
        episodes: Records of episodes; those without observations are left out.

    Raises:
        ConfigError: If the data lack a task, or its agents differ.
        InfraError: If infrastructure fails.
    """
    env = mlrl_envs.make(env_id, **_without_expert(options))
    try:
        return [each for each in episodes if _reads_the_same(env, decode_episode(each))]
    finally:
        env.close()


def _reads_the_same(env: Any, episode: StoredEpisode) -> bool:  # noqa: ANN401 - any environment
    positions = _positions(env, episode)
    for turn, (_, acting) in zip(episode.turns, positions, strict=False):
        if not acting or any(turn.observations.get(agent) != acting[agent] for agent in acting):
            return False
    clone, _ = next(positions)
    return not clone.agents


def _positions(
    env: Any,  # noqa: ANN401 - any PettingZoo parallel environment
    episode: StoredEpisode,
) -> Iterator[tuple[Any, Mapping[AgentID, str]]]:
    """Yield a copy of an environment, and what acting agents read, before and after each turn."""
    clone, acting = _at_task(env, episode)
    yield clone, acting
    for number in range(len(episode.turns)):
        if not clone.agents:
            break
        observations, *_, infos = clone.step(_actions(acting, episode, number))
        acting = acting_observations(clone.agents, observations, infos)
        yield clone, acting


def _without_expert(options: Mapping[str, Any]) -> dict[str, Any]:
    """Replace feedback that calls a model: scores do not depend on observations."""
    if options.get("feedback") != "expert_edits":
        return dict(options)
    return {k: v for k, v in options.items() if k != "expert"} | {"feedback": "plain"}


def _score(
    env: Any,  # noqa: ANN401 - any PettingZoo parallel environment
    episodes: Sequence[StoredEpisode],
) -> list[tuple[list[TurnScore], str]]:
    """Play the stored actions of all episodes in parallel; return scores and a note for each."""
    started = [_at_task(env, episode) for episode in episodes]
    envs, acting = [each for each, _ in started], [each for _, each in started]
    scores: list[list[TurnScore]] = [[] for _ in episodes]
    number = 0
    while playing := [
        i for i, each in enumerate(envs) if each.agents and number < len(episodes[i].turns)
    ]:
        actions = [_actions(acting[i], episodes[i], number) for i in playing]
        results = mlrl_envs.step_many([envs[i] for i in playing], actions)
        for i, result in zip(playing, results, strict=True):
            scores[i].append(_turn_score(result))
            acting[i] = acting_observations(envs[i].agents, result[0], result[-1])
        number += 1
    return [
        (found, _length_note(episode, len(found), is_over=not each.agents))
        for episode, found, each in zip(episodes, scores, envs, strict=True)
    ]


def _at_task(
    env: Any,  # noqa: ANN401 - any PettingZoo parallel environment
    episode: StoredEpisode,
) -> tuple[Any, Mapping[AgentID, str]]:
    """Return an environment at the task of an episode, and what the agents read that act first."""
    clone = copy.deepcopy(env)
    known: dict[str, object] = {"task_id": episode.task_id} if episode.task_id else {}
    if not known and episode.task_index is not None:  # tasks of some environments have no id
        known = {"task_index": episode.task_index}
    try:
        observations, infos = clone.reset(seed=episode.seed, options=known)
    except InvalidArgumentError as error:
        raise ConfigError(f"the data no longer hold a task of an episode: {error}") from error
    return clone, acting_observations(clone.agents, observations, infos)


def _actions(acting: Collection[AgentID], episode: StoredEpisode, number: int) -> dict[str, str]:
    actions = dict(episode.turns[number].actions)
    if set(actions) != set(acting):
        raise ConfigError(
            f"{episode.task_id}: played by {', '.join(sorted(actions))}, "
            f"the environment has {', '.join(sorted(acting))}; give its options"
        )
    return actions


def _turn_score(result: tuple[Any, ...]) -> TurnScore:
    _, rewards, _, _, infos = result
    return TurnScore(
        rewards=rewards,
        components={
            agent: infos.get(agent, {}).get("components", {"reward": float(reward)})
            for agent, reward in rewards.items()
        },
        diagnostics={agent: info.get("diagnostics") for agent, info in infos.items()},
        solved=any(bool(info.get("solved")) for info in infos.values()),
    )


def _length_note(old: StoredEpisode, num_turns: int, *, is_over: bool) -> str:
    if num_turns < len(old.turns):
        return f"ends after turn {num_turns} of {len(old.turns)}"
    return "" if is_over else f"would go on after turn {num_turns}"


def _changes(
    env_id: str, old: StoredEpisode, new: StoredEpisode, note: str
) -> Iterator[ScoreChange]:
    before, after = _parts(old), _parts(new)
    parts = {
        name: (before.get(name, 0.0), after.get(name, 0.0))
        for name in sorted(before.keys() | after.keys())
        if not _is_same(before.get(name, 0.0), after.get(name, 0.0))
    }
    notes = [*([note] if note else []), *_differing(old, new)]
    if parts or notes or not _is_same(old.team_return, new.team_return):
        yield ScoreChange(
            env_id,
            old.task_id or f"seed {old.seed}",
            float(old.team_return),
            float(new.team_return),
            old.solved,
            new.solved,
            parts,
            "; ".join(notes),
        )


def _differing(old: StoredEpisode, new: StoredEpisode) -> Iterator[str]:
    """Name each difference apart from the team return and the parts of the reward."""
    if old.solved != new.solved:
        yield "solved"
    if agents := _unlike(old.returns, new.returns):
        yield f"returns of {', '.join(agents)}"
    for number, (before, after) in enumerate(zip(old.turns, new.turns, strict=False), 1):
        if agents := _unlike(before.rewards, after.rewards):
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


def _parts(episode: StoredEpisode) -> dict[str, float]:
    """Return each part of the reward, summed over turns, mean over the own agents of a turn."""
    totals: dict[str, float] = {}
    for turn in episode.turns:
        own = [parts for a, parts in turn.components.items() if a not in episode.opponents]
        for parts in own:
            for name, value in parts.items():
                totals[name] = totals.get(name, 0.0) + value / len(own)
    return totals
