"""Collection of rollout trees for training and of single episodes for evaluation.

Works with any PettingZoo parallel environment whose observations and actions are text. Only agents
that act are asked (see `mlrl_learners.play.steps.acting_observations`); an agent of the episode
that does not act and has neither terminated nor been truncated waits. How trees grow is in
`mlrl_learners.play.trees`; the episodes of an evaluation are answered, and scored, as one batch a
turn. With several processes, each environment is stepped in one of them and its results are sent to
all, which saves work and avoids time limits that differ between processes.

Failing infrastructure never gives a reward: the episode becomes a `FailedEpisode`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mlrl_learners.errors import ConfigError
from mlrl_learners.play.steps import (
    EnvReset,
    EnvStep,
    raise_error,
    reset_everywhere,
    step_everywhere,
)
from mlrl_learners.play.trees import Tree, play_trees
from mlrl_learners.processes.work_sharing import share, world
from mlrl_learners.selfplay.seats import Seats, answer_all, names_of
from mlrl_learners.types import (
    Actor,
    AgentID,
    Completion,
    Episode,
    EpisodeTurn,
    FailedEpisode,
    Rollout,
    RolloutConfig,
    Spectator,
    continued,
    conversations,
)

__all__ = ["RolloutBatch", "collect_rollouts", "play_episodes"]


@dataclass(frozen=True, slots=True)
class RolloutBatch:
    """Result of `collect_rollouts`.

    Attributes:
        rollouts: Complete rollouts, in the order of the tasks.
        failures: Episodes that failing infrastructure ended.
    """

    rollouts: tuple[Rollout, ...]
    failures: tuple[FailedEpisode, ...]


def collect_rollouts(
    envs: Sequence[Any],
    actor: Actor,
    config: RolloutConfig,
    *,
    env_id: str = "",
    task_options: Sequence[Mapping[str, Any]],
    seeds: Sequence[int],
    seats: Sequence[Seats] | None = None,
) -> RolloutBatch:
    """Collect one rollout tree per task.

    Args:
        envs: One parallel environment per task; they are reset here, copied where the tree
            branches, and left at an unspecified turn.
        actor: Actor that answers observations.
        config: Samples per node, joint mode and branching.
        env_id: Id of the environment, stored in the rollouts.
        task_options: Options of the `reset` of each task.
        seeds: Seed of the `reset` of each task; a chain also draws its branches from it.
        seats: Opponents of each task, which give one answer at each node; None for none.

    Returns:
        The rollouts in the order of the tasks, and the failed episodes.

    Raises:
        ConfigError: If there are several processes and an opponent is a `Spectator`.
    """
    seats = _checked_seats(seats, len(envs))
    trees = [Tree(*each) for each in zip(envs, task_options, seeds, seats, strict=True)]
    found = play_trees(trees, actor, config, env_id)
    return RolloutBatch(
        tuple(each for each in found if isinstance(each, Rollout)),
        tuple(each for each in found if isinstance(each, FailedEpisode)),
    )


def play_episodes(
    envs: Sequence[Any],
    actor: Actor,
    *,
    task_options: Sequence[Mapping[str, Any]],
    seeds: Sequence[int],
    explore: bool = True,
    seats: Sequence[Seats] | None = None,
) -> list[Episode]:
    """Play one episode per environment, all of them in parallel.

    Args:
        envs: Parallel environments, one per episode.
        actor: Actor that answers observations.
        task_options: Options of the `reset` of each environment.
        seeds: Seed of the `reset` of each environment.
        explore: Sample answers if true, answer greedily if false.
        seats: Opponents in each environment; None for none.

    Raises:
        InfraError: If the infrastructure of an environment fails.
        ConfigError: If there are several processes and a player is a `Spectator`.
    """
    seats = _checked_seats(seats, len(envs))
    _check_spectator(actor)
    resets = [raise_error(each) for each in reset_everywhere(envs, task_options, seeds)]
    observations = [each.observations for each in resets]
    turns: list[list[EpisodeTurn]] = [[] for _ in envs]
    earlier: list[dict[AgentID, tuple[tuple[str, str], ...]]] = [{} for _ in envs]
    ours = share([1.0] * len(envs))
    playing = list(range(len(envs)))
    while playing:
        answers = answer_all(
            [conversations(observations[i], earlier[i]) for i in playing],
            actor,
            [seats[i] for i in playing],
            [envs[i] for i in playing],
            num_samples=1,
            explore=explore,
        )
        chosen = {
            i: {agent: group[0] for agent, group in answer.items()}
            for i, answer in zip(playing, answers, strict=True)
        }
        texts = {i: {agent: c.text for agent, c in chosen[i].items()} for i in playing}
        steps = step_everywhere({i: envs[i] for i in playing if i in ours}, texts)
        for i, step in steps.items():
            earlier[i] = continued(observations[i], texts[i], earlier[i])
            turns[i].append(_turn(observations[i], chosen[i], step))
            observations[i] = step.next_observations
        playing = [i for i, step in steps.items() if step.agents]
    return [
        _episode(reset, seed, turn, names_of(seat))
        for reset, seed, turn, seat in zip(resets, seeds, turns, seats, strict=True)
    ]


def _checked_seats(seats: Sequence[Seats] | None, num_episodes: int) -> Sequence[Seats]:
    if seats is None:
        return [{}] * num_episodes
    for seat in seats:
        for opponent in seat.values():
            _check_spectator(opponent.actor)
    return seats


def _check_spectator(player: Actor) -> None:
    if isinstance(player, Spectator) and world().size > 1:
        raise ConfigError("an actor that reads the environments must run in one process")


def _turn(
    observations: Mapping[AgentID, str],
    completions: Mapping[AgentID, Completion],
    step: EnvStep,
) -> EpisodeTurn:
    return EpisodeTurn(observations, completions, step.rewards, step.components, step.infos)


def _episode(
    reset: EnvReset, seed: int, turns: Sequence[EpisodeTurn], opponents: Mapping[AgentID, str]
) -> Episode:
    returns = {agent: sum(turn.rewards.get(agent, 0.0) for turn in turns) for agent in reset.agents}
    solved = any(bool(info.get("solved")) for info in turns[-1].infos.values())
    return Episode(reset.task_id, seed, tuple(turns), solved, returns, opponents, reset.env_name)
