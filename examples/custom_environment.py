"""An own environment: pure functions of a task, and the contract checked.

python examples/custom_environment.py [MODEL]
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import mlrl_envs
import mlrl_learners
from mlrl_envs.types import Attempt, ProgramRunner, Score, Task, Turn

NUMBERS = {str(number) for number in range(10)}


@dataclass(frozen=True)
class Sums:
    """Two agents write one number each; together they must make the sum."""

    agents: tuple[str, ...] = ("left", "right")
    tasks: Sequence[Task] = tuple(Task(str(number)) for number in range(2, 10))
    max_turns: int = 1
    reward_range: tuple[float, float] = (0.0, 1.0)

    def observe(self, task: Task, turns: Sequence[Turn], agent: str) -> str:  # noqa: ARG002
        """Return the question."""
        return f"You are {agent}. Write a number, so that both make {task.task_id}."

    def score(self, attempts: Sequence[Attempt[Task]], sandbox: ProgramRunner) -> list[Score]:  # noqa: ARG002
        """Pay one to both if the numbers make the sum."""
        return [self._score(attempt) for attempt in attempts]

    def reference(self, task: Task) -> Mapping[str, str]:
        """Return numbers that make the sum."""
        return {"left": "1", "right": str(int(task.task_id) - 1)}

    def _score(self, attempt: Attempt[Task]) -> Score:
        texts = [text.strip() for text in attempt.actions.values()]
        right = NUMBERS.issuperset(texts) and sum(map(int, texts)) == int(attempt.task.task_id)
        return Score({agent: {"sum": float(right)} for agent in self.agents}, solved=right)


def parallel_env(split: str = "train") -> mlrl_envs.TextParallelEnv:  # noqa: ARG001
    """Make the environment; all splits have the same tasks."""
    return mlrl_envs.TextParallelEnv(Sums(), env_id="mine/sums-v0")


mlrl_envs.register("mine/sums-v0", parallel_env)
mlrl_envs.check_env(parallel_env)
learner = mlrl_learners.make(
    "magrpo",
    agents=Sums.agents,
    model=sys.argv[1] if len(sys.argv) > 1 else "tiny-random",
    sampling={"max_new_tokens": 4},
)
result = mlrl_learners.train(
    env_id="mine/sums-v0", learner=learner, iterations=2, run_dir="runs/custom_environment"
)
print(f"return {result.metrics['train/return']:.3f}")
