"""A problem with one right number, for a solver and a verifier, or for solvers who vote.

All read the problem and answer at once, blind to each other. The verifier works the number out
on its own, by another way where it can, so that in a single turn both do the whole work and a slip
of either shows; over several turns each learns whether its own number is right and whether the two
agree, and with `communication="broadcast"` reads the other's working. `num_solvers` from 2 on gives
`solver_1`, `solver_2` ... instead, whose most frequent number is the team's.

Agents: `solver`, `verifier`; or `solver_1` ... `solver_N`. One reward for the team.
Reward: grounded in (0, 1): 0.6 solver + 0.4 verifier, or 0.6 vote + 0.4 answers; paper in
    (-0.3, 1), or (-0.3, 1.2) where steps are required. See `mlrl_envs.rewards.math.score`.
Data: by default made from a seed (arithmetic, algebra, word problems, several steps; three levels),
    which needs nothing; with `source="gsm8k"` the 8792 rows of GSM8K, MIT. K. Cobbe et al.,
    "Training Verifiers to Solve Math Word Problems", arXiv:2110.14168.

An episode is solved when solver and verifier both give the right number, or when the vote is right.

Version history:
    v0: first version.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mlrl_envs.config import DataConfig, check_choice
from mlrl_envs.datasets.gsm8k import load_gsm8k
from mlrl_envs.datasets.math import load_problems
from mlrl_envs.datasets.math_problems import LEVELS, TOPICS
from mlrl_envs.envs.history import with_history
from mlrl_envs.errors import InvalidArgumentError
from mlrl_envs.feedback import get_feedback
from mlrl_envs.rewards.math.score import MathRules, score_grounded, score_paper
from mlrl_envs.shell.env import TextParallelEnv, build_env
from mlrl_envs.tasks import MathTask
from mlrl_envs.types import AgentID, Attempt, ProgramRunner, Score, Turn

__all__ = ["ENV_ID", "SOLVER", "VERIFIER", "MathConfig", "MathFamily", "parallel_env"]

ENV_ID = "mlrl/math-v0"
SOLVER, VERIFIER = "solver", "verifier"
MAX_SOLVERS = 9

# No digits in any of these: a number that an agent reads is the problem's, or an agent's own.
_PARTS = {
    SOLVER: "You are solver. A teammate, verifier, checks the result by solving the problem too, "
    "at the same time and without talking.\n\nYour part: solve the problem.",
    VERIFIER: "You are verifier. A teammate, solver, solves the problem at the same time and "
    "without talking.\n\nYour part: work out the result yourself, so that a slip of the solver "
    "shows. Go another way than the first that comes to mind, such as backwards or in another "
    "order.",
    "": "You are {agent}, one of several solvers of this problem, who work at the same time and "
    "without talking. The team's answer is the one that most of you give.\n\nYour part: solve the "
    "problem.",
}
_SHARED = (
    "Later you will see what your teammates wrote. Check it: a number that you take over without "
    "calculations of your own earns nothing."
)
_FORM = (
    "{steps} and end with one line of this form, with one number and nothing else:\n"
    "Answer: <number>"
)
_STEPS = "Write down every step as a calculation with an equals sign,"
_FREE = "Think step by step,"


@dataclass(frozen=True)
class MathConfig(DataConfig):
    """Options of the math family.

    Attributes:
        max_turns: Joint actions an episode may have, at least 1.
        source: `"procedural"` for made problems, `"gsm8k"` for the data set.
        num_solvers: 1 for a solver and a verifier; 2 to 9 for solvers who vote.
        require_steps: Whether working is asked for and paid.
        topics: Kinds of made problems: some of `arithmetic`, `algebra`, `word`, `multistep`.
        levels: Difficulties of made problems: some of 1, 2, 3.
        problem_seed: At least 0; chooses another series of made problems.
        data_path: A file with the rows of GSM8K; None looks in the usual places.
    """

    max_turns: int = 2
    source: str = "procedural"
    num_solvers: int = 1
    require_steps: bool = False
    topics: Sequence[str] = tuple(TOPICS)
    levels: Sequence[int] = LEVELS
    problem_seed: int = 0

    def __post_init__(self) -> None:
        """Check ranges.

        Raises:
            InvalidArgumentError: If a value is outside its range.
        """
        super().__post_init__()
        check_choice("source", self.source, ("procedural", "gsm8k"))
        _check_int("num_solvers", self.num_solvers, 1, MAX_SOLVERS)
        _check_int("problem_seed", self.problem_seed, 0, 2**63)
        if not isinstance(self.require_steps, bool):
            raise InvalidArgumentError(f"require_steps must be a bool, got {self.require_steps!r}")
        object.__setattr__(self, "topics", _checked_some("topics", self.topics, tuple(TOPICS)))
        object.__setattr__(self, "levels", _checked_some("levels", self.levels, LEVELS))
        if self.data_path is not None and self.source != "gsm8k":
            raise InvalidArgumentError("data_path holds rows of GSM8K: pass source='gsm8k' too")
        get_feedback(self.feedback)


@dataclass(frozen=True)
class MathFamily:
    """Problems with one right number.

    Attributes:
        config: Options.
        tasks: Every problem of the split.
    """

    config: MathConfig
    tasks: tuple[MathTask, ...]

    @property
    def agents(self) -> tuple[AgentID, ...]:
        """`solver` and `verifier`, or the numbered solvers."""
        if self.config.num_solvers == 1:
            return (SOLVER, VERIFIER)
        return tuple(f"{SOLVER}_{n}" for n in range(1, self.config.num_solvers + 1))

    @property
    def max_turns(self) -> int:
        """Joint actions an episode may have."""
        return self.config.max_turns

    @property
    def reward_range(self) -> tuple[float, float]:
        """(0, 1) grounded; (-0.3, 1) by the published formula, (-0.3, 1.2) with steps."""
        if self.config.reward == "grounded":
            return 0.0, 1.0
        return -0.3, 1.2 if self.config.require_steps else 1.0

    def observe(self, task: MathTask, turns: Sequence[Turn], agent: AgentID) -> str:
        """Return the problem and the agent's part in it; from turn 2 on also what came of it."""
        part = _PARTS.get(agent, _PARTS[""]).format(agent=agent)
        form = _FORM.format(steps=_STEPS if self.config.require_steps else _FREE)
        paragraphs = [f"Problem: {task.question}", f"{part} {form}"]
        if self.config.communication == "broadcast" and self.config.max_turns > 1:
            paragraphs.append(_SHARED)
        return with_history("\n\n".join(paragraphs), self.config, task, turns, agent)

    def score(self, attempts: Sequence[Attempt[MathTask]], sandbox: ProgramRunner) -> list[Score]:  # noqa: ARG002  runs no programs
        """Score attempts one by one; nothing is executed."""
        rules = MathRules(
            votes=self.config.num_solvers > 1,
            require_steps=self.config.require_steps,
            is_shared=self.config.communication == "broadcast",
        )
        score = score_grounded if self.config.reward == "grounded" else score_paper
        return [score(attempt, rules) for attempt in attempts]

    def reference(self, task: MathTask) -> Mapping[AgentID, str]:
        """Return the data's own solution, for every agent."""
        return dict.fromkeys(self.agents, f"{task.solution}\nAnswer: {task.answer}")


def parallel_env(**options: Any) -> TextParallelEnv:  # noqa: ANN401  checked against the config
    """Build the environment; options are those of `MathConfig`, and of the shell."""
    return build_env(ENV_ID, MathConfig, _family, options)


def _family(config: MathConfig) -> MathFamily:
    if config.source == "gsm8k":
        return MathFamily(config, load_gsm8k(config.split, config.path))
    tasks = load_problems(
        config.split,
        seed=config.problem_seed,
        topics=tuple(config.topics),
        levels=tuple(config.levels),
    )
    return MathFamily(config, tasks)


def _check_int(name: str, value: object, low: int, high: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise InvalidArgumentError(f"{name} must be an int from {low} to {high}, got {value!r}")


def _checked_some(name: str, chosen: object, known: Sequence[object]) -> tuple[object, ...]:
    if not isinstance(chosen, list | tuple) or not chosen:
        raise InvalidArgumentError(f"{name} must be a list of some of {known}, got {chosen!r}")
    for value in chosen:
        if value not in known or isinstance(value, bool):
            raise InvalidArgumentError(f"{name} must be some of {known}, got {value!r}")
    return tuple(chosen)
