"""Math problems with one number as the answer, for a solver and a verifier or for voting solvers.

All agents read the problem and write at the same time without reading each other's answers. In the
first turn solver and verifier both solve the whole problem; over several turns each learns whether
its own number is right and whether the two agree.

Agents:
    `solver` and `verifier`; with `num_solvers` from 2 on `solver_1` ... `solver_N`, whose most
    frequent number is the answer of the team.

Observation:
    The problem and the agent's part. From turn 2 on also the agent's last answer, the feedback and
    the request to revise it; with `communication="broadcast"` the answers of the others, too.

Action:
    The solution, ending with the line `Answer: <number>`.

Reward:
    All agents receive the same reward. An episode is solved when solver and verifier both give the
    right number, or when the vote is right.

    | mode | range | reward of a turn |
    |---|---|---|
    | `grounded` | 0 to 1 | 0.6 solver + 0.4 verifier, or 0.6 vote + 0.4 answers |
    | `paper` | -0.3 to 1 | right answer 1, no answer -0.3; +0.2 steps with `require_steps` |

    See `mlrl_envs.rewards.math.score`.

Reads:
    The number that each answer gives; with `require_steps` also the numbers of its working.

Cannot read:
    The words of a working, and where a right number comes from if no steps are required.

Data:
    With `source="procedural"` problems are generated from a seed (arithmetic, algebra, word
    problems, several steps, inequalities; three levels) and no data set is needed. With
    `source="gsm8k"` they are the 8792 rows of GSM8K, MIT. K. Cobbe et al., "Training Verifiers to
    Solve Math Word Problems", arXiv:2110.14168. The reference answer is the solution of the data,
    for every agent.

Version history:
    v2: No generated `eval` problem has the same calculations as one of `train`. Replaces v1.
    v1: Working is read by its numbers; a contradiction is no answer. Replaces v0.

Example:
    env = mlrl_envs.make("mlrl/math-v2", num_solvers=3)
    observations, infos = env.reset(seed=0)
    observations, rewards, *_ = env.step(env.reference_actions())
    assert rewards == {"solver_1": 1.0, "solver_2": 1.0, "solver_3": 1.0}
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from mlrl_envs.config import check_choice, check_int, checked_some
from mlrl_envs.datasets.gsm8k import load_gsm8k
from mlrl_envs.datasets.math import load_problems
from mlrl_envs.datasets.math_problems import DEFAULT_TOPICS, LEVELS, TOPICS
from mlrl_envs.envs.family import Family
from mlrl_envs.envs.options import DataConfig
from mlrl_envs.errors import InvalidArgumentError
from mlrl_envs.rewards.math.score import MathRules, score_grounded, score_paper
from mlrl_envs.tasks import MathTask
from mlrl_envs.types import AgentID, Attempt, ProgramRunner, Score

__all__ = ["SOLVER", "VERIFIER", "MathConfig", "MathFamily", "parallel_env"]

SOLVER, VERIFIER = "solver", "verifier"
MAX_SOLVERS = 9

# Prompts contain no digits: every number in an observation comes from the problem or an agent.
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
    """Options of math problems.

    Attributes:
        max_turns: Maximum number of joint actions in an episode, at least 1.
        source: `"procedural"` for generated problems, `"gsm8k"` for the data set.
        num_solvers: 1 for a solver and a verifier, 2 to 9 for solvers who vote.
        require_steps: Whether agents are asked, and rewarded, for the steps of the calculation.
        topics: Topics of generated problems: some of `arithmetic`, `algebra`, `word`, `multistep`,
            which are the default, and `inequality`.
        levels: Difficulties of generated problems: some of 1, 2, 3.
        problem_seed: Seed of generated problems, at least 0.
        data_path: A file with the rows of GSM8K; None searches the default locations.
    """

    max_turns: int = 2
    source: str = "procedural"
    num_solvers: int = 1
    require_steps: bool = False
    topics: Sequence[str] = DEFAULT_TOPICS
    levels: Sequence[int] = LEVELS
    problem_seed: int = 0

    def __post_init__(self) -> None:
        """Check types and ranges.

        Raises:
            InvalidArgumentError: If a value has the wrong type or is outside its range.
        """
        super().__post_init__()
        check_choice("source", self.source, ("procedural", "gsm8k"))
        check_int("num_solvers", self.num_solvers, 1, MAX_SOLVERS)
        check_int("problem_seed", self.problem_seed, 0, 2**63)
        if not isinstance(self.require_steps, bool):
            raise InvalidArgumentError(f"require_steps must be a bool, got {self.require_steps!r}")
        object.__setattr__(self, "topics", checked_some("topics", self.topics, tuple(TOPICS)))
        object.__setattr__(self, "levels", checked_some("levels", self.levels, LEVELS))
        if self.data_path is not None and self.source != "gsm8k":
            raise InvalidArgumentError("data_path holds rows of GSM8K: pass source='gsm8k' too")


@dataclass(frozen=True)
class MathFamily(Family[MathConfig, MathTask]):
    """Problems with one number as the answer."""

    env_id: ClassVar[str] = "mlrl/math-v2"
    config_type: ClassVar[type[MathConfig]] = MathConfig

    @classmethod
    def load_tasks(cls, config: MathConfig) -> tuple[MathTask, ...]:
        """Return the problems of the split."""
        if config.source == "gsm8k":
            return load_gsm8k(config.split, config.path)
        return load_problems(
            config.split,
            seed=config.problem_seed,
            topics=tuple(config.topics),
            levels=tuple(config.levels),
        )

    @property
    def agents(self) -> tuple[AgentID, ...]:
        """`solver` and `verifier`, or the numbered solvers."""
        if self.config.num_solvers == 1:
            return (SOLVER, VERIFIER)
        return tuple(f"{SOLVER}_{n}" for n in range(1, self.config.num_solvers + 1))

    @property
    def reward_range(self) -> tuple[float, float]:
        """(0, 1) for `grounded`; (-0.3, 1) for `paper`, (-0.3, 1.2) with steps."""
        if self.config.reward == "grounded":
            return 0.0, 1.0
        return -0.3, 1.2 if self.config.require_steps else 1.0

    def prompt(self, task: MathTask, agent: AgentID) -> str:
        """Return the problem and the agent's part."""
        part = _PARTS.get(agent, _PARTS[""]).format(agent=agent)
        form = _FORM.format(steps=_STEPS if self.config.require_steps else _FREE)
        paragraphs = [f"Problem: {task.question}", f"{part} {form}"]
        if self.is_broadcast and self.max_turns > 1:
            paragraphs.append(_SHARED)
        return "\n\n".join(paragraphs)

    def score(self, attempts: Sequence[Attempt[MathTask]], sandbox: ProgramRunner) -> list[Score]:  # noqa: ARG002  runs no programs
        """Score each attempt by its numbers."""
        rules = MathRules(
            votes=self.config.num_solvers > 1,
            require_steps=self.config.require_steps,
            is_shared=self.is_broadcast,
        )
        score = score_grounded if self.config.reward == "grounded" else score_paper
        return [score(attempt, rules) for attempt in attempts]

    def reference(self, task: MathTask) -> Mapping[AgentID, str]:
        """Return the solution of the data, for every agent."""
        return dict.fromkeys(self.agents, f"{task.solution}\nAnswer: {task.answer}")


parallel_env = MathFamily.make_env
