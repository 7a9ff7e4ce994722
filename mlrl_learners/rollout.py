"""Playing episodes: rollout trees for training, single lines of play for evaluation.

Works on any PettingZoo parallel environment whose observations and actions are text. All the
nodes of a tree level are answered as one batch, and all their joint actions are scored as one.

Infrastructure that fails is never a reward: the episode it hit becomes a `FailedEpisode`.
"""

import copy
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import mlrl_envs
from mlrl_envs.errors import InfraError
from mlrl_learners.types import (
    Actor,
    AgentID,
    Completion,
    Episode,
    EpisodeTurn,
    FailedEpisode,
    JointMode,
    JointStep,
    Node,
    Rollout,
    RolloutConfig,
    Spectator,
)

__all__ = [
    "Episode",
    "EpisodeTurn",
    "FailedEpisode",
    "RolloutBatch",
    "collect_rollouts",
    "play_episodes",
]

StepResult = tuple[Mapping[AgentID, Any], ...]
"""Observations, rewards, terminations, truncations and infos, as `ParallelEnv.step` returns."""


@dataclass(frozen=True, slots=True)
class RolloutBatch:
    """What `collect_rollouts` brought home."""

    rollouts: tuple[Rollout, ...]
    failures: tuple[FailedEpisode, ...]


@dataclass(slots=True)
class _Branch:
    """A node under construction: an environment that waits for a joint action."""

    env: Any
    tree: int
    turn: int
    observations: Mapping[AgentID, str]
    completions: Mapping[AgentID, list[Completion]] = field(default_factory=dict)
    actions: list[dict[AgentID, int]] = field(default_factory=list)
    results: list[StepResult] = field(default_factory=list)
    children: "dict[int, _Branch]" = field(default_factory=dict)


def collect_rollouts(
    envs: Sequence[Any],
    actor: Actor,
    config: RolloutConfig,
    *,
    env_id: str = "",
    task_options: Sequence[Mapping[str, Any]],
    seeds: Sequence[int],
) -> RolloutBatch:
    """Grow one tree a task, level by level.

    Args:
        envs: One parallel environment a task; they are reset here, copied where the tree branches,
            and left at an unspecified turn.
        actor: Answers observations.
        config: Samples a node, joint mode, branching.
        env_id: Written into the rollouts.
        task_options: For each task, the options of its `reset`.
        seeds: For each task, the seed of its `reset`; a chain also draws its branch from it.

    Returns:
        The rollouts in the order of the tasks, and the episodes that infrastructure broke.
    """
    roots = [
        _reset(env, tree, options, seed)
        for tree, (env, options, seed) in enumerate(zip(envs, task_options, seeds, strict=True))
    ]
    draws = [Random(seed) for seed in seeds]  # noqa: S311 - reproducible on purpose
    task_ids = [_task_id(root[1]) for root in roots]
    level = [root[0] for root in roots]
    failures: dict[int, FailedEpisode] = {}
    while level:
        _answer(level, actor, config.num_samples)
        for branch in level:
            branch.actions = _joint_actions(branch.completions, config.joint_mode)
        for tree, error in _play(level).items():
            failures[tree] = FailedEpisode(
                env_id, task_ids[tree], seeds[tree], type(error).__name__, str(error)
            )
        level = [branch for branch in level if branch.tree not in failures]
        level = [child for branch in level for child in _grow(branch, config, draws[branch.tree])]
        level = [branch for branch in level if branch.tree not in failures]
    rollouts = [
        Rollout(env_id, task_ids[tree], tuple(root[0].observations), _freeze(root[0]), seeds[tree])
        for tree, root in enumerate(roots)
        if tree not in failures
    ]
    return RolloutBatch(tuple(rollouts), tuple(failures.values()))


def play_episodes(
    envs: Sequence[Any],
    actor: Actor,
    *,
    task_options: Sequence[Mapping[str, Any]],
    seeds: Sequence[int],
    explore: bool = True,
) -> list[Episode]:
    """Play one line an environment, all of them side by side.

    Args:
        envs: Parallel environments, one an episode.
        actor: Answers observations.
        task_options: For each environment, the options of its `reset`.
        seeds: For each environment, the seed of its `reset`.
        explore: Sample, or answer greedily.

    Raises:
        InfraError: If an environment's machinery fails.
    """
    resets = [
        env.reset(seed=seed, options=dict(options))
        for env, options, seed in zip(envs, task_options, seeds, strict=True)
    ]
    observations = [reset[0] for reset in resets]
    turns: list[list[EpisodeTurn]] = [[] for _ in envs]
    playing = list(range(len(envs)))
    while playing:
        if isinstance(actor, Spectator):
            actor.watch([envs[i] for i in playing])
        answers = actor.act([observations[i] for i in playing], num_samples=1, explore=explore)
        chosen = [{agent: group[0] for agent, group in answer.items()} for answer in answers]
        results = mlrl_envs.step_many(
            [envs[i] for i in playing],
            [{agent: c.text for agent, c in completions.items()} for completions in chosen],
        )
        for i, completions, result in zip(playing, chosen, results, strict=True):
            turns[i].append(_turn(observations[i], completions, result))
            observations[i] = result[0]
        playing = [i for i in playing if envs[i].agents]
    return [
        _episode(_task_id(reset[1]), seed, turn)
        for reset, seed, turn in zip(resets, seeds, turns, strict=True)
    ]


def _reset(
    env: Any,  # noqa: ANN401 - any PettingZoo parallel environment
    tree: int,
    options: Mapping[str, Any],
    seed: int,
) -> tuple[_Branch, Mapping[AgentID, Mapping[str, Any]]]:
    observations, infos = env.reset(seed=seed, options=dict(options))
    return _Branch(env, tree, 0, dict(observations)), infos


def _answer(level: Sequence[_Branch], actor: Actor, num_samples: int) -> None:
    answers = actor.act([b.observations for b in level], num_samples=num_samples, explore=True)
    for branch, completions in zip(level, answers, strict=True):
        branch.completions = completions


def _joint_actions(
    completions: Mapping[AgentID, Sequence[Completion]], mode: JointMode
) -> list[dict[AgentID, int]]:
    """Return which sample each agent plays in each joint action."""
    sizes = [range(len(samples)) for samples in completions.values()]
    combined = zip(*sizes, strict=True) if mode == "aligned" else itertools.product(*sizes)
    return [dict(zip(completions, combination, strict=True)) for combination in combined]


def _play(level: Sequence[_Branch]) -> dict[int, InfraError]:
    """Play every joint action of every branch on a copy of its environment, as one batch.

    Returns:
        For each tree that infrastructure broke, the error.
    """
    owners = [branch for branch in level for _ in branch.actions]
    envs = [copy.deepcopy(branch.env) for branch in owners]
    joint_actions = [
        {agent: branch.completions[agent][sample].text for agent, sample in samples.items()}
        for branch in level
        for samples in branch.actions
    ]
    try:
        results: list[Any] = mlrl_envs.step_many(envs, joint_actions)
    except InfraError:
        envs = [copy.deepcopy(branch.env) for branch in owners]
        results = [_step_alone(*pair) for pair in zip(envs, joint_actions, strict=True)]
    errors: dict[int, InfraError] = {}
    for branch, env, result in zip(owners, envs, results, strict=True):
        if isinstance(result, InfraError):
            errors[branch.tree] = result
            continue
        if env.agents:
            number = len(branch.results)
            branch.children[number] = _Branch(env, branch.tree, branch.turn + 1, dict(result[0]))
        branch.results.append(result)
    return errors


def _step_alone(
    env: Any,  # noqa: ANN401 - any PettingZoo parallel environment
    actions: Mapping[AgentID, str],
) -> StepResult | InfraError:
    try:
        result: StepResult = mlrl_envs.step_many([env], [actions])[0]
    except InfraError as error:
        return error
    return result


def _grow(branch: _Branch, config: RolloutConfig, draw: Random) -> list[_Branch]:
    """Keep the children that are walked further, and return them."""
    if config.branching == "chain" and branch.children:
        kept = draw.choice(sorted(branch.children))
        branch.children = {kept: branch.children[kept]}
    return list(branch.children.values())


def _freeze(branch: _Branch) -> Node:
    steps = tuple(
        JointStep(
            samples=samples,
            rewards=dict(result[1]),
            components=_components(result[1], result[4]),
            infos=result[4],
            terminated=all(result[2].values()),
            truncated=all(result[3].values()),
            child=_freeze(branch.children[number]) if number in branch.children else None,
            next_observations=_next_observations(branch, number),
        )
        for number, (samples, result) in enumerate(zip(branch.actions, branch.results, strict=True))
    )
    completions = {agent: tuple(samples) for agent, samples in branch.completions.items()}
    return Node(branch.turn, branch.observations, completions, steps)


def _next_observations(branch: _Branch, number: int) -> dict[AgentID, str]:
    """Return what would be read next where nobody goes on: what a critic may be asked about."""
    observations, _, terminations, _, _ = branch.results[number]
    is_cut = number not in branch.children and not all(terminations.values())
    return dict(observations) if is_cut else {}


def _turn(
    observations: Mapping[AgentID, str],
    completions: Mapping[AgentID, Completion],
    result: StepResult,
) -> EpisodeTurn:
    _, rewards, _, _, infos = result
    return EpisodeTurn(observations, completions, rewards, _components(rewards, infos), infos)


def _episode(task_id: str, seed: int, turns: Sequence[EpisodeTurn]) -> Episode:
    agents = turns[0].rewards
    returns = {agent: sum(turn.rewards[agent] for turn in turns) for agent in agents}
    solved = any(bool(info.get("solved")) for info in turns[-1].infos.values())
    return Episode(task_id, seed, tuple(turns), solved, returns)


def _components(
    rewards: Mapping[AgentID, float], infos: Mapping[AgentID, Mapping[str, Any]]
) -> dict[AgentID, Mapping[str, float]]:
    """Read the parts of each reward; a stranger's environment has just the one."""
    return {
        agent: infos.get(agent, {}).get("components", {"reward": float(reward)})
        for agent, reward in rewards.items()
    }


def _task_id(infos: Mapping[AgentID, Mapping[str, Any]]) -> str:
    """Read the task's id; a stranger's environment may have none."""
    return next((str(info["task_id"]) for info in infos.values() if "task_id" in info), "")
