"""Playing episodes: rollout trees for training, single lines of play for evaluation.

Works on any PettingZoo parallel environment whose observations and actions are text. All the
nodes of a tree level are answered as one batch, and all their joint actions are scored as one.
With several processes, each environment is played in one of them and what comes of it is told to
all: scoring the same thing twice would cost twice, and clocks might disagree on a time limit.

Infrastructure that fails is never a reward: the episode it hit becomes a `FailedEpisode`.
"""

import copy
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from mlrl_envs.errors import InfraError
from mlrl_learners.errors import ConfigError
from mlrl_learners.play.steps import (
    Opening,
    Outcome,
    has_artificial_limit,
    open_everywhere,
    raised,
    step_alone,
    step_envs,
    step_everywhere,
)
from mlrl_learners.processes.work_sharing import gather, share, world
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


@dataclass(frozen=True, slots=True)
class RolloutBatch:
    """What `collect_rollouts` brought home."""

    rollouts: tuple[Rollout, ...]
    failures: tuple[FailedEpisode, ...]


@dataclass(slots=True)
class _Branch:
    """A node under construction: an environment that waits for a joint action.

    Attributes:
        env: None where another process plays it.
    """

    env: Any
    tree: int
    turn: int
    observations: Mapping[AgentID, str]
    completions: Mapping[AgentID, list[Completion]] = field(default_factory=dict)
    actions: list[dict[AgentID, int]] = field(default_factory=list)
    results: list[Outcome] = field(default_factory=list)
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
    found = open_everywhere(envs, task_options, seeds)
    openings = {tree: each for tree, each in enumerate(found) if isinstance(each, Opening)}
    errors = {tree: each for tree, each in enumerate(found) if isinstance(each, InfraError)}
    task_ids = {tree: str(task_options[tree].get("task_index", "")) for tree in errors}
    task_ids |= {tree: opening.task_id for tree, opening in openings.items()}
    ours = share([1.0] * len(envs))
    roots = [
        _Branch(envs[tree] if tree in ours else None, tree, 0, opening.observations)
        for tree, opening in openings.items()
    ]
    draws = [Random(seed) for seed in seeds]  # noqa: S311 - reproducible on purpose
    level = roots
    while level:
        _answer(level, actor, config)
        errors |= _play(level)
        level = [branch for branch in level if branch.tree not in errors]
        level = [child for branch in level for child in _grow(branch, config, draws[branch.tree])]
    rollouts = [
        Rollout(
            env_id,
            task_ids[i],
            openings[i].agents,
            _freeze(root),
            seeds[i],
            has_artificial_limit(envs[i]),
        )
        for i, root in zip(openings, roots, strict=True)
        if i not in errors
    ]
    failures = [
        FailedEpisode(env_id, task_ids[i], seeds[i], type(error).__name__, str(error))
        for i, error in errors.items()
    ]
    return RolloutBatch(tuple(rollouts), tuple(failures))


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
        ConfigError: If there are several processes, and the actor wants to see environments.
    """
    watches = isinstance(actor, Spectator)
    if watches and world().size > 1:
        raise ConfigError("an actor that is shown the environments plays in one process")
    openings = [raised(opening) for opening in open_everywhere(envs, task_options, seeds)]
    observations = [opening.observations for opening in openings]
    turns: list[list[EpisodeTurn]] = [[] for _ in envs]
    ours = share([1.0] * len(envs))
    playing = list(range(len(envs)))
    while playing:
        if isinstance(actor, Spectator):
            actor.watch([envs[i] for i in playing])
        answers = actor.act([observations[i] for i in playing], num_samples=1, explore=explore)
        chosen = {
            i: {agent: group[0] for agent, group in answer.items()}
            for i, answer in zip(playing, answers, strict=True)
        }
        outcomes = step_everywhere(
            {i: envs[i] for i in playing if i in ours},
            {i: {agent: c.text for agent, c in chosen[i].items()} for i in playing},
        )
        for i, outcome in outcomes.items():
            turns[i].append(_turn(observations[i], chosen[i], outcome))
            observations[i] = outcome.asked
        playing = [i for i, outcome in outcomes.items() if outcome.agents]
    return [
        _episode(opening, seed, turn)
        for opening, seed, turn in zip(openings, seeds, turns, strict=True)
    ]


def _answer(level: Sequence[_Branch], actor: Actor, config: RolloutConfig) -> None:
    answers = actor.act(
        [branch.observations for branch in level], num_samples=config.num_samples, explore=True
    )
    for branch, completions in zip(level, answers, strict=True):
        branch.completions = completions
        branch.actions = _joint_actions(completions, config.joint_mode)


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
    places = [(branch, samples) for branch in level for samples in branch.actions]
    ours = [number for number, (branch, _) in enumerate(places) if branch.env is not None]
    envs, found = _step_copies([places[number] for number in ours])
    env_at = dict(zip(ours, envs, strict=True))
    errors: dict[int, InfraError] = {}
    for number, outcome in gather(dict(zip(ours, found, strict=True))).items():
        branch = places[number][0]
        if isinstance(outcome, InfraError):
            errors[branch.tree] = outcome
            continue
        if outcome.agents:
            branch.children[len(branch.results)] = _Branch(
                env_at.get(number), branch.tree, branch.turn + 1, outcome.asked
            )
        branch.results.append(outcome)
    return errors


def _step_copies(
    places: Sequence[tuple[_Branch, Mapping[AgentID, int]]],
) -> tuple[list[Any], list[Outcome] | list[Outcome | InfraError]]:
    """Play joint actions on copies of environments; return these, and what came of each."""
    actions = [
        {agent: branch.completions[agent][sample].text for agent, sample in samples.items()}
        for branch, samples in places
    ]
    envs = [copy.deepcopy(branch.env) for branch, _ in places]
    try:
        return envs, step_envs(envs, actions)
    except InfraError:  # some were stepped, some were not
        envs = [copy.deepcopy(branch.env) for branch, _ in places]
        return envs, [step_alone(*pair) for pair in zip(envs, actions, strict=True)]


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
            rewards=dict(outcome.rewards),
            components=outcome.components,
            infos=outcome.infos,
            terminated=outcome.terminated,
            truncated=outcome.truncated,
            child=_freeze(branch.children[number]) if number in branch.children else None,
            next_observations=_next_observations(branch, number),
        )
        for number, (samples, outcome) in enumerate(
            zip(branch.actions, branch.results, strict=True)
        )
    )
    completions = {agent: tuple(samples) for agent, samples in branch.completions.items()}
    return Node(branch.turn, branch.observations, completions, steps)


def _next_observations(branch: _Branch, number: int) -> dict[AgentID, str]:
    """Return what would be read next where nobody goes on: what a critic may be asked about."""
    if number in branch.children:
        return {}
    ended = branch.results[number].terminations
    read = branch.results[number].observations
    return {agent: text for agent, text in read.items() if not ended.get(agent)}


def _turn(
    observations: Mapping[AgentID, str],
    completions: Mapping[AgentID, Completion],
    outcome: Outcome,
) -> EpisodeTurn:
    return EpisodeTurn(
        observations, completions, outcome.rewards, outcome.components, outcome.infos
    )


def _episode(opening: Opening, seed: int, turns: Sequence[EpisodeTurn]) -> Episode:
    returns = {
        agent: sum(turn.rewards.get(agent, 0.0) for turn in turns) for agent in opening.agents
    }
    solved = any(bool(info.get("solved")) for info in turns[-1].infos.values())
    return Episode(opening.task_id, seed, tuple(turns), solved, returns)
