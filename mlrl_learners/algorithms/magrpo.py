"""MAGRPO and its family: group-relative policy gradients for teams, without a critic.

Each agent's answers to one prompt form a group; what an answer is worth is its return less a
baseline of its group. `mareinforce`, `marloo` and `maremax` are the same file with another
baseline.

Unless told otherwise, the loss is as published: whole answers, the sum over their tokens, and
ratios that nothing clips.

Sources: MAGRPO (arXiv 2508.04652), and the library published with it, comlrl 1.4.3; RLOO
(arXiv 2402.14740) for the leave-one-out baseline; clipping as in PPO (arXiv 1707.06347).
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor

from mlrl_learners.algorithms.metrics import group_metrics, policy_metrics
from mlrl_learners.algorithms.policy_gradient import (
    PolicyGradientConfig,
    check_finite,
    count_by_agent,
    minibatches,
    surrogate,
)
from mlrl_learners.algorithms.reward_terms import Shaping
from mlrl_learners.algorithms.row_weights import answer_weights, mean_divisor
from mlrl_learners.algorithms.team import Team
from mlrl_learners.config.options import check_options, check_unread
from mlrl_learners.engine import TokenRow
from mlrl_learners.errors import ConfigError
from mlrl_learners.functional.advantages import (
    Baseline,
    group_advantages,
    normalize,
    pooled_deviation,
)
from mlrl_learners.functional.losses import LossKind
from mlrl_learners.functional.returns import Group, check_rewards, rollout_groups
from mlrl_learners.policies import ModelSource
from mlrl_learners.processes.work_sharing import sum_numbers
from mlrl_learners.types import AgentID, Completion, Rollout, RolloutConfig

__all__ = [
    "Magrpo",
    "MagrpoConfig",
    "make_magrpo",
    "make_mareinforce",
    "make_maremax",
    "make_marloo",
]


@dataclass(frozen=True)
class MagrpoConfig(PolicyGradientConfig):
    """What MAGRPO does with the answers; with a baseline, `group_size` is at least 2.

    The loss `sequence` has no clip of its own here: `clip_low` and `clip_high` are 1 and `inf`.

    Attributes:
        loss: `sequence`, `grpo`, `token_mean`, `dr_grpo` or `gspo`.
        baseline: What is subtracted from returns: `mean`, `none`, `leave_one_out` or `max`.
        normalize_std: Divide advantages by the standard deviation of an agent's groups, pooled over
            the nodes of a rollout; with `turn_weights: nodes` by that of each group alone.
        std_epsilon: What is added to that deviation, above 0.
        normalize_batch: Shift and scale a policy's advantages to mean 0 and deviation 1 in each
            update.
        skip_equal_groups: Leave out answers whose advantage is 0 before any forward pass.
    """

    loss: LossKind = "sequence"
    baseline: Baseline = "mean"
    normalize_std: bool = False
    std_epsilon: float = 1e-4
    normalize_batch: bool = False
    skip_equal_groups: bool = True

    def __post_init__(self) -> None:
        """Check ranges.

        Raises:
            ConfigError: If a value is outside its range.
        """
        super().__post_init__()
        if self.baseline not in ("mean", "none", "leave_one_out", "max"):
            raise ConfigError(
                f"baseline must be mean, none, leave_one_out or max, got {self.baseline!r}"
            )
        if not self.std_epsilon > 0:
            raise ConfigError(f"std_epsilon must be above 0, got {self.std_epsilon}")
        if not self.normalize_std:
            check_unread(self, ("std_epsilon",), "normalize_std false: set normalize_std")

    def own_clips(self) -> tuple[float, float]:
        """Return the clip range of the loss that applies where none is set."""
        return (1.0, math.inf) if self.loss == "sequence" else super().own_clips()

    def check_rollout(self, rollout: RolloutConfig) -> None:
        """Check that a walk has the answers that `credit` and `baseline` compare.

        Raises:
            ConfigError: If `credit` is `difference` and answers are not crossed, or `credit`,
                `baseline` or `normalize_std` takes a group and there is one answer a prompt.
        """
        super().check_rollout(rollout)
        self._check_group(rollout.num_samples)

    def _check_group(self, size: int) -> None:
        """Refuse a baseline or deviation of a group of one answer."""
        if size < 2 and (self.baseline != "none" or self.normalize_std):
            what = f"baseline {self.baseline}" if self.baseline != "none" else "normalize_std"
            raise ConfigError(
                f"{what} takes at least 2 answers a prompt, group_size or rollout.num_samples, got "
                f"{size}; with one answer there is baseline none, as in mareinforce"
            )


@dataclass(frozen=True, slots=True)
class Sample:
    """One answer as it is trained on.

    Attributes:
        node_weight: Weight of the node where it was given, see `turn_weights`.
    """

    agent: AgentID
    completion: Completion
    advantage: float
    node_weight: float

    @property
    def row(self) -> TokenRow:
        """Prompt and completion tokens, and what they were drawn from."""
        return TokenRow.sampled(self.completion)


class Magrpo(Team):
    """Learns from groups of answers to the same prompt.

    Args:
        agents: Every agent, in the environment's order.
        model: One model for all, or one an agent.
        config: The method and its models.
        seed: Decides everything that is sampled.
    """

    config: MagrpoConfig

    def __init__(
        self,
        agents: Sequence[AgentID],
        model: ModelSource | Mapping[AgentID, ModelSource],
        config: MagrpoConfig,
        seed: int = 0,
    ) -> None:
        super().__init__(agents, model, config, seed)
        self.rollout = RolloutConfig(config.group_size, config.joint_mode, config.branching)
        learners = {name: self.policies[name] for name in self.optimizers}
        self.shaping = Shaping(learners, self.policy_of, config)

    def update(self, rollouts: Sequence[Rollout]) -> dict[str, float]:
        """Take `epochs * num_minibatches` optimizer steps a policy on the rollouts.

        Returns:
            Metrics by name, per agent (`aux/kl`) and per policy (`shared/loss`).

        Raises:
            NumericsError: If a reward, loss or gradient is not finite.
        """
        check_rewards(rollouts)
        rewarded = self.shaping.rewarded(rollouts)
        config = self.config
        groups = list(rollout_groups(rewarded, config.gamma, config.credit, config.turn_weights))
        learning = [group for group in groups if group.agent in self.learning]
        samples = [
            sample
            for group, deviation in zip(learning, self._deviations(learning), strict=True)
            for sample in self._samples(group, deviation)
        ]
        metrics = group_metrics(groups)
        self.begin_update()
        for name in self.optimizers:
            mine = [sample for sample in samples if self.policy_of[sample.agent] == name]
            if mine:
                weights = [sample.node_weight for sample in mine]
                total = mean_divisor(rollouts, {each.agent for each in mine}, weights, config)
                metrics |= self._update_policy(name, mine, total)
        return metrics

    def _deviations(self, groups: Sequence[Group]) -> list[float | None]:
        """Return for each group the deviation that its advantages are divided by."""
        if not self.config.normalize_std or self.config.turn_weights == "nodes":
            return [None] * len(groups)
        mine: dict[tuple[int, AgentID], list[Group]] = defaultdict(list)
        for group in groups:
            mine[group.rollout, group.agent].append(group)
        pooled = {
            key: pooled_deviation([each.returns for each in some], [each.weight for each in some])
            for key, some in mine.items()
        }
        return [pooled[group.rollout, group.agent] for group in groups]

    def _samples(self, group: Group, deviation: float | None) -> list[Sample]:
        advantages = group_advantages(
            group.returns,
            self.config.baseline,
            normalize_std=self.config.normalize_std,
            deviation=deviation,
            epsilon=self.config.std_epsilon,
        )
        return [
            Sample(group.agent, completion, advantage, group.weight)
            for completion, advantage in zip(group.completions, advantages, strict=True)
        ]

    def _update_policy(self, name: str, samples: list[Sample], total: float) -> dict[str, float]:
        if self.config.normalize_batch:
            samples = _normalized(samples)
        weights = answer_weights(
            [sample.completion for sample in samples],
            self.config,
            [sample.node_weight for sample in samples],
            total,
        )
        keep = [i for i, sample in enumerate(samples) if self._teaches(sample)]
        if not keep:
            return {}
        stats: dict[str, float] = defaultdict(float)
        for minibatch in minibatches(keep, self.config, self.generator):
            rows_read = [samples[i].row for i in minibatch]
            for rows in self.policies[name].micro_batches(
                rows_read, self.config.micro_batch_tokens
            ):
                batch = [minibatch[i] for i in rows]
                loss = self._loss(
                    name, [samples[i] for i in batch], [weights[i] for i in batch], stats
                )
                # One minibatch of several is one mean: its share of the rows makes it whole.
                (loss * (len(keep) / len(minibatch))).backward()
            stats["grad_norm"] += self.optimizers[name].step()
            stats["steps"] += 1
        stats = sum_numbers(stats)
        return policy_metrics(name, stats, self.config.epochs, self.optimizers[name].last_lr)

    def _teaches(self, sample: Sample) -> bool:
        if self.config.is_masked(sample.completion):
            return False
        always = self.shaping.in_loss or not self.config.skip_equal_groups
        return always or sample.advantage != 0.0

    def _loss(
        self, name: str, samples: list[Sample], weights: list[float], stats: dict[str, float]
    ) -> Tensor:
        """Return the part of the loss that these rows make up, and add to the statistics."""
        completions = [sample.completion for sample in samples]
        logprobs, entropy = self.policies[name].logprobs(
            [sample.row for sample in samples], temperature=self.config.temperature
        )
        advantages = [sample.advantage for sample in samples]
        loss = surrogate(logprobs, completions, advantages, weights, self.config, stats)
        if self.shaping.in_loss:
            loss = loss + self.shaping.divergence_loss(name, logprobs, completions, weights, stats)
        agents = [sample.agent for sample in samples]
        count_by_agent(stats, agents, completions, logprobs, entropy)
        stats["loss"] += check_finite(loss, name)
        return loss


def make_magrpo(
    *,
    agents: Sequence[AgentID],
    model: ModelSource | Mapping[AgentID, ModelSource],
    seed: int = 0,
    **options: Any,  # noqa: ANN401 - checked against the fields of MagrpoConfig
) -> Magrpo:
    """Build MAGRPO; options are the fields of `MagrpoConfig`.

    Raises:
        UnknownNameError: If an option is none of them.
        ConfigError: If a value has the wrong type or is outside its range.
        ModelNotFoundError: If a model cannot be loaded.
    """
    check_options(options, MagrpoConfig)
    return Magrpo(agents, model, MagrpoConfig(**options), seed)


def make_mareinforce(**options: Any) -> Magrpo:  # noqa: ANN401 - see make_magrpo
    """Build multi-agent REINFORCE: `make_magrpo` without a baseline."""
    return make_magrpo(**{"baseline": "none", **options})


def make_marloo(**options: Any) -> Magrpo:  # noqa: ANN401 - see make_magrpo
    """Build multi-agent RLOO: `make_magrpo` with the leave-one-out baseline."""
    return make_magrpo(**{"baseline": "leave_one_out", **options})


def make_maremax(**options: Any) -> Magrpo:  # noqa: ANN401 - see make_magrpo
    """Build multi-agent ReMax over samples: `make_magrpo` less the best of the group."""
    return make_magrpo(**{"baseline": "max", **options})


def _normalized(samples: Sequence[Sample]) -> list[Sample]:
    advantages = normalize(
        [sample.advantage for sample in samples], [sample.node_weight for sample in samples]
    )
    return [
        replace(sample, advantage=advantage)
        for sample, advantage in zip(samples, advantages, strict=True)
    ]
