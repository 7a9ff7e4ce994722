"""Options, minibatches and the clipped surrogate of policy-gradient methods.

What is done to rewards before, and what holds a policy near where it started, is in
`mlrl_learners.algorithms.reward_terms`. What an answer is worth is what tells the methods apart.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

import torch
from torch import Tensor

from mlrl_learners.algorithms.team import TeamConfig
from mlrl_learners.config.options import check_unread
from mlrl_learners.errors import ConfigError, NumericsError
from mlrl_learners.functional.credit import Credit
from mlrl_learners.functional.losses import KlEstimator, LossKind, kl_estimate, policy_loss
from mlrl_learners.functional.reach import TurnWeights
from mlrl_learners.types import AgentID, Branching, Completion, JointMode, RolloutConfig

__all__ = [
    "PolicyGradientConfig",
    "check_finite",
    "count_by_agent",
    "minibatches",
    "per_token",
    "surrogate",
]

Row = TypeVar("Row")
GSPO_CLIPS = (3e-4, 4e-4)  # arXiv 2507.18071, section 5.1: of the mean of a whole answer's ratios


@dataclass(frozen=True)
class PolicyGradientConfig(TeamConfig):
    """How rollouts are walked, and what is done with what their answers are worth.

    Attributes:
        group_size: Answers an agent gives to one prompt, G, at least 1.
        joint_mode: `"aligned"` plays the j-th answers together, `"cross"` every combination.
        branching: `"tree"` goes on from every joint action, `"chain"` from one of them.
        turn_weights: `reach` weighs answers by the probability of reaching their node, so that
            the gradient is that of the return; `nodes` weighs all answers alike, as published
            libraries do, so that later turns of a tree count more than earlier ones.
        gamma: Discount a turn, in [0, 1].
        loss: `grpo`, `token_mean`, `dr_grpo`, `sequence` or `gspo`.
        clip_low: The ratio counts down to 1 - clip_low, in [0, 1]; 1 for no limit, null for the
            loss's own: 0.2, and 3e-4 for `gspo` (arXiv 2507.18071).
        clip_high: The ratio counts up to 1 + clip_high, at least 0; `inf` for no limit, null for
            the loss's own: 0.2, and 4e-4 for `gspo`.
        epochs: Passes over the same rollouts, at least 1.
        num_minibatches: Optimizer steps a pass, at least 1.
        credit: What of a joint answer's worth is put down to one agent's part: `shared`, all of
            it; `outcome`, all of what the line of play ended with, and nothing paid on the way;
            `difference`, how much more than with another answer of the agent beside the same
            answers of the others, which takes `joint_mode: cross`; `leave_one_out`, how much more
            than the other joint answers.
        overlong: What becomes of answers that the limit cut: `keep` trains on them like on others,
            `mask` leaves them out of the policy's loss, `penalize` takes `overlong_penalty` off
            their reward.
        overlong_penalty: What being cut costs an agent, above 0 where it is used.
        kl_coef: Weight of the KL divergence to the starting weights; 0 keeps no reference.
        kl_estimator: `k1`, `k2` or `k3`.
        kl_in: Whether the divergence is part of the `loss` or taken off the `reward`.
    """

    group_size: int = 4
    joint_mode: JointMode = "aligned"
    branching: Branching = "tree"
    turn_weights: TurnWeights = "reach"
    gamma: float = 1.0
    loss: LossKind = "grpo"
    clip_low: float | None = None
    clip_high: float | None = None
    epochs: int = 1
    num_minibatches: int = 1
    credit: Credit = "shared"
    overlong: Literal["keep", "mask", "penalize"] = "keep"
    overlong_penalty: float = 0.0
    kl_coef: float = 0.0
    kl_estimator: KlEstimator = "k3"
    kl_in: Literal["loss", "reward"] = "loss"

    def __post_init__(self) -> None:
        """Check ranges, and that no option is set that has no effect.

        Raises:
            ConfigError: If a value is outside its range, or another one makes it meaningless.
        """
        super().__post_init__()
        for name in ("group_size", "epochs", "num_minibatches"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} must be at least 1, got {getattr(self, name)}")
        for name in ("gamma", "clip_low"):
            value = getattr(self, name)
            if value is not None and not 0 <= value <= 1:
                raise ConfigError(f"{name} must be in [0, 1], got {value}")
        for name in ("clip_high", "kl_coef"):
            value = getattr(self, name)
            if value is not None and not value >= 0:
                raise ConfigError(f"{name} must be at least 0, got {value}")
        if self.turn_weights not in ("reach", "nodes"):
            raise ConfigError(f"turn_weights must be reach or nodes, got {self.turn_weights!r}")
        if (self.overlong == "penalize") != (self.overlong_penalty > 0):
            raise ConfigError(
                "overlong_penalty must be above 0 for overlong penalize, and 0 otherwise, got "
                f"{self.overlong_penalty} for {self.overlong}"
            )
        if not self.kl_coef:
            check_unread(self, ("kl_estimator", "kl_in"), "kl_coef 0: set kl_coef above 0")
        # A run's rollout section may cross answers that the learner's options do not.
        self.check_rollout(RolloutConfig(self.group_size, "cross", self.branching))

    @property
    def clips(self) -> tuple[float, float]:
        """How far ratios count, below and above 1: what was set, or else the loss's own."""
        low, high = self.own_clips()
        return (
            low if self.clip_low is None else self.clip_low,
            high if self.clip_high is None else self.clip_high,
        )

    def own_clips(self) -> tuple[float, float]:
        """Return the clip range of the loss that applies where none is set."""
        return GSPO_CLIPS if self.loss == "gspo" else (0.2, 0.2)

    @property
    def steps_per_update(self) -> int:
        """Most optimizer steps that one update takes."""
        return self.epochs * self.num_minibatches

    def check_rollout(self, rollout: RolloutConfig) -> None:
        """Check that a walk has the joint answers that `credit` compares.

        Raises:
            ConfigError: If `credit` is `difference` and answers are not crossed, or `credit`
                compares answers and there is one a prompt.
        """
        size = rollout.num_samples
        if self.credit == "difference" and (rollout.joint_mode != "cross" or size < 2):
            raise ConfigError(
                "credit difference compares joint answers of which one agent's part differs: it "
                "takes joint_mode cross and a group_size of at least 2, got "
                f"{rollout.joint_mode} and {size}"
            )
        if self.credit == "leave_one_out" and size < 2:
            raise ConfigError(
                "group_size or rollout.num_samples must be at least 2 for credit leave_one_out, "
                f"which compares joint answers to the same prompts, got {size}"
            )

    def is_masked(self, completion: Completion) -> bool:
        """Return whether an answer is left out of the policy's loss."""
        return self.overlong == "mask" and completion.finish_reason == "length"


def minibatches(
    rows: Sequence[Row], config: PolicyGradientConfig, generator: torch.Generator
) -> Iterator[list[Row]]:
    """Yield the optimizer steps' rows: all, or shuffled parts of like size, every epoch."""
    parts = min(config.num_minibatches, len(rows))
    for _ in range(config.epochs):
        if parts == 1:
            yield list(rows)
            continue
        order = torch.randperm(len(rows), generator=generator).tolist()
        yield from ([rows[i] for i in order[part::parts]] for part in range(parts))


def per_token(values: Sequence[float], completions: Sequence[Completion]) -> Tensor:
    """Repeat each answer's value for its tokens, `[B] -> [T]`."""
    lengths = torch.tensor([len(each.token_ids) for each in completions], dtype=torch.long)
    return torch.tensor(values).repeat_interleave(lengths)


def surrogate(
    logprobs: Tensor,
    completions: Sequence[Completion],
    advantages: Sequence[float],
    weights: Sequence[float],
    config: PolicyGradientConfig,
    stats: dict[str, float],
) -> Tensor:
    """Return the clipped surrogate of some answers, and add to the statistics of the update.

    Args:
        logprobs: Log-probabilities of the answers' tokens now, `[T]`.
        completions: The answers, B of them.
        advantages: What each is worth.
        weights: From `answer_weights`.
        config: Which mean, and how far ratios count.
        stats: Its sums `clipped` and `tokens` grow.
    """
    rows = per_token(range(len(completions)), completions)
    clip_low, clip_high = config.clips
    result = policy_loss(
        logprobs,
        _sampled(completions).to(logprobs.device),
        per_token(advantages, completions).to(logprobs.device),
        per_token(weights, completions).to(logprobs.device),
        rows.to(logprobs.device),
        kind=config.loss,
        clip_low=clip_low,
        clip_high=clip_high,
    )
    stats["clipped"] += float(result.clipped)
    stats["tokens"] += float(len(rows))
    return result.loss


def count_by_agent(
    stats: dict[str, float],
    agents: Sequence[AgentID],
    completions: Sequence[Completion],
    logprobs: Tensor,
    entropy: Tensor,
) -> None:
    """Add to an update's sums `AGENT/tokens`, `AGENT/entropy` and `AGENT/kl`.

    Args:
        stats: Its sums grow.
        agents: Whose answers they are, B names.
        completions: The answers, B of them.
        logprobs: Log-probabilities of their tokens now, `[T]`; the divergence is k3's estimate of
            KL(sampled || now).
        entropy: Entropies where they were written, `[T]`.
    """
    if not completions:
        return
    names = list(dict.fromkeys(agents))
    owners = per_token([names.index(agent) for agent in agents], completions).to(entropy.device)
    now = logprobs.detach()
    kl = kl_estimate(_sampled(completions).to(now.device), now, "k3")
    for kind, values in (
        ("tokens", torch.ones_like(kl)),
        ("entropy", entropy.detach()),
        ("kl", kl),
    ):
        sums = kl.new_zeros(len(names)).index_add(0, owners, values)
        for agent, total in zip(names, sums.tolist(), strict=True):
            stats[f"{agent}/{kind}"] += total


def check_finite(loss: Tensor, whose: str) -> float:
    """Return a loss as a number.

    Raises:
        NumericsError: If it is not finite.
    """
    value = float(loss.detach())
    if not math.isfinite(value):
        raise NumericsError(f"the loss of {whose!r} is {value}")
    return value


def _sampled(completions: Sequence[Completion]) -> Tensor:
    """Return the log-probabilities that tokens were sampled with, `[T]`."""
    return torch.tensor([lp for completion in completions for lp in completion.logprobs])
