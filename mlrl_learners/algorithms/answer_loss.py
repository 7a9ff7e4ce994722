"""Loss of a micro-batch of answers, the one place that combines its terms.

The terms are the surrogate with its importance weights, the entropy bonus and the KL term. All are
sums over tokens with the token weights of the answers. The importance weights apply to the
surrogate alone.
"""

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from mlrl_learners.algorithms.policy_gradient_config import PolicyGradientConfig
from mlrl_learners.algorithms.policy_update import (
    AnswerSample,
    AnswerT,
    Stats,
    add_agent_stats,
    advantages_of,
    old_logprobs,
    per_token,
    sampled_logprobs,
)
from mlrl_learners.algorithms.reward_terms import RewardTerms
from mlrl_learners.functional.importance import importance_weights
from mlrl_learners.functional.losses import (
    PolicyLoss,
    check_finite,
    cispo_loss,
    kl_estimate,
    policy_loss,
)
from mlrl_learners.functional.ratio_histogram import add_ratios
from mlrl_learners.policies import Policy
from mlrl_learners.processes.work_sharing import gather

__all__ = ["CISPO_CAP", "answer_loss", "surrogate", "with_old_logprobs"]

CISPO_CAP = 5.0


def answer_loss(
    name: str,
    samples: Sequence[AnswerSample],
    logprobs: Tensor,
    entropy: Tensor,
    terms: RewardTerms,
    stats: Stats,
) -> Tensor:
    """Return the loss of some answers, a scalar with a gradient.

    Args:
        name: Policy that gave the answers.
        samples: The answers, B of them, with their token weights.
        logprobs: Log-probabilities of their tokens under the current policy, `[T]`.
        entropy: Entropy of the distribution that each token was drawn from, `[T]`; with a gradient
            if `penalty.entropy_coef` is above 0.
        terms: KL term, and the options.
        stats: Receives the sums over tokens, and `loss`.

    Raises:
        NumericsError: If the loss is not finite.
    """
    loss = surrogate(logprobs, samples, terms.config, stats)
    coefficient = terms.config.penalty.entropy_coef
    if coefficient:
        weights = per_token([s.token_weight for s in samples], [s.completion for s in samples])
        loss = loss - coefficient * (weights.to(entropy.device) * entropy).sum()
    if terms.in_loss:
        loss = loss + terms.kl_loss(name, logprobs, samples, stats)
    add_agent_stats(stats, samples, logprobs, entropy)
    stats["loss"] += check_finite(loss, name)
    return loss


def surrogate(
    logprobs: Tensor, samples: Sequence[AnswerSample], config: PolicyGradientConfig, stats: Stats
) -> Tensor:
    """Return the surrogate loss of some answers, a scalar with a gradient.

    Args:
        logprobs: Log-probabilities of the answers' tokens under the current policy, `[T]`.
        samples: The answers, B of them, with their token weights.
        config: Loss, clip range and importance weights.
        stats: Receives `clipped` and `tokens`, and with importance weights `importance_cut`, the
            tokens whose weight is not their ratio, `kl_sampler`, the k3 estimate of
            KL(sampler || policy before the update), and the counts of `ratio_histogram`.
    """
    completions = [sample.completion for sample in samples]
    rows = per_token(range(len(completions)), completions).to(logprobs.device)
    weights = per_token([sample.token_weight for sample in samples], completions)
    weights = weights.to(logprobs.device)
    old = old_logprobs(samples).to(logprobs.device)
    mode = config.importance.correction
    if mode != "none":
        sampler = sampled_logprobs(samples).to(old.device)
        found = importance_weights(
            old, sampler, rows, mode=mode, cap=config.importance.cap, veto=config.importance.veto
        )
        weights = weights * found.weights
        stats["importance_cut"] += float(found.cut.sum())
        stats["kl_sampler"] += float(kl_estimate(sampler, old, "k3").sum())
        add_ratios(stats, old - sampler)
    advantages = advantages_of(samples).to(logprobs.device)
    result = _policy_loss(logprobs, old, advantages, weights, rows, config)
    stats["clipped"] += float(result.clipped)
    stats["tokens"] += float(len(rows))
    return result.loss


@torch.no_grad()
def with_old_logprobs(
    samples: Sequence[AnswerT], model: Policy, config: PolicyGradientConfig
) -> list[AnswerT]:
    """Return the samples with log-probabilities under the policy before the update.

    Without a correction they are those of sampling, and the samples are returned as they are. With
    `gspo` they are computed below float32 too: rounding exceeds its clip range.

    Args:
        samples: Every sample of the update.
        model: The policy before the first optimizer step.
        config: Importance weights, temperature and size of micro-batches.
    """
    is_needed = config.loss.kind == "gspo" and model.is_rounded
    if config.importance.correction == "none" and not is_needed:
        return list(samples)
    rows = [sample.row for sample in samples]
    found: dict[int, tuple[float, ...]] = {}
    for numbers in model.micro_batches(rows, config.compute.micro_batch_tokens):
        logprobs, _ = model.logprobs(
            [rows[i] for i in numbers], temperature=config.sampling.temperature, with_entropy=False
        )
        parts = logprobs.split([len(rows[i].token_ids) for i in numbers])
        found |= {i: tuple(part.tolist()) for i, part in zip(numbers, parts, strict=True)}
    found = gather(found)
    return [replace(sample, old_logprobs=found[i]) for i, sample in enumerate(samples)]


def _policy_loss(
    logprobs: Tensor,
    old: Tensor,
    advantages: Tensor,
    weights: Tensor,
    rows: Tensor,
    config: PolicyGradientConfig,
) -> PolicyLoss:
    loss = config.loss
    if loss.surrogate == "cispo":
        cap = CISPO_CAP if loss.ratio_cap is None else loss.ratio_cap
        return cispo_loss(logprobs, old, advantages, weights, ratio_cap=cap)
    clip_low, clip_high = config.clips
    return policy_loss(
        logprobs,
        old,
        advantages,
        weights,
        rows,
        kind=loss.kind,
        clip_low=clip_low,
        clip_high=clip_high,
        ratio_cap=loss.ratio_cap,
    )
