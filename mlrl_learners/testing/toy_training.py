"""Training of a learner on a toy, with mean returns before and after."""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mlrl_learners.figures.means import mean
from mlrl_learners.play.rollout import collect_rollouts, play_episodes
from mlrl_learners.seeding import derive_seed
from mlrl_learners.testing.toy_env import ToyEnv
from mlrl_learners.testing.toys import Toy
from mlrl_learners.types import Actor, AgentID, Learner, RolloutConfig

__all__ = ["Gain", "make_with_seed", "mean_return", "train_on_toy"]

POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
EPISODES = 200  # per evaluation; the standard error of a return in [0, 1] is at most 0.035


@dataclass(frozen=True, slots=True)
class Gain:
    """Returns of a toy before and after training.

    Attributes:
        before: Mean return of 200 episodes before the first update.
        after: Mean return of 200 episodes after the last update.
    """

    before: float
    after: float


def train_on_toy(
    toy: Toy,
    learner: Learner,
    agents: Sequence[AgentID],
    *,
    walk: RolloutConfig | None = None,
    updates: int = 40,
    rollouts: int = 8,
    seed: int = 0,
) -> Gain:
    """Train a learner on a toy.

    Args:
        toy: The toy.
        learner: Learner, trained in place.
        agents: Its agents.
        walk: Collection of rollouts; by default `learner.rollout`.
        updates: Number of updates.
        rollouts: Rollouts per update.
        seed: Seed of the branches of chains.
    """
    config = walk or getattr(learner, "rollout", None) or RolloutConfig()
    if hasattr(learner, "plan_updates"):
        learner.plan_updates(updates)
    before = mean_return(toy, learner, agents, seed=seed)
    for number in range(updates):
        batch = collect_rollouts(
            [ToyEnv(toy, agents) for _ in range(rollouts)],
            learner,
            config,
            env_id=f"toy/{toy.name}-v0",
            task_options=[{} for _ in range(rollouts)],
            seeds=[derive_seed(seed, number, place) for place in range(rollouts)],
        )
        learner.update(batch.rollouts)
    return Gain(before, mean_return(toy, learner, agents, seed=seed))


def mean_return(toy: Toy, actor: Actor, agents: Sequence[AgentID], *, seed: int = 0) -> float:
    """Return the mean return of 200 sampled episodes of a toy."""
    episodes = play_episodes(
        [ToyEnv(toy, agents) for _ in range(EPISODES)],
        actor,
        task_options=[{} for _ in range(EPISODES)],
        seeds=[derive_seed(seed, number) for number in range(EPISODES)],
    )
    return mean([mean(list(episode.returns.values())) for episode in episodes])


def make_with_seed(make: Callable[..., Learner], seed: int) -> Learner:
    """Build a learner with a seed.

    The seed is passed by the name `seed`, or as the only argument without a default. For other
    factories, which build the same learner at each call, the learner's generator is advanced by
    answering `seed` observations, so that samples still depend on the seed.

    Args:
        make: Factory of the learner.
        seed: The seed, at least 0.
    """
    parameters = inspect.signature(make).parameters
    if "seed" in parameters:
        return make(seed=seed)
    required = [each for each in parameters.values() if each.default is each.empty]
    if len(required) == 1 and required[0].kind in POSITIONAL:
        return make(seed)
    learner = make()
    for _ in range(seed):
        learner.act([dict.fromkeys(getattr(learner, "agents", ("first", "second")), "")])
    return learner
