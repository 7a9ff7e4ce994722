"""Base class of the families in which helpers and a main function form one program.

HumanEval, CoopHumanEval and MBPP differ only in their data. All agents write at the same time
without reading each other's answers; the joint program is run against the tests of the data set.

Agents:
    `aux` writes a helper function, `main` the function itself. `num_aux` from 2 on gives `aux_1`,
    `aux_2` ...; with `num_aux=0` `main` works alone.

Observation:
    The problem and the agent's part. From turn 2 on also the agent's last answer, the feedback and
    the request to revise it; with `communication="broadcast"` the answers of the teammates, too.

Action:
    One Python code block with the whole function. Imports, functions, classes and assignments of
    all answers form one program; other statements, and definitions that belong to another agent,
    are left out.

Reward:
    All agents receive the same reward. An episode is solved when every test of the data set passes.

    | mode | range | reward of a turn |
    |---|---|---|
    | `grounded` | 0 to 1 | 0.1 format + 0.3 tests + 0.6 cooperation; alone 0.1 + 0.9 tests |
    | `paper` | 0 to 4 | definitions 1, syntax 0.5, tests 1, use of the helper 1.5; alone 0 to 2.1 |
    | `attempts` | -0.5 to 2 | tests, +1 if all pass, -0.5 if there is an error |

    See `mlrl_envs.rewards.coding.functions`.

Reads:
    The results of the program in the assertions that agents were not shown, and of changed programs
    that lack the work of one agent.

Cannot read:
    The code itself: style and speed within the time limits. A main function that repeats the work
    of its helper and compares the two by other means than `==`, and a whole answer in an encoding
    that takes work to undo, pass for cooperation.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeVar

from mlrl_envs.envs.family import Family
from mlrl_envs.envs.options import DataConfig
from mlrl_envs.errors import InvalidArgumentError
from mlrl_envs.rewards.coding.functions import score_attempts, score_grounded, score_paper
from mlrl_envs.tasks import CodeTask
from mlrl_envs.types import AgentID, Attempt, ProgramRunner, Score

__all__ = ["MAIN", "CodeConfig", "CodeFamily", "helper_names"]

MAIN = "main"
MAX_HELPERS = 3
_SCORES = {"grounded": score_grounded, "paper": score_paper, "attempts": score_attempts}

_PROBLEM = """Python problem:

```python
{prompt}
```
"""
_AUX = """You are {name}, one of {count} programmers who solve this problem together, at the same \
time and without talking. A teammate, main, writes `{entry_point}` and may call your helper.

Your part: write a helper function named `{name}`. It takes the same parameters as \
`{entry_point}`, does a real share of the work, and returns something useful to main. Do not \
write `{entry_point}` yourself.

Answer with one ```python block that holds the whole function `{name}` and nothing else."""
_MAIN = """You are main, one of {count} programmers who solve this problem together, at the same \
time and without talking. {helpers}

Your part: write the function `{entry_point}`. You may call {calls} and should build on what comes \
back, doing part of the work yourself. Do not define {names} yourself.

Answer with one ```python block that holds the whole function `{entry_point}` and nothing else."""
_ONE_HELPER = (
    "A teammate writes a helper function `aux`, which takes the same parameters as "
    "`{entry_point}` and returns something useful."
)
_HELPERS = (
    "Teammates write the helper functions {names}, which take the same parameters as "
    "`{entry_point}` and return something useful."
)
_MAIN_ALONE = """Your part: write the function `{entry_point}`.

Answer with one ```python block that holds the whole function `{entry_point}` and nothing else."""


@dataclass(frozen=True)
class CodeConfig(DataConfig):
    """Options of writing functions.

    Attributes:
        reward: `"grounded"`, `"paper"`, or `"attempts"`, the formula of a published single-agent
            coder; see `mlrl_envs.rewards.coding.functions`.
        max_turns: Maximum number of joint actions in an episode, at least 1.
        num_aux: Number of helpers beside the main function, 0 to 3; with 0 one agent works alone.
    """

    REWARDS: ClassVar[tuple[str, ...]] = tuple(_SCORES)

    max_turns: int = 2
    num_aux: int = 1

    def __post_init__(self) -> None:
        """Check types and ranges.

        Raises:
            InvalidArgumentError: If a value has the wrong type or is outside its range.
        """
        super().__post_init__()
        if self.num_aux not in range(MAX_HELPERS + 1) or isinstance(self.num_aux, bool):
            raise InvalidArgumentError(f"num_aux must be 0 to {MAX_HELPERS}, got {self.num_aux!r}")


CodeConfigT = TypeVar("CodeConfigT", bound=CodeConfig)


@dataclass(frozen=True)
class CodeFamily(Family[CodeConfigT, CodeTask]):
    """Functions that helpers and a main agent write together."""

    @property
    def agents(self) -> tuple[AgentID, ...]:
        """The helpers, then `main`."""
        return (*helper_names(self.config.num_aux), MAIN)

    @property
    def reward_range(self) -> tuple[float, float]:
        """(0, 1) `grounded`; (0, 4) `paper`, (0, 2.1) for one agent; (-0.5, 2) `attempts`."""
        paper = (0.0, 4.0 if self.config.num_aux else 2.1)
        return {"grounded": (0.0, 1.0), "paper": paper, "attempts": (-0.5, 2.0)}[self.config.reward]

    def prompt(self, task: CodeTask, agent: AgentID) -> str:
        """Return the problem and the agent's part."""
        part = self._main_role(task) if agent == MAIN else self._helper_role(task, agent)
        return _PROBLEM.format(prompt=task.prompt.strip("\n")) + "\n" + part

    def score(self, attempts: Sequence[Attempt[CodeTask]], sandbox: ProgramRunner) -> list[Score]:
        """Assemble, run and score attempts as one batch."""
        functions = [self._functions(attempt.task) for attempt in attempts]
        return _SCORES[self.config.reward](attempts, functions, sandbox)

    def reference(self, task: CodeTask) -> Mapping[AgentID, str] | None:
        """Return the solution of the data set for `main`, and helpers without effect on it."""
        if task.solution is None:
            return None
        helpers = {
            name: f"```python\ndef {name}(*args):\n    return list(args)\n```"
            for name in helper_names(self.config.num_aux)
        }
        return {**helpers, MAIN: f"```python\n{task.solution}\n```"}

    def _functions(self, task: CodeTask) -> dict[AgentID, str]:
        helpers = {name: name for name in helper_names(self.config.num_aux)}
        return {**helpers, MAIN: task.entry_point}

    def _helper_role(self, task: CodeTask, agent: AgentID) -> str:
        return _AUX.format(name=agent, count=len(self.agents), entry_point=task.entry_point)

    def _main_role(self, task: CodeTask) -> str:
        helpers = helper_names(self.config.num_aux)
        if not helpers:
            return _MAIN_ALONE.format(entry_point=task.entry_point)
        names = " and ".join(f"`{name}`" for name in helpers)
        teammates = _ONE_HELPER if len(helpers) == 1 else _HELPERS
        return _MAIN.format(
            count=len(self.agents),
            helpers=teammates.format(entry_point=task.entry_point, names=names),
            entry_point=task.entry_point,
            calls=" and ".join(f"`{name}(...)`" for name in helpers),
            names=names,
        )


def helper_names(num_aux: int) -> tuple[str, ...]:
    """Return the names of the helpers: `aux` for one, `aux_1` ... `aux_k` for several."""
    return ("aux",) if num_aux == 1 else tuple(f"aux_{n}" for n in range(1, num_aux + 1))
