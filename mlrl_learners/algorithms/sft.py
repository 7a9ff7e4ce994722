"""Supervised fine-tuning of a team on answers, on the next observations, or on both.

The examples are episodes of files, in which case no episodes are collected, or collected answers
with a high return (RAFT, arXiv 2304.06767). Answers in files are text: they are tokenized by the
trained model and end with the end-of-turn token of its chat template unless they were truncated.
The loss is the mean over completion tokens of -log pi at temperature 1.
"""

import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from mlrl_learners.algorithms.offline_team import OfflineTeam
from mlrl_learners.algorithms.team import TeamConfig
from mlrl_learners.algorithms.update_metrics import group_metrics
from mlrl_learners.config.groups import build_config
from mlrl_learners.config.options import check_unread
from mlrl_learners.engine import TokenRow
from mlrl_learners.errors import ConfigError, unknown_name
from mlrl_learners.functional.losses import check_finite
from mlrl_learners.functional.returns import check_rollouts, joint_returns, rollout_groups
from mlrl_learners.policies import ModelSource
from mlrl_learners.policies.gradient_batches import gradient_batches
from mlrl_learners.processes.work_sharing import gather
from mlrl_learners.runs.demonstrations import Demonstration, read_demonstrations
from mlrl_learners.types import AgentID, JointStep, Node, Rollout, RolloutConfig

__all__ = ["Sft", "SftConfig", "make_sft"]


@dataclass(frozen=True)
class AnswerOptions:
    """What is a group: how many answers are sampled for a prompt.

    Attributes:
        size: Number of answers that an agent samples for each prompt without files, at least 1.
    """

    size: int = 4

    def __post_init__(self) -> None:
        """Check the range.

        Raises:
            ConfigError: If the value is outside its range.
        """
        if self.size < 1:
            raise ConfigError(f"size must be at least 1, got {self.size}")

    @property
    def rollout(self) -> RolloutConfig:
        """Collection of rollouts that these options ask for."""
        return RolloutConfig(self.size)


@dataclass(frozen=True)
class ExampleOptions:
    """Which examples: where they come from, and what is predicted from them.

    Attributes:
        episodes: File of `mlrl collect` for all agents, or a mapping of each agent to a file; empty
            to use the collected rollouts.
        filter_reward: Lowest team return of the episodes that are trained on; null for all.
        predict: Predicted text: `actions` (answers), `observations` (those that follow an answer)
            or `both`.
        batch_size: Number of examples per update and policy with files, at least 1.
    """

    episodes: str | Mapping[str, str] = ""
    filter_reward: float | None = None
    predict: Literal["actions", "observations", "both"] = "actions"
    batch_size: int = 16

    def __post_init__(self) -> None:
        """Check ranges.

        Raises:
            ConfigError: If a value is outside its range, or has no effect beside another.
        """
        if self.batch_size < 1:
            raise ConfigError(f"batch_size must be at least 1, got {self.batch_size}")
        if self.filter_reward is not None and math.isnan(self.filter_reward):
            raise ConfigError("filter_reward must be a number, got nan")
        if not self.episodes:
            reason = "no episodes, because an update uses all rollouts: give a file as episodes"
            check_unread(self, ("batch_size",), reason)


@dataclass(frozen=True)
class SftConfig(TeamConfig):
    """Examples of supervised fine-tuning, and the team that learns from them.

    Attributes:
        group: Answers that are sampled for a prompt.
        examples: Examples, and what is predicted from them.
    """

    group: AnswerOptions = field(default_factory=AnswerOptions)
    examples: ExampleOptions = field(default_factory=ExampleOptions)

    def __post_init__(self) -> None:
        """Check combinations.

        Raises:
            ConfigError: If another option makes a value meaningless.
        """
        super().__post_init__()
        if self.examples.episodes:
            reason = "examples.episodes, because no rollouts are collected: leave it out"
            check_unread(self.sampler, ("endpoint",), reason, "sampler.")


class Sft(OfflineTeam):
    """Learner that maximises the likelihood of examples.

    Args:
        agents: Every agent, in the environment's order.
        model: One model for all agents, or one per agent.
        config: Examples, and the models.
        seed: Seed of everything that is sampled, and of the order of the examples.
    """

    config: SftConfig

    def __init__(
        self,
        agents: Sequence[AgentID],
        model: ModelSource | Mapping[AgentID, ModelSource],
        config: SftConfig,
        seed: int = 0,
    ) -> None:
        if isinstance(config.examples.episodes, Mapping):
            for agent in config.examples.episodes:
                if agent not in agents:
                    raise unknown_name("agent", agent, agents)
        super().__init__(agents, model, config, seed, offline=bool(config.examples.episodes))
        self.rollout = config.group.rollout

    @functools.cached_property
    def examples(self) -> dict[str, list[TokenRow]]:
        """Examples of the files for each policy, read on first use.

        Raises:
            ConfigError: If a file is missing or has no example for these agents.
        """
        rows: dict[str, list[TokenRow]] = {name: [] for name in self.policies}
        for demonstration in self._demonstrations():
            name = self.policy_of[demonstration.agent]
            rows[name] += self._rows_of_text(demonstration)
        empty = [name for name in rows if not rows[name]]
        if len(empty) == len(rows):
            asked = self.config.examples
            raise ConfigError(
                f"{asked.episodes!r} holds nothing to learn {asked.predict} from for "
                f"{', '.join(self.agents)} with filter_reward={asked.filter_reward}"
            )
        return rows

    def update(self, rollouts: Sequence[Rollout]) -> dict[str, float]:
        """Take one optimizer step per policy, on examples of the files or on the rollouts.

        Returns:
            Metrics by name, per agent (of the rollouts) and per policy (`shared/loss`).

        Raises:
            NumericsError: If a reward, loss or gradient is not finite.
            ConfigError: If a file has no example for these agents.
        """
        check_rollouts(rollouts)
        self.begin_update()
        self._updates += 1
        rows = self._drawn() if self.offline else self._played(rollouts)
        metrics = group_metrics(list(rollout_groups(rollouts, gamma=1.0)))
        for name, mine in rows.items():
            if mine:
                metrics |= self._update_policy(name, mine)
        return metrics

    def _demonstrations(self) -> Iterator[Demonstration]:
        files = self.config.examples.episodes
        for path in dict.fromkeys(files.values() if isinstance(files, Mapping) else [files]):
            for demonstration in read_demonstrations(
                Path(path), self.config.examples.filter_reward
            ):
                agent = demonstration.agent
                theirs = files.get(agent) if isinstance(files, Mapping) else files
                if agent in self.learning and theirs == path:
                    yield demonstration

    def _rows_of_text(self, shown: Demonstration) -> Iterator[TokenRow]:
        agent = shown.agent
        if self.config.examples.predict != "observations":
            written = shown.actions[agent]
            row = self.row_of_text(agent, shown.observation, written, end=shown.is_whole)
            if row.token_ids:  # a truncated answer may be empty
                yield row
        if self.config.examples.predict != "actions" and shown.next_observation is not None:
            question = _question(self.agents, shown.observation, shown.actions)
            yield self.row_of_text(agent, question, shown.next_observation, end=True)

    def _drawn(self) -> dict[str, list[TokenRow]]:
        """Return the examples of this update for each policy."""
        return {
            name: [rows[index] for index in self.draw(len(rows), self.config.examples.batch_size)]
            for name, rows in self.examples.items()
            if rows
        }

    def _played(self, rollouts: Sequence[Rollout]) -> dict[str, list[TokenRow]]:
        """Return the examples in the joint steps whose mean team return reaches the filter."""
        rows: dict[str, dict[TokenRow, None]] = {name: {} for name in self.policies}
        for rollout in rollouts:
            for node, step, earned in _lines(rollout.root, rollout.agents):
                if (
                    self.config.examples.filter_reward is None
                    or earned >= self.config.examples.filter_reward
                ):
                    for agent in (each for each in step.samples if each in self.learning):
                        mine = self._rows_of_step(agent, node, step)
                        rows[self.policy_of[agent]] |= dict.fromkeys(mine)
        return {name: list(unique) for name, unique in rows.items()}

    def _rows_of_step(self, agent: AgentID, node: Node, step: JointStep) -> Iterator[TokenRow]:
        answers = {who: node.completions[who][sample] for who, sample in step.samples.items()}
        if self.config.examples.predict != "observations":
            yield TokenRow(answers[agent].prompt_ids, answers[agent].token_ids)
        if self.config.examples.predict != "actions":
            texts = {who: answer.text for who, answer in answers.items()}
            question = _question(self.agents, node.observations[agent], texts)
            for text in _next_reads(step, agent):
                yield self.row_of_text(agent, question, text, end=True)

    def _update_policy(self, name: str, rows: Sequence[TokenRow]) -> dict[str, float]:
        policy, optimizer = self.policies[name], self.optimizers[name]
        num_tokens = sum(len(row.token_ids) for row in rows)
        found: dict[int, tuple[float, float]] = {}  # by micro-batch
        max_tokens = self.config.compute.micro_batch_tokens
        for place, numbers in gradient_batches(policy, rows, max_tokens, [optimizer]):
            batch = [rows[number] for number in numbers]
            logprobs, entropy = policy.logprobs(batch, temperature=1.0)
            loss = -logprobs.sum() / num_tokens
            found[place] = check_finite(loss, name), float(entropy.sum())
            optimizer.backward(loss)
        losses, entropies = zip(*gather(found).values(), strict=True)
        return {
            f"{name}/loss": math.fsum(losses),
            f"{name}/grad_norm": optimizer.step(),
            f"{name}/lr": optimizer.last_lr,
            f"{name}/entropy": math.fsum(entropies) / num_tokens,
            f"{name}/tokens": float(num_tokens),
            **optimizer.scale.metrics(f"{name}/"),
        }


def make_sft(
    *,
    agents: Sequence[AgentID],
    model: ModelSource | Mapping[AgentID, ModelSource],
    seed: int = 0,
    **options: Any,  # noqa: ANN401 - checked against the groups of SftConfig
) -> Sft:
    """Build supervised fine-tuning; options are the groups of `SftConfig`.

    Raises:
        UnknownNameError: If an option is not a field of a group, or a file is for an unknown agent.
        ConfigError: If a value has the wrong type or is outside its range.
        ModelNotFoundError: If a model cannot be loaded.
    """
    return Sft(agents, model, build_config(SftConfig, options), seed)


def _question(agents: Sequence[AgentID], observation: str, actions: Mapping[AgentID, str]) -> str:
    """Return the prompt for predicting the next observation, which contains all answers."""
    answers = [f"[{agent}]\n{actions[agent]}" for agent in agents if agent in actions]
    return "\n\n".join([observation, *answers, "What is read next?"])


def _next_reads(step: JointStep, agent: AgentID) -> Iterator[str]:
    """Yield what an agent reads when it next acts after a joint step, in every branch."""
    after = step.child.observations if step.child else step.next_observations
    if agent in after:
        yield after[agent]
    elif step.child:
        for following in step.child.steps:
            yield from _next_reads(following, agent)


def _lines(
    node: Node, agents: Sequence[AgentID], before: float = 0.0
) -> Iterator[tuple[Node, JointStep, float]]:
    """Yield every joint step with the mean team return of the episodes through it."""
    returns = [joint_returns(node, agent, gamma=1.0) for agent in agents]
    for number, step in enumerate(node.steps):
        yield node, step, before + sum(mine[number] for mine in returns) / len(agents)
        if step.child is not None:
            earned = sum(step.rewards.values()) / len(agents)
            yield from _lines(step.child, agents, before + earned)
