"""Questions for two agents with tools: `researcher` finds information, `solver` answers.

Each agent is told something that the other needs. They share a calculator, a search over an
archive, Python (one interpreter each) and one directory of files, which is also how they exchange
information. Both act at the same time and read the results of their calls before the next turn. An
episode ends when the answer of `solver` is right. Needs `pip install 'mlrl[tasks]'`.

Agents:
    `researcher` and `solver`.

Observation:
    The question, the agent's own information, the tools and the format of calls; the latter two
    not with `tool_format="template"`. From turn 2 on also the agent's messages and the results of
    its calls in all turns, the feedback and the request to go on; with `communication="broadcast"`
    those of the teammate, too.

Action:
    Text with tool calls, `<tool_call>{"name": ..., "parameters": {...}}</tool_call>`, and for
    `solver` an answer, `<answer>...</answer>`. A call may have `"arguments"` in place of
    `"parameters"`, as most chat templates do.

Reward:
    Both agents receive the same reward. An episode is solved when the answer of `solver` is right.

    | mode | range | reward of a turn |
    |---|---|---|
    | `grounded` | 0 to 1 | economy · (0.2 right answer + 0.6 evidence for it + 0.2 evidence) |
    | `paper` | depends on `max_calls` | 0.3 per required call, less for others, and the answer |

    See `mlrl_envs.rewards.tools.score`.

Reads:
    The tool calls and their results, and the answer of `solver`.

Cannot read:
    Text of agents beside calls and answer, and why a call was made: an agent that already knows a
    result and makes the calls anyway earns the full reward.

Data:
    Tasks are generated from a seed, ten kinds at three levels, with archives and files of invented
    names and numbers. `eval` shares no name, number and answer with the other splits. The reference
    answer makes every needed call; see `mlrl_envs.datasets.tools`.

Version history:
    v1: Generated tasks; any tool that shows the evidence counts. Replaces v0.

Example:
    env = mlrl_envs.make("mlrl/tools-v1", split="sample")
    observations, infos = env.reset(seed=0)
    call = '<tool_call>{"name": "calculator", "parameters": {"expression": "6 * 7"}}</tool_call>'
    observations, *_ = env.step({"researcher": "", "solver": call})
    assert "<tool_result>" in observations["solver"]
"""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from mlrl_envs.config import check_choice, check_int, check_number, checked_path, checked_some
from mlrl_envs.datasets.sources import SAMPLE
from mlrl_envs.datasets.tools import (
    KINDS,
    LEVELS,
    SIZES,
    GeneratedTasks,
    load_corpus,
    load_questions,
)
from mlrl_envs.envs.family import Family
from mlrl_envs.envs.options import DataConfig
from mlrl_envs.envs.tool_prompts import GO_ON, calls_and_results, first_prompt
from mlrl_envs.errors import InvalidArgumentError, unknown_name
from mlrl_envs.rewards.tools.checks import ToolRules
from mlrl_envs.rewards.tools.score import score_grounded, score_paper
from mlrl_envs.tasks import Document, ToolTask
from mlrl_envs.tools.toolbox import tool_schemas
from mlrl_envs.types import AgentID, Attempt, Json, ProgramRunner, Score, Turn

__all__ = ["RESEARCHER", "SOLVER", "ToolsConfig", "ToolsFamily", "parallel_env"]

RESEARCHER, SOLVER = "researcher", "solver"
MAX_CALLS = 16
TOOL_FORMATS = ("text", "template")


@dataclass(frozen=True)
class ToolsConfig(DataConfig):
    """Options of answering questions with tools.

    Attributes:
        tool_format: `"text"` describes the tools and the format of calls in the prompt;
            `"template"` leaves both out, for models whose chat template or server describes them,
            see `mlrl_envs.tools_of`.
        max_turns: Maximum number of joint actions in an episode, at least 1.
        max_calls: Maximum number of calls of an agent in a turn, 1 to 16; further calls are not
            made.
        tool_seconds: Time limit of one call in seconds, above 0 and at most 60. The number of
            sessions that run in parallel is the number of workers of the sandbox.
        kinds: Kinds of generated tasks: some of `mlrl_envs.datasets.tools.KINDS`.
        levels: Difficulties of generated tasks: some of 1, 2, 3.
        task_seed: Seed of generated tasks, at least 0.
        num_tasks: Number of generated tasks; None for 1000 in `train`, 200 in `eval`, 10 in
            `sample`.
        data_path: A file with own questions, which replace the generated ones in every split.
        corpus_path: A file with documents to search, besides those of the tasks.
    """

    tool_format: str = "text"
    max_turns: int = 6
    max_calls: int = 4
    tool_seconds: float = 3.0
    kinds: Sequence[str] = tuple(KINDS)
    levels: Sequence[int] = LEVELS
    task_seed: int = 0
    num_tasks: int | None = None
    corpus_path: str | os.PathLike[str] | None = None

    def __post_init__(self) -> None:
        """Check types and ranges.

        Raises:
            InvalidArgumentError: If a value has the wrong type or is outside its range.
        """
        super().__post_init__()
        check_choice("tool_format", self.tool_format, TOOL_FORMATS)
        check_int("max_calls", self.max_calls, 1, MAX_CALLS)
        check_number("tool_seconds", self.tool_seconds)
        if not 0 < self.tool_seconds <= 60:
            raise InvalidArgumentError(f"need 0 < tool_seconds <= 60, got {self.tool_seconds}")
        object.__setattr__(self, "kinds", checked_some("kinds", self.kinds, tuple(KINDS)))
        object.__setattr__(self, "levels", checked_some("levels", self.levels, LEVELS))
        check_int("task_seed", self.task_seed, 0, 2**63)
        if self.num_tasks is not None:
            check_int("num_tasks", self.num_tasks, 1, 10**6)
        object.__setattr__(self, "corpus_path", checked_path("corpus_path", self.corpus_path))


@dataclass(frozen=True)
class ToolsFamily(Family[ToolsConfig, ToolTask]):
    """Questions that `researcher` and `solver` answer with shared tools."""

    env_id: ClassVar[str] = "mlrl/tools-v1"
    config_type: ClassVar[type[ToolsConfig]] = ToolsConfig
    feedback_heading: ClassVar[str] = "Feedback on the last turn"

    @staticmethod
    def tools() -> list[dict[str, Json]]:
        """Return the JSON schemas of the tools, see `mlrl_envs.tools_of`."""
        return tool_schemas()

    @classmethod
    def load_tasks(cls, config: ToolsConfig) -> Sequence[ToolTask]:
        """Return the tasks of the split; read the documents as well, so that errors show now."""
        _documents_of(config)
        if config.path is not None and config.split != SAMPLE:
            return load_questions(config.path)
        if config.split not in (*SIZES, "all"):
            raise unknown_name("split", config.split, [*SIZES, "all"])
        parts = ("train", "eval") if config.split == "all" else (config.split,)
        return GeneratedTasks(
            tuple((part, config.num_tasks or SIZES[part]) for part in parts),
            config.task_seed,
            tuple(config.kinds),
            tuple(config.levels),
        )

    @property
    def agents(self) -> tuple[AgentID, ...]:
        """`researcher` and `solver`."""
        return (RESEARCHER, SOLVER)

    @property
    def reward_range(self) -> tuple[float, float]:
        """(0, 1) for `grounded`; for `paper` the extremes of `max_calls` calls and an answer."""
        if self.config.reward == "grounded":
            return 0.0, 1.0
        calls = len(self.agents) * self.config.max_calls
        return -0.2 * calls, 0.3 * calls + 0.8 + 0.2 * (1 - 1 / self.config.max_turns)

    def prompt(self, task: ToolTask, agent: AgentID) -> str:
        """Return the question, the tools and the agent's part."""
        return first_prompt(
            task,
            agent,
            self.agents,
            max_turns=self.max_turns,
            max_calls=self.config.max_calls,
            describes_tools=self.config.tool_format == "text",
        )

    def history(self, turns: Sequence[Turn], agent: AgentID) -> list[str]:
        """Return the messages and the results of calls in all turns so far."""
        return calls_and_results(turns, agent, with_teammates=self.is_broadcast)

    def request(self, agent: AgentID) -> str:  # noqa: ARG002  the same for all agents
        """Return the request to call more tools or to answer."""
        return GO_ON

    def score(self, attempts: Sequence[Attempt[ToolTask]], sandbox: ProgramRunner) -> list[Score]:
        """Make the calls of all attempts as one batch, and score them."""
        config = self.config
        rules = ToolRules(
            _documents_of(config), SOLVER, config.max_calls, config.max_turns, config.tool_seconds
        )
        score = score_grounded if config.reward == "grounded" else score_paper
        return score(attempts, rules, sandbox)

    def reference(self, task: ToolTask) -> Mapping[AgentID, str] | None:
        """Return all needed calls and the answer in one turn."""
        texts = dict.fromkeys(self.agents, "")
        for item in task.evidence:
            call = {"name": item.tool, "parameters": json.loads(item.parameters)}
            texts[item.agent] += f"<tool_call>{json.dumps(call)}</tool_call>\n"
        texts[SOLVER] += f"<answer>{task.answer}</answer>"
        return texts


parallel_env = ToolsFamily.make_env


def _documents_of(config: ToolsConfig) -> tuple[Document, ...]:
    path = config.corpus_path
    return () if path is None else load_corpus(os.fspath(path))
