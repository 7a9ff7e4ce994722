"""Results of a learner on the toys: gradient errors and returns by rollout configuration."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from mlrl_learners.errors import ConfigError
from mlrl_learners.figures.means import mean
from mlrl_learners.testing.toy_training import Gain, make_with_seed, train_on_toy
from mlrl_learners.testing.toys import TOYS, Toy
from mlrl_learners.types import AgentID, Branching, JointMode, Learner, RolloutConfig

__all__ = ["LEARNT_TOYS", "WALKS", "Effort", "ToyResult", "accepted_walks", "play_toys"]

WALKS: tuple[tuple[Branching, JointMode], ...] = (
    ("tree", "aligned"),
    ("tree", "cross"),
    ("chain", "aligned"),
    ("chain", "cross"),
)
LEARNT_TOYS = ("late_cost", "doors", "retry", "relay")
MAX_FULL_TURNS = 2  # trees of four turns and four answers have 85 nodes
LEAST_SHARE = 0.1  # of the distance from the initial return to the optimum


@dataclass(frozen=True, slots=True)
class Effort:
    """Amount of training and measurement on the toys.

    Attributes:
        updates: Number of updates per learner and toy, at least 1.
        seeds: Number of learners trained on each toy, at least 1.
        rollouts: Number of rollouts for the mean gradient; 0 skips its measurement.
        group_size: Number of answers per agent and prompt, at least 2; 2 in trees of `relay`.
    """

    updates: int = 40
    seeds: int = 3
    rollouts: int = 2000
    group_size: int = 4


@dataclass(frozen=True, slots=True)
class ToyResult:
    """Result of a learner on one toy with one rollout configuration.

    Attributes:
        learner: Name of the learner.
        toy: Name of the toy.
        optimum: Highest expected return of the toy.
        branching: `tree` or `chain`.
        joint_mode: `aligned` or `cross`.
        gains: Returns before and after training, one per seed.
        gradient_error: Relative distance of the mean gradient from the exact one, in [0, 2]; None
            if it cannot be measured.
        standard_error: Standard error of `gradient_error`.
    """

    learner: str
    toy: str
    optimum: float
    branching: str
    joint_mode: str
    gains: tuple[Gain, ...]
    gradient_error: float | None = None
    standard_error: float | None = None

    @property
    def before(self) -> float:
        """Mean return before the first update."""
        return mean([gain.before for gain in self.gains])

    @property
    def after(self) -> float:
        """Mean return after the last update."""
        return mean([gain.after for gain in self.gains])

    @property
    def problem(self) -> str:
        """Description of a return that did not rise; empty if it rose or was optimal initially."""
        least = self.before + LEAST_SHARE * (self.optimum - self.before)
        if self.optimum - self.before < 0.05 or self.after >= least:
            return ""
        return (
            f"the return of {self.toy} ({self.branching}, {self.joint_mode}) does not rise: "
            f"{self.before:.2f} before, {self.after:.2f} after, best {self.optimum:.2f}"
        )

    def to_json(self) -> dict[str, Any]:
        """Return all fields and properties as JSON values."""
        found = {**asdict(self), "before": self.before, "after": self.after}
        return {**found, "problem": self.problem}


def accepted_walks(
    make: Callable[..., Learner], agents: Sequence[AgentID], group_size: int
) -> list[RolloutConfig]:
    """Return the distinct rollout configurations that the learner accepts.

    Args:
        make: Factory of the learner.
        agents: Its agents; for one agent, `aligned` and `cross` are the same.
        group_size: Number of answers per agent and prompt.
    """
    modes = ("aligned", "cross") if len(agents) > 1 else ("aligned",)
    walks = [RolloutConfig(group_size, mode, branching) for branching, mode in WALKS]
    learner = make_with_seed(make, 0)
    return [each for each in walks if each.joint_mode in modes and not _refuses(learner, each)]


def play_toys(
    name: str,
    make: Callable[..., Learner],
    agents: Sequence[AgentID],
    *,
    walks: Sequence[RolloutConfig] | None = None,
    effort: Effort | None = None,
) -> Iterator[ToyResult]:
    """Yield a result for each rollout configuration and toy.

    A learner may refuse, with a `ConfigError`, rollouts of agents that take turns; they are left
    out.

    Args:
        name: Name of the learner in the results.
        make: Factory of the learner, see `mlrl_learners.testing.toy_training.make_with_seed`.
        agents: Agents of the learner.
        walks: Rollout configurations; by default all that the learner accepts.
        effort: Amount of training and measurement.
    """
    effort = effort or Effort()
    if walks is None:
        walks = accepted_walks(make, agents, effort.group_size)
    for walk in walks:
        for toy in LEARNT_TOYS:
            with contextlib.suppress(*_refusals(TOYS[toy])):
                yield _play(name, make, agents, TOYS[toy], _affordable(walk, TOYS[toy]), effort)


def _refusals(toy: Toy) -> tuple[type[Exception], ...]:
    """Return the errors with which a learner may refuse rollouts of agents that take turns."""
    return (ConfigError,) if toy.takes_turns else ()


def _affordable(walk: RolloutConfig, toy: Toy) -> RolloutConfig:
    """Return the configuration with two answers per prompt for trees of many turns."""
    if walk.branching == "tree" and toy.max_turns > MAX_FULL_TURNS:
        return replace(walk, num_samples=2)
    return walk


def _play(
    name: str,
    make: Callable[..., Learner],
    agents: Sequence[AgentID],
    toy: Toy,
    config: RolloutConfig,
    effort: Effort,
) -> ToyResult:
    error = standard_error = None
    if effort.rollouts:
        error, standard_error = _gradient(make_with_seed(make, 0), toy, config, effort.rollouts)
    gains = tuple(
        train_on_toy(
            toy,
            make_with_seed(make, seed),
            agents,
            walk=config,
            updates=effort.updates,
            seed=seed,
        )
        for seed in range(effort.seeds)
    )
    return ToyResult(
        learner=name,
        toy=toy.name,
        optimum=toy.optimum,
        branching=config.branching,
        joint_mode=config.joint_mode,
        gains=gains,
        gradient_error=error,
        standard_error=standard_error,
    )


def _gradient(
    learner: Learner, toy: Toy, config: RolloutConfig, rollouts: int
) -> tuple[float | None, float | None]:
    """Return the error of the mean gradient and its standard error, or None for both."""
    if not hasattr(getattr(learner, "config", None), "credit"):
        return None, None  # not a policy-gradient method
    from mlrl_learners.testing.gradients import measure_slopes

    try:
        slopes = measure_slopes(toy, learner, walk=config, num_rollouts=rollouts)  # type: ignore[arg-type]
    except ConfigError:  # longer answers, another temperature
        return None, None
    return slopes.error, slopes.standard_error


def _refuses(learner: Learner, config: RolloutConfig) -> bool:
    check = getattr(learner, "check_rollout", None)
    if check is None:
        return False
    try:
        check(config)
    except ConfigError:
        return True
    return False
