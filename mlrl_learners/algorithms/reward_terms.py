"""Reward terms (credit, truncation penalty, KL charge) and the KL term of the loss.

Every term of the reward is applied in the turn of its answer, so that the returns, advantages and
value targets of that turn and of earlier turns include it.

Where tokens are sampled with top-p or top-k, the KL term of the loss compares the distributions
renormalised over the nuclei, as the policy gradient does. The KL charge in the reward has no
gradient and compares the whole distributions, because over a nucleus of one token the divergence
is always 0. It is that of the policy before the update: with importance weights its
log-probabilities are recomputed, because those of the answers are another sampler's, and so they
are below float32, because sampling rounds in another way than the reference.

Sources: KL in the reward as in RLHF (arXiv 2203.02155), in the loss as in GRPO (arXiv 2402.03300);
masking or penalising long answers as in DAPO (arXiv 2503.14476).
"""

import math
from collections.abc import Iterable, Mapping, Sequence

import torch
from torch import Tensor

from mlrl_learners.algorithms.policy_gradient_config import PolicyGradientConfig
from mlrl_learners.algorithms.policy_gradient_options import CreditOptions
from mlrl_learners.algorithms.policy_update import AnswerSample, Stats, old_logprobs, per_token
from mlrl_learners.algorithms.team_models import reference_policies
from mlrl_learners.engine import TokenRow
from mlrl_learners.functional.credit import outcome_rewards, team_rewards, with_rewards
from mlrl_learners.functional.losses import kl_estimate, kl_of_old_samples
from mlrl_learners.functional.overlong import overlong_term
from mlrl_learners.functional.shaping import history_rewards, mixed_rewards
from mlrl_learners.policies import ModelSource, Policy
from mlrl_learners.processes.work_sharing import gather
from mlrl_learners.types import AgentID, Completion, JointStep, Node, Rollout

__all__ = ["RewardTerms", "credited"]


class RewardTerms:
    """Terms added to rewards and losses, with the frozen reference policies they need.

    Args:
        policies: Trained policies by name, with their starting weights.
        policy_of: Name of each agent's policy.
        config: Credit, penalty and KL options.
        sources: Model that each policy starts from; policies of equal sources share a reference.

    Attributes:
        config: The options.
        token_charges: KL charge of each token of the answers of the last `apply`; empty unless
            `penalty.kl_in` is `token`.
    """

    def __init__(
        self,
        policies: Mapping[str, Policy],
        policy_of: Mapping[AgentID, str],
        config: PolicyGradientConfig,
        sources: Mapping[str, ModelSource] | None = None,
    ) -> None:
        self.config, self._policy_of = config, policy_of
        self.token_charges: Mapping[tuple[AgentID, Completion], Sequence[float]] = {}
        self._policies = policies
        used = policies if config.penalty.kl_coef else {}
        self._references = reference_policies(used, sources or {})

    @property
    def in_loss(self) -> bool:
        """Whether the KL term is part of the loss."""
        return self.config.penalty.kl_coef > 0 and self.config.penalty.kl_in == "loss"

    def apply(self, rollouts: Sequence[Rollout]) -> Sequence[Rollout]:
        """Return the rollouts with the rewards that the learner trains on."""
        rollouts = [credited(rollout, self.config.credit) for rollout in rollouts]
        penalty = self.config.penalty.overlong_penalty
        of_tokens = self._kl_charges(rollouts)
        self.token_charges = of_tokens if self.config.penalty.kl_in == "token" else {}
        charges = {key: math.fsum(each) for key, each in of_tokens.items()}
        if not penalty and not charges:
            return rollouts

        def charged(node: Node, step: JointStep, agent: AgentID) -> float:
            if agent not in step.samples:  # rewarded without having acted
                return step.rewards[agent]
            answer = node.completions[agent][step.samples[agent]]
            return (
                step.rewards[agent]
                - self._length_penalty(answer)
                - charges.get((agent, answer), 0.0)
            )

        return [with_rewards(rollout, charged) for rollout in rollouts]

    def kl_loss(
        self, name: str, logprobs: Tensor, samples: Sequence[AnswerSample], stats: Stats
    ) -> Tensor:
        """Return kl_coef * sum(w * KL estimate) over the tokens of some answers, a scalar.

        Args:
            name: Policy that gave the answers.
            logprobs: Log-probabilities of their tokens under the current policy, `[T]`.
            samples: The answers, B of them, with their token weights w.
            stats: Receives the sum of the estimates as `kl_reference`.
        """
        config = self.config
        with torch.no_grad():
            reference = self._logprobs(self._references[name], [sample.row for sample in samples])
        estimator = config.penalty.kl_estimator
        if config.penalty.kl_weighted:
            old = old_logprobs(samples).to(logprobs.device)
            kl = kl_of_old_samples(logprobs, old, reference, estimator)
        else:
            kl = kl_estimate(logprobs, reference, estimator)
        stats["kl_reference"] += float(kl.detach().sum())
        weights = [sample.token_weight for sample in samples]
        completions = [sample.completion for sample in samples]
        return config.penalty.kl_coef * (per_token(weights, completions).to(kl.device) * kl).sum()

    def _length_penalty(self, answer: Completion) -> float:
        """Return what an answer loses for its length, in units of the reward."""
        penalty = self.config.penalty
        if penalty.overlong == "soft":
            limit = self.config.sampling.max_new_tokens
            length = min(len(answer.token_ids), limit)
            return -penalty.overlong_penalty * overlong_term(length, limit, penalty.overlong_buffer)
        return penalty.overlong_penalty if answer.finish_reason == "length" else 0.0

    def _kl_charges(
        self, rollouts: Sequence[Rollout]
    ) -> dict[tuple[AgentID, Completion], list[float]]:
        """Return kl_coef times the KL estimate at each token of each answer; empty without it."""
        if not self.config.penalty.kl_coef or self.in_loss:
            return {}
        charges: dict[tuple[AgentID, Completion], list[float]] = {}
        for name in self._references:
            given = dict.fromkeys(
                (agent, answer)
                for agent, answer in _answers(rollouts)
                if self._policy_of[agent] == name
            )
            charges |= self._policy_charges(name, list(given))
        return charges

    @torch.no_grad()
    def _policy_charges(
        self, name: str, given: Sequence[tuple[AgentID, Completion]]
    ) -> dict[tuple[AgentID, Completion], list[float]]:
        policy, reference, config = self._policies[name], self._references[name], self.config
        recomputes = config.importance.correction != "none" or policy.is_rounded
        charges: dict[int, list[float]] = {}
        rows = [TokenRow(answer.prompt_ids, answer.token_ids) for _, answer in given]
        for numbers in reference.micro_batches(rows, config.compute.micro_batch_tokens):
            mine = [rows[i] for i in numbers]
            expected = self._logprobs(reference, mine)
            if recomputes:
                own = self._logprobs(policy, mine)
            else:
                answers = [given[i][1] for i in numbers]
                own = expected.new_tensor([lp for each in answers for lp in _full_logprobs(each)])
            kl = kl_estimate(own, expected, config.penalty.kl_estimator)
            parts = (config.penalty.kl_coef * kl).split([len(rows[i].token_ids) for i in numbers])
            charges |= zip(numbers, (part.tolist() for part in parts), strict=True)
        return {given[i]: charge for i, charge in gather(charges).items()}

    def _logprobs(self, policy: Policy, rows: Sequence[TokenRow]) -> Tensor:
        temperature = self.config.sampling.temperature
        return policy.logprobs(rows, temperature=temperature, with_entropy=False)[0]


def credited(rollout: Rollout, credit: CreditOptions) -> Rollout:
    """Return a rollout with the rewards that the kind of credit gives."""
    if credit.kind == "outcome":
        return outcome_rewards(rollout)
    if credit.kind == "team":
        return team_rewards(rollout)
    if credit.kind == "mixed":
        return mixed_rewards(rollout, credit.term_weight)
    if credit.kind == "quality" or credit.kind == "margin":
        return history_rewards(rollout, credit.kind, credit.term_weight)
    return rollout


def _full_logprobs(answer: Completion) -> Sequence[float]:
    """Return the log-probabilities of an answer's tokens before truncation to nuclei."""
    if answer.nucleus is None:
        return answer.logprobs
    log_masses = answer.nucleus.log_masses.tolist()
    return [lp + mass for lp, mass in zip(answer.logprobs, log_masses, strict=True)]


def _answers(rollouts: Sequence[Rollout]) -> Iterable[tuple[AgentID, Completion]]:
    for rollout in rollouts:
        for node in rollout.root.walk():
            for agent, completions in node.completions.items():
                yield from ((agent, completion) for completion in completions)
