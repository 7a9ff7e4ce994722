"""Results of a learner on the toys: gradient errors and returns, by toy and walk."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from mlrl_learners.errors import ConfigError
from mlrl_learners.figures.means import mean
from mlrl_learners.testing.learning import Gain, make_with_seed, train_on_toy
from mlrl_learners.testing.toys import TOYS, Toy
from mlrl_learners.types import AgentID, Branching, JointMode, Learner, RolloutConfig

__all__ = ["LEARNT_TOYS", "WALKS", "Effort", "ToyResult", "accepted_walks", "play_toys"]

WALKS: tuple[tuple[Branching, JointMode], ...] = (
    ("tree", "aligned"),
    ("tree", "cross"),
    ("chain", "aligned"),
    ("chain", "cross"),
)
LEARNT_TOYS = ("late_cost", "doors", "retry")
LEAST_SHARE = 0.1  # of the way from the first return to the best one


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is played.

    Attributes:
        updates: Updates of each learner on each toy, at least 1.
        seeds: Learners trained on each toy, at least 1.
        rollouts: Trees or chains of a gradient's mean; 0 measures none.
        group_size: Answers an agent gives to one prompt, at least 2.
    """

    updates: int = 40
    seeds: int = 3
    rollouts: int = 2000
    group_size: int = 4


@dataclass(frozen=True, slots=True)
class ToyResult:
    """What a learner did on one toy, walked in one way.

    Attributes:
        learner: Its name.
        toy: Name of the toy.
        optimum: Highest expected return of the toy.
        branching: `tree` or `chain`.
        joint_mode: `aligned` or `cross`.
        gains: Returns before and after, a seed each.
        gradient_error: Distance of its mean gradient from the direction of the exact one, 0 to 2;
            None where it cannot be measured.
        standard_error: Standard error of that.
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
        """What is wrong; empty where the return rose, or was the best from the start."""
        least = self.before + LEAST_SHARE * (self.optimum - self.before)
        if self.optimum - self.before < 0.05 or self.after >= least:
            return ""
        return (
            f"the return of {self.toy} ({self.branching}, {self.joint_mode}) does not rise: "
            f"{self.before:.2f} before, {self.after:.2f} after, best {self.optimum:.2f}"
        )

    def to_json(self) -> dict[str, Any]:
        """Return everything, as JSON values."""
        found = {**asdict(self), "before": self.before, "after": self.after}
        return {**found, "problem": self.problem}


def accepted_walks(
    make: Callable[..., Learner], agents: Sequence[AgentID], group_size: int
) -> list[RolloutConfig]:
    """Return the ways of walking that differ for these agents and that the learner accepts."""
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
    """Yield a result for each way of walking and each toy.

    Args:
        name: What the learner is called in the results.
        make: Makes a learner, see `mlrl_learners.testing.learning.make_with_seed`.
        agents: Whom it plays.
        walks: How rollouts are walked; by default in every way that the learner accepts.
        effort: How much is played.
    """
    effort = effort or Effort()
    if walks is None:
        walks = accepted_walks(make, agents, effort.group_size)
    for walk in walks:
        for toy in LEARNT_TOYS:
            yield _play(name, make, agents, TOYS[toy], walk, effort)


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
    """Return the error of the mean gradient and its standard error, where they can be measured."""
    if not hasattr(getattr(learner, "config", None), "turn_weights"):
        return None, None  # it does not estimate the gradient of a return
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
