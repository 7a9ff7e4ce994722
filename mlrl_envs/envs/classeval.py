"""ClassEval for several programmers: each completes some methods of one class.

All read the whole skeleton and answer at once, blind to each other, with their own methods only;
these are spliced into the skeleton, which is run against the data set's tests. With `num_coders=1`
one programmer completes the whole class.

Agents: `coder_1` ... `coder_N`; two by default.
Reward: grounded in (0, 1): tests that the skeleton fails, all methods delivered, no overlap;
    paper in (0, 6). See `mlrl_envs.rewards.coding.classes`.
Data: ClassEval, 100 rows, 84 of them certified, MIT. X. Du et al., "ClassEval: A Manually-Crafted
    Benchmark for Evaluating LLMs on Class-level Code Generation", arXiv:2308.01861.

Version history:
    v0: first version.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mlrl_envs.config import DataConfig, check_choice
from mlrl_envs.datasets.classeval import load_classeval
from mlrl_envs.envs.history import with_history
from mlrl_envs.errors import InvalidArgumentError
from mlrl_envs.feedback import get_feedback
from mlrl_envs.programs.assignment import ASSIGNMENTS, assign
from mlrl_envs.rewards.coding.classes import score_grounded, score_paper
from mlrl_envs.shell.env import TextParallelEnv, build_env
from mlrl_envs.tasks import ClassTask
from mlrl_envs.types import AgentID, Attempt, ProgramRunner, Score, Turn

__all__ = ["ENV_ID", "ClassEvalConfig", "ClassEvalFamily", "parallel_env"]

ENV_ID = "mlrl/classeval-v0"
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
functions go inside your methods: whatever stands beside them is left out."""
_IDLE = """There is no method left for you in this class. Do not write any: answer with nothing."""


@dataclass(frozen=True)
class ClassEvalConfig(DataConfig):
    """Options of class completion.

    Attributes:
        max_turns: Joint actions an episode may have, at least 1.
        num_coders: Programmers, 1 to 5.
        assignment: Who writes which methods: `"balanced"` (nobody idle where there are enough
            methods, loads even by size) or `"by_parameter_count"` (published: methods without
            parameters to the first, all others to the second).
    """

    max_turns: int = 2
    num_coders: int = 2
    assignment: str = "balanced"

    def __post_init__(self) -> None:
        """Check ranges.

        Raises:
            InvalidArgumentError: If a value is outside its range.
        """
        super().__post_init__()
        number = self.num_coders
        if isinstance(number, bool) or number not in range(1, MAX_CODERS + 1):
            raise InvalidArgumentError(f"num_coders must be 1 to {MAX_CODERS}, got {number!r}")
        check_choice("assignment", self.assignment, tuple(ASSIGNMENTS))
        get_feedback(self.feedback)


@dataclass(frozen=True)
class ClassEvalFamily:
    """Classes to complete, their methods shared out among coders.

    Attributes:
        config: Options.
        tasks: Every task of the split.
    """

    config: ClassEvalConfig
    tasks: tuple[ClassTask, ...]

    @property
    def agents(self) -> tuple[AgentID, ...]:
        """`coder_1` ... `coder_N`."""
        return tuple(f"coder_{number}" for number in range(1, self.config.num_coders + 1))

    @property
    def max_turns(self) -> int:
        """Joint actions an episode may have."""
        return self.config.max_turns

    @property
    def reward_range(self) -> tuple[float, float]:
        """(0, 1) grounded; (0, 6) by the published formula."""
        return 0.0, 1.0 if self.config.reward == "grounded" else 6.0

    def observe(self, task: ClassTask, turns: Sequence[Turn], agent: AgentID) -> str:
        """Return the class and the agent's part in it; from turn 2 on also what came of it."""
        shares = self.assignment(task)
        first = _CLASS.format(skeleton=task.skeleton.strip("\n")) + "\n"
        if len(shares) > 1:
            first += _TEAM.format(
                agent=agent, count=len(shares), others=_others_part(shares, agent)
            )
        own = shares[agent]
        first += _PART.format(names=_quoted(own)) if own else _IDLE
        return with_history(first, self.config, task, turns, agent)

    def score(self, attempts: Sequence[Attempt[ClassTask]], sandbox: ProgramRunner) -> list[Score]:
        """Merge, run and score attempts as one batch."""
        owners = [self.assignment(attempt.task) for attempt in attempts]
        score = score_grounded if self.config.reward == "grounded" else score_paper
        return score(attempts, owners, sandbox)

    def reference(self, task: ClassTask) -> Mapping[AgentID, str]:
        """Return each coder's methods as the data set's solution has them."""
        code = {method.name: method.reference for method in task.methods}
        return {
            agent: "```python\n" + "\n\n".join(code[name] for name in names) + "\n```"
            for agent, names in self.assignment(task).items()
        }

    def assignment(self, task: ClassTask) -> dict[AgentID, tuple[str, ...]]:
        """Return the methods of each coder, in the order of the class."""
        return assign(self.config.assignment, task.methods, self.config.num_coders)


def parallel_env(**options: Any) -> TextParallelEnv:  # noqa: ANN401  checked against the config
    """Build the environment; options are those of `ClassEvalConfig`, and of the shell."""
    return build_env(ENV_ID, ClassEvalConfig, _family, options)


def _family(config: ClassEvalConfig) -> ClassEvalFamily:
    return ClassEvalFamily(config, load_classeval(config.split, config.path))


def _others_part(shares: Mapping[AgentID, Sequence[str]], agent: AgentID) -> str:
    parts = [
        f"{other} writes {_quoted(names) if names else 'nothing'}"
        for other, names in shares.items()
        if other != agent
    ]
    return "; ".join(parts) + "."


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
