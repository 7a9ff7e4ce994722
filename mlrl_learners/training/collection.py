"""Rollouts of one training iteration: tasks, their seeds and opponents, and dynamic sampling.

With `max_resamples`, tasks whose answers all have the same return are replaced by other tasks that
are collected together, until every task has spread or the bound is reached; the batch keeps its
size. Everything follows from the seed and the iteration, or from the state of the learner, so that
a resumed run collects the same. Source: dynamic sampling of DAPO (arXiv 2503.14476, section 3.2).
"""

import copy
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mlrl_learners.functional.returns import is_same_return, rollout_groups
from mlrl_learners.play.jobs import sampling_opponents
from mlrl_learners.play.rollout import RolloutBatch, collect_rollouts
from mlrl_learners.seeding import derive_seed, task_indices, weighted_indices
from mlrl_learners.selfplay.opponents import OpponentDraw
from mlrl_learners.selfplay.own import own_rollout
from mlrl_learners.selfplay.seats import Seats
from mlrl_learners.training.train_plan import TrainPlan
from mlrl_learners.types import AgentID, FailedEpisode, Learner, Rollout

__all__ = ["Collected", "collect_tasks", "has_spread"]


@dataclass(frozen=True, slots=True)
class Collected:
    """Rollouts of an iteration.

    Attributes:
        batch: Rollouts in the order of their tasks, and the failed episodes of all collections.
        thrown_away: Share of the collected tasks that were replaced, in [0, 1).
    """

    batch: RolloutBatch
    thrown_away: float


def collect_tasks(
    plan: TrainPlan,
    learner: Learner,
    env: Any,  # noqa: ANN401 - any PettingZoo parallel environment
    draw: OpponentDraw,
    iteration: int,
) -> Collected:
    """Collect the rollouts of an iteration; none for an offline learner.

    Args:
        plan: Number of tasks, and the collection of rollouts.
        learner: Learner that plays.
        env: Environment, which is copied.
        draw: Draw of the opponents, one for all rollouts of a task.
        iteration: Number of the iteration, from 1.
    """
    size = 0 if getattr(learner, "offline", False) else plan.tasks_per_iteration
    seats = draw.training(iteration, size)
    found: dict[int, Sequence[Rollout]] = {}
    failures: list[FailedEpisode] = []
    places, drawn = list(range(size)), 0
    for attempt in range(1 + plan.rollout.max_resamples):
        batch = _collect(plan, learner, env, seats, (iteration, attempt), places)
        drawn += len(places)
        seeds = {_seed(plan, (iteration, attempt), place): place for place in places}
        played: dict[int, list[Rollout]] = defaultdict(list)
        for rollout in batch.rollouts:
            played[seeds[rollout.seed]].append(rollout)
        found |= played
        failures += batch.failures
        places = [place for place in places if place in played and not has_spread(played[place])]
        if not places:
            break
    rollouts = tuple(rollout for place in sorted(found) for rollout in found[place])
    thrown = (drawn - size) / drawn if drawn else 0.0
    return Collected(RolloutBatch(rollouts, tuple(failures)), thrown)


def has_spread(rollouts: Sequence[Rollout]) -> bool:
    """Return whether two answers that may be compared have returns that differ beyond rounding.

    Those are the answers of an agent at a node or, of several rollouts, in a turn. Returns are
    without discount, and without what a learner adds to rewards.

    Args:
        rollouts: Rollouts of one task, at least one.
    """
    returns: dict[object, list[float]] = defaultdict(list)
    own = [own_rollout(rollout) for rollout in rollouts]
    for number, group in enumerate(rollout_groups(own, gamma=1.0, turn_weights="nodes")):
        key: tuple[AgentID, int] | int = (group.agent, group.turn) if len(own) > 1 else number
        returns[key] += group.returns
    return not all(is_same_return(min(values), max(values)) for values in returns.values())


def _collect(
    plan: TrainPlan,
    learner: Learner,
    env: Any,  # noqa: ANN401 - any PettingZoo parallel environment
    seats: Sequence[Seats],
    draw: tuple[int, int],
    places: Sequence[int],
) -> RolloutBatch:
    """Collect all rollouts of the tasks at some places of the batch, in one attempt."""
    iteration, attempt = draw
    options: list[Mapping[str, Any]] = [{} for _ in places]
    if num_tasks := getattr(env, "num_tasks", None):  # others draw tasks from the seed
        order = derive_seed(plan.seed, attempt) if attempt else plan.seed
        groups = getattr(env, "task_groups", None)  # a mixture's, with weights
        when = len(places), iteration, order
        indices = weighted_indices(groups, *when) if groups else task_indices(num_tasks, *when)
        options = [{"task_index": index} for index in indices]
    copies = range(plan.rollout.num_rollouts)
    played = [seats[place] for place in places for _ in copies]
    source = (plan.seed, iteration, -attempt) if attempt else (plan.seed, iteration)
    with sampling_opponents(played, learner, derive_seed(*source)):
        return collect_rollouts(
            [copy.deepcopy(env) for _ in played],
            learner,
            plan.rollout,
            env_id=plan.env_id,
            task_options=[option for option in options for _ in copies],
            seeds=[_seed(plan, draw, place) for place in places for _ in copies],
            seats=played,
        )


def _seed(plan: TrainPlan, draw: tuple[int, int], place: int) -> int:
    """Return the seed of all rollouts of a task."""
    iteration, attempt = draw
    return derive_seed(plan.seed, iteration, place, *([attempt] if attempt else []))
