"""What rewards become before a policy learns from them, and what holds it near where it started.

Every charge is taken off the reward of the turn in which the answer was given, so that returns,
advantages and value targets of that turn and of those before it all know of it.

Where tokens are drawn from nuclei, the divergence in the loss is that between the distributions
renormalised over them, as is all that a gradient is taken of. The divergence in the reward is a
number: it compares the whole distributions, as otherwise a nucleus of one token would cost nothing,
however unlikely that token was at the start.

Sources: the divergence in the reward as in RLHF (arXiv 2203.02155), in the loss as in GRPO
(arXiv 2402.03300); leaving cut answers out, or charging for them, as in DAPO (arXiv 2503.14476).
"""

from collections.abc import Iterable, Mapping, Sequence

import torch
from torch import Tensor

from mlrl_learners.algorithms.policy_gradient import PolicyGradientConfig, per_token
from mlrl_learners.engine import TokenRow
from mlrl_learners.functional.credit import outcome_rewards, with_rewards
from mlrl_learners.functional.losses import kl_estimate
from mlrl_learners.policies import Policy
from mlrl_learners.processes.work_sharing import gather
from mlrl_learners.types import AgentID, Completion, JointStep, Node, Rollout

__all__ = ["Shaping"]


class Shaping:
    """Credit by outcome, charges for overlong answers, and the divergence from the start.

    Args:
        policies: Those that learn, as they are at the start.
        policy_of: For each agent, the name of its policy.
        config: What is done to rewards, and how far a policy may go.
    """

    def __init__(
        self,
        policies: Mapping[str, Policy],
        policy_of: Mapping[AgentID, str],
        config: PolicyGradientConfig,
    ) -> None:
        self._config, self._policy_of = config, policy_of
        self._references = {
            name: policy.frozen_copy() for name, policy in policies.items() if config.kl_coef
        }

    @property
    def in_loss(self) -> bool:
        """Whether the divergence is part of the loss."""
        return self._config.kl_coef > 0 and self._config.kl_in == "loss"

    def rewarded(self, rollouts: Sequence[Rollout]) -> Sequence[Rollout]:
        """Return the rollouts with the rewards that are learnt from."""
        if self._config.credit == "outcome":
            rollouts = [outcome_rewards(rollout) for rollout in rollouts]
        penalty = self._config.overlong_penalty
        divergences = self._divergences(rollouts)
        if not penalty and not divergences:
            return rollouts

        def charged(node: Node, step: JointStep, agent: AgentID) -> float:
            if agent not in step.samples:  # rewarded for what others did
                return step.rewards[agent]
            answer = node.completions[agent][step.samples[agent]]
            cut = penalty if answer.finish_reason == "length" else 0.0
            return step.rewards[agent] - cut - divergences.get((agent, answer), 0.0)

        return [with_rewards(rollout, charged) for rollout in rollouts]

    def divergence_loss(
        self,
        name: str,
        logprobs: Tensor,
        completions: Sequence[Completion],
        weights: Sequence[float],
        stats: dict[str, float],
    ) -> Tensor:
        """Return kl_coef * sum(w * KL estimate) of some answers, and add to the sum `kl_reference`.

        Args:
            name: Whose answers.
            logprobs: Log-probabilities of their tokens now, `[T]`.
            completions: The answers, B of them.
            weights: From `answer_weights`.
            stats: The statistics of the update.
        """
        config = self._config
        with torch.no_grad():
            reference, _ = self._references[name].logprobs(
                [TokenRow.sampled(each) for each in completions],
                temperature=config.temperature,
                with_entropy=False,
            )
        kl = kl_estimate(logprobs, reference, config.kl_estimator)
        stats["kl_reference"] += float(kl.detach().sum())
        return config.kl_coef * (per_token(weights, completions).to(kl.device) * kl).sum()

    def _divergences(self, rollouts: Sequence[Rollout]) -> dict[tuple[AgentID, Completion], float]:
        """Return kl_coef * sum over tokens of the KL estimate of each answer, if it is charged."""
        if not self._config.kl_coef or self.in_loss:
            return {}
        charges: dict[tuple[AgentID, Completion], float] = {}
        for name in self._references:
            given = dict.fromkeys(
                (agent, answer)
                for agent, answer in _answers(rollouts)
                if self._policy_of[agent] == name
            )
            charges |= self._charges(name, list(given))
        return charges

    @torch.no_grad()
    def _charges(
        self, name: str, given: Sequence[tuple[AgentID, Completion]]
    ) -> dict[tuple[AgentID, Completion], float]:
        reference, config = self._references[name], self._config
        charges: dict[int, float] = {}
        rows = [TokenRow(answer.prompt_ids, answer.token_ids) for _, answer in given]
        for numbers in reference.micro_batches(rows, config.micro_batch_tokens):
            expected, _ = reference.logprobs(
                [rows[i] for i in numbers], temperature=config.temperature, with_entropy=False
            )
            answers = [given[i][1] for i in numbers]
            sampled = expected.new_tensor([lp for each in answers for lp in _whole_logprobs(each)])
            kl = kl_estimate(sampled, expected, config.kl_estimator)
            parts = kl.split([len(rows[i].token_ids) for i in numbers])
            totals = [config.kl_coef * float(part.sum()) for part in parts]
            charges |= zip(numbers, totals, strict=True)
        return {given[i]: charge for i, charge in gather(charges).items()}


def _whole_logprobs(answer: Completion) -> Sequence[float]:
    """Return log-probabilities of an answer's tokens in the whole distribution it was cut from."""
    if answer.nucleus is None:
        return answer.logprobs
    log_masses = answer.nucleus.log_masses.tolist()
    return [lp + mass for lp, mass in zip(answer.logprobs, log_masses, strict=True)]


def _answers(rollouts: Sequence[Rollout]) -> Iterable[tuple[AgentID, Completion]]:
    for rollout in rollouts:
        for node in rollout.root.walk():
            for agent, completions in node.completions.items():
                yield from ((agent, completion) for completion in completions)
