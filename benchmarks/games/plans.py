"""Types of training plans: the plan of a game, its methods, and the stages of a method.

A stage is an ordinary run of `mlrl train` from the weights with which the stage before it ended, so
that the reference of a KL term is the policy at the start of the stage. Several stages with a KL
term are regularised Nash dynamics (Perolat et al., arXiv:2002.08456, 2206.15378): each approaches
the equilibrium of the game with the penalty, and the references approach one of the game itself.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from benchmarks.games.model import ModelSize

__all__ = ["Measure", "Method", "Plan", "Stage"]

Measure = Literal["nash_conv", "perfect", "outcome", "score"]


@dataclass(frozen=True)
class Stage:
    """One run of a learner.

    Attributes:
        iterations: Number of updates.
        tasks: Rollouts per update.
        learner: Name of the learner.
        options: Options of the learner.
        rounds: How often the stage is repeated, each time from the last weights.
        env: Options of the environment in training only.
    """

    iterations: int
    tasks: int
    learner: str
    options: Mapping[str, Any]
    rounds: int = 1
    env: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Method:
    """A way to learn a game.

    Attributes:
        stages: Runs, one after the other.
        env: Options of the environment that differ from those of the plan, in training and in
            measurements.
        label: One line for tables.
        panel: Name of the part of the picture that shows the method.
    """

    stages: tuple[Stage, ...]
    label: str
    env: Mapping[str, Any] = field(default_factory=dict)
    panel: str = ""


@dataclass(frozen=True)
class Plan:
    """How a game is learnt and measured.

    Attributes:
        env_id: The environment.
        env: Its options.
        scripts: Scripts whose moves are imitated first, one drawn for each move.
        games: Number of games of these scripts, for each of `variants`.
        variants: Options of the environment in these games, besides `env`.
        sft: Number of updates of imitation.
        sft_options: Options of `sft` that differ from the usual ones.
        size: Size of the model.
        unread: Regular expressions of text that the model does not read.
        methods: Methods by name.
        measure: What is measured: NashConv; optimal play in all positions; the mean outcome of
            games; or the mean score of games.
        shown: The key of the measure that pictures show.
        goal: The value of this measure that is wanted, if there is one.
        points: Number of measurements in a stage.
        max_new_tokens: Longest answer, in tokens.
        references: Values of this measure that pictures and tables compare with, by name.
    """

    env_id: str
    methods: Mapping[str, Method]
    measure: Measure
    shown: str
    env: Mapping[str, Any] = field(default_factory=dict)
    scripts: tuple[str, ...] = ("random",)
    games: int = 1000
    variants: tuple[Mapping[str, Any], ...] = ({},)
    sft: int = 300
    sft_options: Mapping[str, Any] = field(default_factory=dict)
    size: ModelSize = field(default_factory=ModelSize)
    unread: tuple[str, ...] = ()
    goal: float | None = None
    points: int = 10
    max_new_tokens: int = 8
    references: Mapping[str, float] = field(default_factory=dict)
