"""Classes of ClassEval for several programmers, each of whom completes some of the methods.

All agents read the whole skeleton and write at the same time without reading each other's answers.
Their methods are inserted into the skeleton, which is run against the tests of the data set.

Agents:
    `coder_1` ... `coder_N`, two by default; with `num_coders=1` one programmer completes the whole
    class. `assignment` decides which methods an agent writes.

Observation:
    The skeleton of the class, the methods of the teammates and the agent's own methods. From turn 2
    on also the agent's last answer, the feedback and the request to revise it; with
    `communication="broadcast"` the answers of the teammates, too.

Action:
    One Python code block with the agent's methods, in the class or alone. Imports, helper functions
    and helper methods may stand beside them; other statements and methods of other agents are left
    out.

Reward:
    All agents receive the same reward. An episode is solved when every test of the data set passes
    and every method is delivered.

    | mode | range | reward of a turn |
    |---|---|---|
    | `grounded` | 0 to 1 | tests · (0.9 + 0.1 methods delivered) - 0.5 overlap |
    | `paper` | 0 to 6 | 2 methods that parse + 4 tests - methods written more than once |

    See `mlrl_envs.rewards.coding.classes`.

Reads:
    The results of the class in the test methods of the data set, and which methods are delivered,
    by whom, and whether they are stubs.

Cannot read:
    Style and speed within the time limits. A body that hides that it is constant earns the tests
    that expect this constant.

Data:
    ClassEval, 100 rows, 84 of them certified, MIT. X. Du et al., "ClassEval: A Manually-Crafted
    Benchmark for Evaluating LLMs on Class-level Code Generation", arXiv:2308.01861. The reference
    answers are the data set's methods; see `mlrl_envs.datasets.classeval`.

Version history:
    v1: Helpers beside the methods are used; a repeated skeleton costs nothing. Replaces v0.

Example:
    env = mlrl_envs.make("mlrl/classeval-v1", split="sample", num_coders=3)
    observations, infos = env.reset(seed=0)
    observations, rewards, terminations, *_ = env.step(env.reference_actions())
    assert all(terminations.values())  # every test passes
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from mlrl_envs.config import check_choice
from mlrl_envs.datasets.classeval import load_classeval
from mlrl_envs.envs.family import Family
from mlrl_envs.envs.options import DataConfig
from mlrl_envs.errors import InvalidArgumentError
from mlrl_envs.programs.assignment import ASSIGNMENTS, assign
from mlrl_envs.rewards.coding.classes import score_grounded, score_paper
from mlrl_envs.tasks import ClassTask
from mlrl_envs.types import AgentID, Attempt, ProgramRunner, Score

__all__ = ["ClassEvalConfig", "ClassEvalFamily", "parallel_env"]

MAX_CODERS = 5

_CLASS = """Python class to complete:

```python
{skeleton}
```
"""
_TEAM = """You are {agent}, one of {count} programmers who complete this class together, at the \
same time and without talking. {others}

"""
_PART = """Your methods: {names}. Write each of them as a whole `def`, with its signature as it \
stands and a body that does the work. You may call every method of the class; write no other.

Answer with one ```python block that holds your methods and nothing else. Imports and helper \
functions may stand beside them."""
_IDLE = """There is no method left for you in this class. Do not write any: answer with nothing."""


@dataclass(frozen=True)
class ClassEvalConfig(DataConfig):
    """Options of completing classes.

    Attributes:
        max_turns: Maximum number of joint actions in an episode, at least 1.
        num_coders: Number of programmers, 1 to 5.
        assignment: How methods are assigned: `"balanced"` (loads even by size, every coder has a
            method if there are enough) or `"by_parameter_count"` (published: methods without
            parameters to the first coder, all others to the second).
    """

    max_turns: int = 2
    num_coders: int = 2
    assignment: str = "balanced"

    def __post_init__(self) -> None:
        """Check types and ranges.

        Raises:
            InvalidArgumentError: If a value has the wrong type or is outside its range.
        """
        super().__post_init__()
        number = self.num_coders
        if isinstance(number, bool) or number not in range(1, MAX_CODERS + 1):
            raise InvalidArgumentError(f"num_coders must be 1 to {MAX_CODERS}, got {number!r}")
        check_choice("assignment", self.assignment, tuple(ASSIGNMENTS))


@dataclass(frozen=True)
class ClassEvalFamily(Family[ClassEvalConfig, ClassTask]):
    """Classes whose methods several coders complete."""

    env_id: ClassVar[str] = "mlrl/classeval-v1"
    config_type: ClassVar[type[ClassEvalConfig]] = ClassEvalConfig

    @classmethod
    def load_tasks(cls, config: ClassEvalConfig) -> tuple[ClassTask, ...]:
        """Return the classes of the split."""
        return load_classeval(config.split, config.path)

    @property
    def agents(self) -> tuple[AgentID, ...]:
        """`coder_1` ... `coder_N`."""
        return tuple(f"coder_{number}" for number in range(1, self.config.num_coders + 1))

    @property
    def reward_range(self) -> tuple[float, float]:
        """(0, 1) for `grounded`, (0, 6) for `paper`."""
        return 0.0, 1.0 if self.config.reward == "grounded" else 6.0

    def prompt(self, task: ClassTask, agent: AgentID) -> str:
        """Return the skeleton and the agent's part."""
        shares = self.assignment(task)
        text = _CLASS.format(skeleton=task.skeleton.strip("\n")) + "\n"
        if len(shares) > 1:
            text += _TEAM.format(agent=agent, count=len(shares), others=_others_part(shares, agent))
        own = shares[agent]
        return text + (_PART.format(names=_quoted(own)) if own else _IDLE)

    def score(self, attempts: Sequence[Attempt[ClassTask]], sandbox: ProgramRunner) -> list[Score]:
        """Merge, run and score attempts as one batch."""
        owners = [self.assignment(attempt.task) for attempt in attempts]
        score = score_grounded if self.config.reward == "grounded" else score_paper
        return score(attempts, owners, sandbox)

    def reference(self, task: ClassTask) -> Mapping[AgentID, str]:
        """Return each coder's methods as in the solution of the data set."""
        code = {method.name: method.reference for method in task.methods}
        return {
            agent: "```python\n" + "\n\n".join(code[name] for name in names) + "\n```"
            for agent, names in self.assignment(task).items()
        }

    def assignment(self, task: ClassTask) -> dict[AgentID, tuple[str, ...]]:
        """Return the methods of each coder, in the order of the class."""
        return assign(self.config.assignment, task.methods, self.config.num_coders)


parallel_env = ClassEvalFamily.make_env


def _others_part(shares: Mapping[AgentID, Sequence[str]], agent: AgentID) -> str:
    parts = [
        f"{other} writes {_quoted(names) if names else 'nothing'}"
        for other, names in shares.items()
        if other != agent
    ]
    return "; ".join(parts) + "."


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
