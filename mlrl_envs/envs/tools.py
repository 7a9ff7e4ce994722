"""Questions for two agents with tools: `researcher` finds, `solver` works out and answers.

Each is told something that the other needs and does not know. They share a calculator, a search
over an archive, Python (an interpreter each) and one directory of files, which is also how they
pass things on; they act at once, and read the results of their calls before the next turn. The
answer of `solver` counts. An episode ends when it is right.

Agents: `researcher`, `solver`.
Reward: grounded in (0, 1): a right answer that rests on what the tools have shown, without waste;
    paper: +0.3 for a call of a required tool, less for others, and the answer. See
    `mlrl_envs.rewards.tools.score`.
Data: 30 questions and 8 samples of our own over an archive of 42 invented documents, Apache-2.0.

Version history:
    v0: first version.
"""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from mlrl_envs.config import DataConfig, check_number, checked_path
from mlrl_envs.datasets.tools import load_corpus, load_tools
from mlrl_envs.envs.tool_prompts import first_prompt, with_results
from mlrl_envs.errors import InvalidArgumentError
from mlrl_envs.feedback import get_feedback
from mlrl_envs.rewards.tools.checks import Rules
from mlrl_envs.rewards.tools.score import score_grounded, score_paper
from mlrl_envs.shell.env import TextParallelEnv, build_env
from mlrl_envs.tasks import ToolTask
from mlrl_envs.tools.search import Index
from mlrl_envs.types import AgentID, Attempt, ProgramRunner, Score, Turn

__all__ = ["ENV_ID", "RESEARCHER", "SOLVER", "ToolsConfig", "ToolsFamily", "parallel_env"]

ENV_ID = "mlrl/tools-v0"
RESEARCHER, SOLVER = "researcher", "solver"
MAX_CALLS = 16


@dataclass(frozen=True)
class ToolsConfig(DataConfig):
    """Options of the tools family.

    Attributes:
        max_turns: Joint actions an episode may have, at least 1.
        max_calls: Calls that an agent may make in a turn, 1 to 16; more are not made.
        tool_seconds: Time limit of one call, above 0. How many sessions run at once is the number
            of workers of the sandbox.
        data_path: A file with questions of the caller's own; None takes ours.
        corpus_path: A file with documents to search; None takes ours.
    """

    max_turns: int = 6
    max_calls: int = 4
    tool_seconds: float = 3.0
    corpus_path: str | os.PathLike[str] | None = None

    def __post_init__(self) -> None:
        """Check ranges.

        Raises:
            InvalidArgumentError: If a value is outside its range.
        """
        super().__post_init__()
        if isinstance(self.max_calls, bool) or self.max_calls not in range(1, MAX_CALLS + 1):
            raise InvalidArgumentError(
                f"max_calls must be an int from 1 to {MAX_CALLS}, got {self.max_calls!r}"
            )
        check_number("tool_seconds", self.tool_seconds)
        if not 0 < self.tool_seconds <= 60:
            raise InvalidArgumentError(f"need 0 < tool_seconds <= 60, got {self.tool_seconds}")
        object.__setattr__(self, "corpus_path", checked_path("corpus_path", self.corpus_path))
        get_feedback(self.feedback)


@dataclass(frozen=True)
class ToolsFamily:
    """Questions, an archive, and two agents who share tools.

    Attributes:
        config: Options.
        tasks: Every question of the split.
    """

    config: ToolsConfig
    tasks: tuple[ToolTask, ...]

    @property
    def agents(self) -> tuple[AgentID, ...]:
        """`researcher` and `solver`."""
        return (RESEARCHER, SOLVER)

    @property
    def max_turns(self) -> int:
        """Joint actions an episode may have."""
        return self.config.max_turns

    @property
    def reward_range(self) -> tuple[float, float]:
        """(0, 1) grounded; by the published formula, what so many calls and an answer can earn."""
        if self.config.reward == "grounded":
            return 0.0, 1.0
        calls = len(self.agents) * self.config.max_calls
        return -0.2 * calls, 0.3 * calls + 0.8 + 0.2 * (1 - 1 / self.config.max_turns)

    def observe(self, task: ToolTask, turns: Sequence[Turn], agent: AgentID) -> str:
        """Return the question and the agent's part in it; from turn 2 on also all results."""
        config = self.config
        first = first_prompt(task, agent, self.agents, config.max_turns, config.max_calls)
        return with_results(first, config, task, turns, agent)

    def score(self, attempts: Sequence[Attempt[ToolTask]], sandbox: ProgramRunner) -> list[Score]:
        """Make the calls of all attempts as one batch, and score them."""
        score = score_grounded if self.config.reward == "grounded" else score_paper
        return score(attempts, self._rules(), sandbox)

    def reference(self, task: ToolTask) -> Mapping[AgentID, str] | None:
        """Return every needed call, and the answer with them, as agents who know it would write."""
        texts = dict.fromkeys(self.agents, "")
        for item in task.evidence:
            call = {"name": item.tool, "parameters": json.loads(item.parameters)}
            texts[item.agent] += f"<tool_call>{json.dumps(call)}</tool_call>\n"
        texts[SOLVER] += f"<answer>{task.answer}</answer>"
        return texts

    def _rules(self) -> Rules:
        path = self.config.corpus_path
        index = _index(None if path is None else os.fspath(path))
        config = self.config
        return Rules(index, SOLVER, config.max_calls, config.max_turns, config.tool_seconds)


def parallel_env(**options: Any) -> TextParallelEnv:  # noqa: ANN401  checked against the config
    """Build the environment; options are those of `ToolsConfig`, and of the shell."""
    return build_env(ENV_ID, ToolsConfig, _family, options)


@lru_cache(maxsize=8)
def _index(path: str | None) -> Index:
    return Index(load_corpus(path))


def _family(config: ToolsConfig) -> ToolsFamily:
    family = ToolsFamily(config, load_tools(config.split, config.path))
    family._rules()  # noqa: SLF001  a corpus that cannot be read is the caller's mistake: say so now
    return family
