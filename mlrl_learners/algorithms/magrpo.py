"""MAGRPO and its family: group-relative policy gradients for teams, without a critic.

Each agent's answers to one prompt form a group; what an answer is worth is its return less a
baseline of its group. `mareinforce`, `marloo` and `maremax` are the same file with another
baseline.

Sources: MAGRPO (arXiv 2508.04652); clipping as in PPO (arXiv 1707.06347); KL estimators as in
`mlrl_learners.functional.losses`.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch import Tensor

from mlrl_learners.algorithms.metrics import group_metrics, policy_metrics
from mlrl_learners.algorithms.policy_gradient import (
    PolicyGradientConfig,
    answer_weights,
    check_finite,
    minibatches,
    per_token,
    surrogate,
)
from mlrl_learners.algorithms.team import Team
from mlrl_learners.errors import ConfigError
from mlrl_learners.functional.advantages import Baseline, group_advantages, normalize
from mlrl_learners.functional.logprobs import TokenRow
from mlrl_learners.functional.losses import KlEstimator, kl_estimate
from mlrl_learners.functional.returns import Group, rollout_groups
from mlrl_learners.options import check_options
from mlrl_learners.policies import ModelSource
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
    """What MAGRPO does with the answers; with a baseline, `group_size` should be at least 2.

    Attributes:
        baseline: What is subtracted from returns: `mean`, `none`, `leave_one_out` or `max`.
        normalize_std: Divide advantages by the standard deviation of their group.
        normalize_batch: Shift and scale a policy's advantages to mean 0 and deviation 1 in each
            update.
        kl_coef: Weight of the KL divergence to the starting weights; 0 keeps no reference.
        kl_estimator: `k1`, `k2` or `k3`.
        kl_in: Whether the divergence is part of the `loss` or taken off the `reward`.
        skip_equal_groups: Leave out answers whose advantage is 0 before any forward pass.
    """

    baseline: Baseline = "mean"
    normalize_std: bool = False
    normalize_batch: bool = False
    kl_coef: float = 0.0
    kl_estimator: KlEstimator = "k3"
    kl_in: Literal["loss", "reward"] = "loss"
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


@dataclass(frozen=True, slots=True)
class Sample:
    """One answer as it is trained on."""

    agent: AgentID
    completion: Completion
    advantage: float

    @property
    def row(self) -> TokenRow:
        """Prompt and completion tokens."""
        return TokenRow(self.completion.prompt_ids, self.completion.token_ids)


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
        self.references = {
            name: policy.frozen_copy() for name, policy in self.policies.items() if config.kl_coef
        }

    def update(self, rollouts: Sequence[Rollout]) -> dict[str, float]:
        """Take `epochs * num_minibatches` optimizer steps a policy on the rollouts.

        Returns:
            Metrics by name, per agent (`aux/kl`) and per policy (`shared/loss`).

        Raises:
            NumericsError: If a loss or gradient is not finite.
        """
        groups = list(rollout_groups(rollouts, self.config.gamma))
        learning = [group for group in groups if group.agent in self.learning]
        samples = [sample for group in learning for sample in self._samples(group)]
        metrics = group_metrics(groups)
        for name in self.optimizers:
            self.optimizers[name].clear()
            mine = [sample for sample in samples if self.policy_of[sample.agent] == name]
            if mine:
                metrics |= self._update_policy(name, mine)
        return metrics

    def _samples(self, group: Group) -> list[Sample]:
        returns = list(group.returns)
        if self.config.kl_coef and self.config.kl_in == "reward":
            returns = self._penalize(group, returns)
        advantages = group_advantages(
            returns, self.config.baseline, normalize_std=self.config.normalize_std
        )
        return [
            Sample(group.agent, completion, advantage)
            for completion, advantage in zip(group.completions, advantages, strict=True)
        ]

    def _penalize(self, group: Group, returns: list[float]) -> list[float]:
        """Take kl_coef * sum over tokens of the KL estimate off each return."""
        reference = self.references[self.policy_of[group.agent]]
        rows = [TokenRow(c.prompt_ids, c.token_ids) for c in group.completions]
        with torch.no_grad():
            expected, _ = reference.logprobs(
                rows, temperature=self.config.temperature, with_entropy=False
            )
        sampled = expected.new_tensor([lp for c in group.completions for lp in c.logprobs])
        kl = kl_estimate(sampled, expected, self.config.kl_estimator)
        per_row = [float(part.sum()) for part in kl.split([len(row.token_ids) for row in rows])]
        return [r - self.config.kl_coef * k for r, k in zip(returns, per_row, strict=True)]

    def _update_policy(self, name: str, samples: list[Sample]) -> dict[str, float]:
        if self.config.normalize_batch:
            samples = _normalized(samples)
        weights = answer_weights([sample.completion for sample in samples], self.config)
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
        return policy_metrics(name, stats, self.config.epochs, self.optimizers[name].lr)

    def _teaches(self, sample: Sample) -> bool:
        in_loss = self.config.kl_coef > 0 and self.config.kl_in == "loss"
        return sample.advantage != 0.0 or in_loss or not self.config.skip_equal_groups

    def _loss(
        self, name: str, samples: list[Sample], weights: list[float], stats: dict[str, float]
    ) -> Tensor:
        """Return the part of the loss that these rows make up, and add to the statistics."""
        config, rows = self.config, [sample.row for sample in samples]
        completions = [sample.completion for sample in samples]
        logprobs, entropy = self.policies[name].logprobs(rows, temperature=config.temperature)
        advantages = [sample.advantage for sample in samples]
        loss = surrogate(logprobs, completions, advantages, weights, config, stats)
        if config.kl_coef and config.kl_in == "loss":
            with torch.no_grad():
                reference, _ = self.references[name].logprobs(
                    rows, temperature=config.temperature, with_entropy=False
                )
            kl = kl_estimate(logprobs, reference, config.kl_estimator)
            spread = per_token(weights, completions).to(kl.device)
            loss = loss + config.kl_coef * (spread * kl).sum()
            stats["kl_reference"] += float(kl.detach().sum())
        stats["loss"] += check_finite(loss, name)
        stats["entropy"] += float(entropy.sum())
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
    advantages = normalize([sample.advantage for sample in samples])
    return [
        replace(sample, advantage=advantage)
        for sample, advantage in zip(samples, advantages, strict=True)
    ]
