"""Update loop of the policy-gradient methods: minibatches, loss terms and optimizer steps.

A method computes an advantage for each answer; the loss of a micro-batch is in
`mlrl_learners.algorithms.answer_loss`, and the rest of an update is here. Losses are sums over
tokens weighted so that all rows of an update together are one mean, so micro-batches accumulate to
the same gradient however rows are grouped.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

import torch
from torch import Tensor

from mlrl_learners.algorithms.policy_gradient_config import PolicyGradientConfig
from mlrl_learners.engine import TokenRow
from mlrl_learners.functional.advantages import normalize
from mlrl_learners.functional.losses import kl_estimate, token_weights
from mlrl_learners.functional.minibatches import minibatches
from mlrl_learners.functional.reach import root_weight
from mlrl_learners.policies import Policy
from mlrl_learners.policies.gradient_batches import gradient_batches
from mlrl_learners.policies.optimizer import PolicyOptimizer
from mlrl_learners.processes.work_sharing import gather
from mlrl_learners.types import AgentID, Completion, Rollout

__all__ = [
    "AnswerSample",
    "AnswerT",
    "NodeSample",
    "Stats",
    "add_agent_stats",
    "advantages_of",
    "answer_weights",
    "mean_divisor",
    "old_logprobs",
    "per_token",
    "sampled_logprobs",
    "take_steps",
    "weigh_samples",
]

Stats = dict[str, float]
"""Sums over the tokens, rows and steps of an update, by name; missing names count as 0."""


class NodeSample(Protocol):
    """A sample of an agent at a node of a rollout tree, as one row of tokens."""

    @property
    def agent(self) -> AgentID:
        """Agent that the sample trains."""

    @property
    def node_weight(self) -> float:
        """Weight of the node, see `mlrl_learners.functional.reach`."""

    @property
    def row(self) -> TokenRow:
        """Prompt and completion tokens."""


@dataclass(frozen=True, slots=True)
class AnswerSample:
    """One answer with its advantage.

    Attributes:
        agent: Agent that gave the answer.
        completion: The answer.
        advantage: Advantage A of the answer.
        node_weight: Weight of the node in means over answers, see `turn_weights`.
        token_weight: Weight of each token of the answer in the policy loss.
        old_logprobs: Log-probabilities of its tokens under the policy before the update; None if
            they are those of sampling.
        token_advantages: Advantage of each token; None if it is A for all of them.
    """

    agent: AgentID
    completion: Completion
    advantage: float
    node_weight: float
    token_weight: float = 0.0
    old_logprobs: tuple[float, ...] | None = None
    token_advantages: tuple[float, ...] | None = None

    @property
    def by_token(self) -> tuple[float, ...]:
        """Advantage of each token."""
        if self.token_advantages is None:
            return (self.advantage,) * len(self.completion.token_ids)
        return self.token_advantages

    @property
    def row(self) -> TokenRow:
        """Prompt and completion tokens, with the nuclei that they were sampled from."""
        return TokenRow.sampled(self.completion)


SampleT = TypeVar("SampleT", bound=NodeSample)
AnswerT = TypeVar("AnswerT", bound=AnswerSample)


def take_steps(
    samples: Sequence[SampleT],
    loss: Callable[[list[SampleT], Stats], Tensor],
    *,
    model: Policy,
    optimizers: Mapping[str, PolicyOptimizer],
    config: PolicyGradientConfig,
    generator: torch.Generator,
) -> Stats:
    """Take `epochs * num_minibatches` optimizer steps and return the statistics of the update.

    Args:
        samples: Every sample of the update, at least one.
        loss: Returns the part of the loss that a micro-batch contributes, and adds to the
            statistics.
        model: Model whose memory limits the micro-batches.
        optimizers: Optimizers with one loss scale, by the statistic that receives their norm.
        config: Epochs, minibatches and size of micro-batches.
        generator: Shuffles minibatches.

    Raises:
        NumericsError: If a loss or gradient is not finite.
    """
    stats: Stats = defaultdict(float)
    parts: dict[tuple[int, int], Stats] = {}  # by minibatch and micro-batch
    max_tokens, every = config.compute.micro_batch_tokens, optimizers.values()
    first, *_ = every  # all of them have its loss scale
    steps = minibatches(
        samples,
        epochs=config.optimizer.epochs,
        number=config.optimizer.num_minibatches,
        generator=generator,
    )
    for step, minibatch in enumerate(steps):
        rows = [sample.row for sample in minibatch]
        for place, numbers in gradient_batches(model, rows, max_tokens, every):
            part = parts[step, place] = defaultdict(float)
            value = loss([minibatch[number] for number in numbers], part)
            # Weights are normalised over the update; scaling makes the minibatch a mean of its own.
            first.backward(value * (len(samples) / len(minibatch)))
        for name, optimizer in optimizers.items():
            stats[name] += optimizer.step()
        stats["steps"] += 1
    for sums in gather(parts).values():  # in one order, whatever the number of processes
        for name, number in sums.items():
            stats[name] += number
    return stats


def weigh_samples(
    samples: Sequence[AnswerT],
    config: PolicyGradientConfig,
    divisor: float,
    *,
    normalize_advantages: bool,
) -> list[AnswerT]:
    """Return the samples of one policy with their token weights.

    Args:
        samples: Every sample of the update, before any is left out.
        config: Kind of mean, and which answers are masked.
        divisor: From `mean_divisor`.
        normalize_advantages: Shift and scale the advantages to weighted mean 0 and deviation 1,
            over answers, or over tokens if those have advantages of their own.
    """
    node_weights = [sample.node_weight for sample in samples]
    if normalize_advantages:
        samples = _normalized(samples, node_weights)
    completions = [sample.completion for sample in samples]
    weights = answer_weights(completions, config, node_weights, divisor)
    return [
        replace(sample, token_weight=weight)
        for sample, weight in zip(samples, weights, strict=True)
    ]


def _normalized(samples: Sequence[AnswerT], weights: Sequence[float]) -> list[AnswerT]:
    if all(sample.token_advantages is None for sample in samples):
        values = normalize([sample.advantage for sample in samples], weights)
        return [replace(each, advantage=value) for each, value in zip(samples, values, strict=True)]
    given = [sample.by_token for sample in samples]
    spread = [weight for each, weight in zip(given, weights, strict=True) for _ in each]
    scaled = iter(normalize([value for each in given for value in each], spread))
    return [
        replace(sample, token_advantages=tuple(next(scaled) for _ in each))
        for sample, each in zip(samples, given, strict=True)
    ]


def answer_weights(
    completions: Sequence[Completion],
    config: PolicyGradientConfig,
    node_weights: Sequence[float] | None = None,
    divisor: float | None = None,
) -> list[float]:
    """Return the weight of each answer's tokens in the loss of an update on these answers.

    Masked answers have weight 0 and leave the weights of the others unchanged.

    Args:
        completions: Every answer of the update.
        config: Kind of mean, and which answers are masked.
        node_weights: Weight of each answer's node; 1 by default.
        divisor: From `mean_divisor`; by default the sum of the node weights.
    """
    weights = token_weights(
        [len(completion.token_ids) for completion in completions],
        config.loss.kind,
        row_weights=node_weights or [1.0] * len(completions),
        max_tokens=config.sampling.max_new_tokens,
        total_weight=divisor,
    )
    return [
        0.0 if config.is_masked(completion) else weight
        for completion, weight in zip(completions, weights, strict=True)
    ]


def mean_divisor(
    rollouts: Sequence[Rollout],
    samples: Sequence[NodeSample],
    config: PolicyGradientConfig,
    agents: Collection[AgentID],
) -> float:
    """Return the divisor of means over the answers of an update.

    With `turn_weights: reach` it is the number of answers at the roots, because the sum of the
    weights depends on the sampled actions and would bias the gradient. So would a number of agents
    without those whose turn was not reached.

    Args:
        rollouts: Rollouts of the update.
        samples: Samples of the agents that share one set of weights.
        config: Kind of node weights.
        agents: The agents that train these weights.
    """
    if config.credit.turn_weights == "nodes":
        return math.fsum(sample.node_weight for sample in samples)
    return root_weight(rollouts, agents)


def add_agent_stats(
    stats: Stats, samples: Sequence[AnswerSample], logprobs: Tensor, entropy: Tensor
) -> None:
    """Add the sums `AGENT/tokens`, `AGENT/entropy` and `AGENT/kl` of some answers.

    Args:
        stats: Statistics of the update.
        samples: The answers, B of them.
        logprobs: Log-probabilities of their tokens under the current policy, `[T]`; the divergence
            is the k3 estimate of KL(sampling policy || current policy).
        entropy: Entropy of the distribution that each token was drawn from, `[T]`.
    """
    if not samples:
        return
    names = list(dict.fromkeys(sample.agent for sample in samples))
    completions = [sample.completion for sample in samples]
    owners = per_token([names.index(sample.agent) for sample in samples], completions)
    owners = owners.to(entropy.device)
    current = logprobs.detach()
    kl = kl_estimate(sampled_logprobs(samples).to(current.device), current, "k3")
    tokens = torch.ones_like(kl)
    for kind, values in (("tokens", tokens), ("entropy", entropy.detach()), ("kl", kl)):
        sums = kl.new_zeros(len(names)).index_add(0, owners, values)
        for agent, total in zip(names, sums.tolist(), strict=True):
            stats[f"{agent}/{kind}"] += total


def per_token(values: Sequence[float], completions: Sequence[Completion]) -> Tensor:
    """Repeat each answer's value for its tokens, `[B] -> [T]`."""
    lengths = torch.tensor([len(each.token_ids) for each in completions], dtype=torch.long)
    return torch.tensor(values).repeat_interleave(lengths)


def advantages_of(samples: Sequence[AnswerSample]) -> Tensor:
    """Return the advantage of each token, `[T]`."""
    return torch.tensor([value for sample in samples for value in sample.by_token])


def old_logprobs(samples: Sequence[AnswerSample]) -> Tensor:
    """Return the log-probabilities under the policy before the update, log pi_old, `[T]`."""
    return torch.tensor(
        [
            logprob
            for sample in samples
            for logprob in (
                sample.completion.logprobs if sample.old_logprobs is None else sample.old_logprobs
            )
        ]
    )


def sampled_logprobs(samples: Sequence[AnswerSample]) -> Tensor:
    """Return the log-probabilities that tokens were sampled with, `[T]`."""
    return torch.tensor([lp for sample in samples for lp in sample.completion.logprobs])
