"""MAGRPO and its family: group-relative policy gradients for teams, without a critic.

Each agent's answers to one prompt form a group; what an answer is worth is its return less a
baseline of its group. `mareinforce`, `marloo` and `maremax` are the same file with another
baseline.

Sources: MAGRPO (arXiv 2508.04652); clipping as in PPO (arXiv 1707.06347); KL estimators as in
`mlrl_learners.functional.losses`.
"""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from mlrl_learners.algorithms.metrics import group_metrics, policy_metrics
from mlrl_learners.algorithms.team import Team, TeamConfig
from mlrl_learners.errors import ConfigError, NumericsError
from mlrl_learners.functional.advantages import Baseline, group_advantages
from mlrl_learners.functional.logprobs import TokenRow
from mlrl_learners.functional.losses import (
    KlEstimator,
    LossKind,
    kl_estimate,
    policy_loss,
    token_weights,
)
from mlrl_learners.functional.returns import Group, rollout_groups
from mlrl_learners.options import check_options
from mlrl_learners.policies import ModelSource
from mlrl_learners.types import AgentID, Branching, Completion, JointMode, Rollout, RolloutConfig

__all__ = [
    "Magrpo",
    "MagrpoConfig",
    "make_magrpo",
    "make_mareinforce",
    "make_maremax",
    "make_marloo",
]


@dataclass(frozen=True)
class MagrpoConfig(TeamConfig):
    """What MAGRPO does with the answers.

    Attributes:
        group_size: Answers an agent gives to one prompt, G, at least 1 (2 for a baseline).
        joint_mode: `"aligned"` plays the j-th answers together, `"cross"` every combination.
        branching: `"tree"` goes on from every joint action, `"chain"` from one of them.
        gamma: Discount a turn, in [0, 1].
        baseline: What is subtracted from returns: `mean`, `none`, `leave_one_out` or `max`.
        normalize_std: Divide advantages by the standard deviation of their group.
        loss: `grpo`, `token_mean`, `dr_grpo`, `sequence` or `gspo`.
        clip_low: The ratio counts down to 1 - clip_low.
        clip_high: The ratio counts up to 1 + clip_high.
        kl_coef: Weight of the KL divergence to the starting weights; 0 keeps no reference.
        kl_estimator: `k1`, `k2` or `k3`.
        kl_in: Whether the divergence is part of the `loss` or taken off the `reward`.
        epochs: Passes over the same rollouts.
        num_minibatches: Optimizer steps a pass.
        skip_equal_groups: Leave out answers whose advantage is 0 before any forward pass.
    """

    group_size: int = 4
    joint_mode: JointMode = "aligned"
    branching: Branching = "tree"
    gamma: float = 1.0
    baseline: Baseline = "mean"
    normalize_std: bool = False
    loss: LossKind = "grpo"
    clip_low: float = 0.2
    clip_high: float = 0.2
    kl_coef: float = 0.0
    kl_estimator: KlEstimator = "k3"
    kl_in: Literal["loss", "reward"] = "loss"
    epochs: int = 1
    num_minibatches: int = 1
    skip_equal_groups: bool = True

    def __post_init__(self) -> None:
        """Check ranges.

        Raises:
            ConfigError: If a value is outside its range.
        """
        super().__post_init__()
        for name in ("group_size", "epochs", "num_minibatches"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} must be at least 1, got {getattr(self, name)}")
        for name in ("gamma", "clip_low"):
            if not 0 <= getattr(self, name) <= 1:
                raise ConfigError(f"{name} must be in [0, 1], got {getattr(self, name)}")
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
        samples = [sample for group in groups for sample in self._samples(group)]
        metrics = group_metrics(groups)
        for name in self.policies:
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
        weights = _sample_weights(samples, self.config)
        keep = [i for i, sample in enumerate(samples) if self._teaches(sample)]
        if not keep:
            return {}
        stats: dict[str, float] = defaultdict(float)
        for minibatch in self._minibatches(keep):
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

    def _minibatches(self, indices: list[int]) -> Iterator[list[int]]:
        """Yield the optimizer steps' rows: all, or shuffled parts of like size, every epoch."""
        parts = min(self.config.num_minibatches, len(indices))
        for _ in range(self.config.epochs):
            if parts == 1:
                yield indices
                continue
            order = torch.randperm(len(indices), generator=self.generator).tolist()
            yield from ([indices[i] for i in order[part::parts]] for part in range(parts))

    def _loss(
        self, name: str, samples: list[Sample], weights: list[float], stats: dict[str, float]
    ) -> Tensor:
        """Return the part of the loss that these rows make up, and add to the statistics."""
        config, rows = self.config, [sample.row for sample in samples]
        lengths = torch.tensor([len(row.token_ids) for row in rows])
        logprobs, entropy = self.policies[name].logprobs(rows, temperature=config.temperature)

        def per_token(values: Sequence[float]) -> Tensor:  # [B] -> [T]
            return torch.tensor(values).repeat_interleave(lengths).to(logprobs.device)

        old = torch.tensor([lp for s in samples for lp in s.completion.logprobs])
        result = policy_loss(
            logprobs,
            old.to(logprobs.device),
            per_token([sample.advantage for sample in samples]),
            per_token(weights),
            torch.arange(len(rows)).repeat_interleave(lengths).to(logprobs.device),
            kind=config.loss,
            clip_low=config.clip_low,
            clip_high=config.clip_high,
        )
        loss = result.loss
        if config.kl_coef and config.kl_in == "loss":
            with torch.no_grad():
                reference, _ = self.references[name].logprobs(
                    rows, temperature=config.temperature, with_entropy=False
                )
            kl = kl_estimate(logprobs, reference, config.kl_estimator)
            loss = loss + config.kl_coef * (per_token(weights) * kl).sum()
            stats["kl_reference"] += float(kl.detach().sum())
        if not math.isfinite(float(loss.detach())):
            raise NumericsError(f"the loss of {name!r} is {float(loss.detach())}")
        stats["loss"] += float(loss.detach())
        stats["kl"] += float(result.kl_sum)
        stats["clipped"] += float(result.clipped)
        stats["entropy"] += float(entropy.sum())
        stats["tokens"] += float(lengths.sum())
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


def _sample_weights(samples: Sequence[Sample], config: MagrpoConfig) -> list[float]:
    lengths = [len(sample.completion.token_ids) for sample in samples]
    return token_weights(
        lengths,
        config.loss,
        num_rows=len(samples),
        max_tokens=config.max_new_tokens,
        num_tokens=sum(lengths),
    )
