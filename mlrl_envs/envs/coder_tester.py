"""A coder and a tester, in turns: one writes a function, the other tests that find its mistakes.

The coder begins. The tester reads the code and writes assertions; the coder reads them with their
results on its code, and revises it.

Agents:
    `coder` and `tester`. They take turns.

Observation:
    The problem, the last code and the last tests (own ones only with `communication="none"`), and
    results: whether the code loads, passes the examples of the problem and the written tests. Of
    the hidden tests only whether all pass is told, at the end.

Action:
    Coder: one Python code block with the whole function. Tester: a Python code block with at most
    `num_tests` assertions on literals, such as `assert f([1, 2]) == 3`; other statements are left
    out, and nothing of them is executed.

Reward:
    Every turn pays the agent that acted the gain over its best earlier quality; `reward="team"`
    pays both half of it. An episode is solved when the code passes all hidden tests and the tester
    has read it.

    | agent | range | quality |
    |---|---|---|
    | `coder` | 0 to 1 | 0.1 if the code loads + 0.9 hidden tests passed |
    | `tester` | 0 to 1 | right tests · (0.1 + 0.9 mutants killed) |

    Right tests: the share that the reference solution passes. Mutants: the reference with one
    operator swapped or one number raised, that fail hidden tests but not the examples. Only tests
    with arguments that no example has kill mutants.
    See `mlrl_envs.envs.coder_tester_score`.

Data:
    HumanEval or MBPP (`dataset`), see `mlrl_envs.datasets.humaneval` and `mlrl_envs.datasets.mbpp`,
    or `functions`, which are made from `task_seed` without a data set; see
    `mlrl_envs.datasets.functions`. The reference answer of the coder is the solution, that of the
    tester are hidden assertions on literals.

Version history:
    v1: Copies of the examples kill no mutant of any task. Replaces v0.

Example:
    env = mlrl_envs.make("mlrl/coder-tester-v1", split="sample")
    observations, infos = env.reset(seed=0)
    while env.agents:
        observations, rewards, terminations, *_ = env.step(env.reference_actions())
    assert all(terminations.values())  # every hidden test passes
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from mlrl_envs.config import check_choice, check_int
from mlrl_envs.datasets.humaneval import load_humaneval
from mlrl_envs.datasets.mbpp import load_mbpp
from mlrl_envs.envs.coder_tester_score import (
    CODER,
    TESTER,
    ScoreRules,
    hidden_literals,
    last_answer,
    score_coder_tester,
)
from mlrl_envs.envs.family import Family
from mlrl_envs.envs.history import OVER, quote
from mlrl_envs.envs.made_functions import MadeFunctions
from mlrl_envs.envs.options import DataConfig
from mlrl_envs.errors import InvalidArgumentError
from mlrl_envs.feedback import get_feedback
from mlrl_envs.tasks import CodeTask
from mlrl_envs.types import AgentID, Attempt, ProgramRunner, Score, Turn

__all__ = ["CoderTesterConfig", "CoderTesterFamily", "parallel_env"]

_PROBLEM = "Python problem:\n\n```python\n{prompt}\n```\n\n"
_CODER = (
    "You are the coder: write the function `{name}`. A tester writes tests for it.\n\n"
    "Answer with one ```python block that holds the whole function and nothing else."
)
_TESTER = (
    "You are the tester: a coder writes the function `{name}`; you write tests that find "
    "mistakes in such functions. A test that a right function fails costs you.\n\n"
    "Answer with one ```python block of at most {num_tests} lines such as "
    "`assert {name}(...) == ...`, with literal arguments and results."
)
_REVISE = {CODER: "Revise your code.", TESTER: "Write your tests."}
_WAIT = "Wait for your next turn."
DATASETS = ("humaneval", "mbpp", "functions")


@dataclass(frozen=True)
class CoderTesterConfig(MadeFunctions, DataConfig):
    """Options of a coder and a tester; `topics` to `num_tasks` are of the dataset `functions`.

    Attributes:
        reward: `"grounded"` pays each agent its own gain, `"team"` pays both half of it.
        max_turns: Number of turns of both agents together, at least 1.
        communication: `"broadcast"` shows agents the last answer of the other.
        dataset: `"humaneval"`, `"mbpp"`, or `"functions"` for functions made from a seed.
        num_tests: Number of assertions of the tester that count, 1 to 50.
        num_mutants: Number of mutants of the reference solution, 1 to 50.
    """

    REWARDS: ClassVar[tuple[str, ...]] = ("grounded", "team")

    max_turns: int = 4
    communication: str = "broadcast"
    dataset: str = "humaneval"
    num_tests: int = 5
    num_mutants: int = 8

    def __post_init__(self) -> None:
        """Check types and ranges.

        Raises:
            InvalidArgumentError: If a value has the wrong type or is outside its range.
        """
        super().__post_init__()
        check_choice("dataset", self.dataset, DATASETS)
        self.check_functions()
        check_int("num_tests", self.num_tests, 1, 50)
        check_int("num_mutants", self.num_mutants, 1, 50)
        self._check_unread()

    def _check_unread(self) -> None:
        """Check that no option has been set that the dataset does not read."""
        if self.dataset != "functions":
            for name in self.changed_functions():
                raise InvalidArgumentError(
                    f"{name} is of functions made from a seed: pass dataset='functions', or leave "
                    f"{name} out"
                )
        elif self.data_path is not None:
            raise InvalidArgumentError(
                "functions are made from task_seed and have no data_path: leave it out"
            )


@dataclass(frozen=True)
class CoderTesterFamily(Family[CoderTesterConfig, CodeTask]):
    """Functions that a coder writes and a tester tests."""

    env_id: ClassVar[str] = "mlrl/coder-tester-v1"
    config_type: ClassVar[type[CoderTesterConfig]] = CoderTesterConfig
    feedback_heading: ClassVar[str] = "Results of the last code"

    @classmethod
    def load_tasks(cls, config: CoderTesterConfig) -> tuple[CodeTask, ...]:
        """Return the problems of the split that have a solution."""
        if config.dataset == "functions":
            return config.make_functions(config.split)
        load = load_humaneval if config.dataset == "humaneval" else load_mbpp
        return tuple(task for task in load(config.split, config.path) if task.solution)

    @property
    def agents(self) -> tuple[AgentID, ...]:
        """`coder` and `tester`."""
        return CODER, TESTER

    @property
    def reward_range(self) -> tuple[float, float]:
        """(0, 1)."""
        return 0.0, 1.0

    def acting(self, task: CodeTask, turns: Sequence[Turn]) -> tuple[AgentID, ...]:  # noqa: ARG002  all alike
        """Return the agent whose turn it is."""
        return (self.agents[len(turns) % 2],)

    def prompt(self, task: CodeTask, agent: AgentID) -> str:
        """Return the problem and the agent's part."""
        part = (_CODER if agent == CODER else _TESTER).format(
            name=task.entry_point, num_tests=self.config.num_tests
        )
        return _PROBLEM.format(prompt=task.prompt.strip("\n")) + part

    def observe(self, task: CodeTask, turns: Sequence[Turn], agent: AgentID) -> str:
        """Return the prompt, the last answers, their results, and a request if the agent acts."""
        paragraphs = [self.prompt(task, agent)]
        if turns:
            paragraphs += self.history(turns, agent)
            feedback = get_feedback(self.config.feedback)(task, turns, agent)
            if feedback:
                paragraphs.append(f"{self.feedback_heading}:\n{feedback}")
            if turns[-1].score.solved or len(turns) >= self.max_turns:
                return "\n\n".join([*paragraphs, OVER])
        acts = agent in self.acting(task, turns)
        if turns or not acts:
            paragraphs.append(_REVISE[agent] if acts else _WAIT)
        return "\n\n".join(paragraphs)

    def history(self, turns: Sequence[Turn], agent: AgentID) -> list[str]:
        """Return the last code and the last tests, those of the other only if broadcast."""
        found = []
        for name, label in ((CODER, "code"), (TESTER, "tests")):
            text = last_answer(turns, name)
            if text and (name == agent or self.is_broadcast):
                whose = "Your" if name == agent else f"The {name}'s"
                found.append(f"{whose} last {label}:\n{quote(text)}")
        return found

    def score(self, attempts: Sequence[Attempt[CodeTask]], sandbox: ProgramRunner) -> list[Score]:
        """Run code, tests and mutants of all attempts as batches."""
        config = self.config
        rules = ScoreRules(
            config.num_tests, config.num_mutants, config.reward == "team", config.max_turns
        )
        return score_coder_tester(attempts, rules, sandbox)

    def reference(self, task: CodeTask) -> Mapping[AgentID, str]:
        """Return the solution."""
        return self.reference_at(task, ())

    def reference_at(self, task: CodeTask, turns: Sequence[Turn]) -> Mapping[AgentID, str]:
        """Return the solution, or hidden assertions on literals."""
        if CODER in self.acting(task, turns):
            return {CODER: f"```python\n{task.solution}\n```"}
        tests = "\n".join(hidden_literals(task, self.config.num_tests))
        return {TESTER: f"```python\n{tests}\n```"}


parallel_env = CoderTesterFamily.make_env
