"""Actor-critic methods for teams: PPO with a critic an agent, one for all, or a head on the actor.

A turn is one action. What it is worth is its advantage over the critic's expectation, estimated
over turns (`functional.gae`) with the critic as it was when the rollouts were played; the loss is
the clipped surrogate over the completion's tokens. `ippo`, `mappo`, `iac`, `maac` and `ppo` are
settings of this one file.

Sources: PPO (arXiv 1707.06347), IPPO (arXiv 2011.09533), MAPPO (arXiv 2103.01955), independent
actor-critic (arXiv 1705.08926); `iac` and `maac` for teams of language models (arXiv 2601.21972),
as the library published with it, comlrl 1.4.3, computes them: the sum over an answer's tokens,
nothing clipped, and a value loss of 0.6 (V - R)^2, which is 1.2 times our (V - R)^2 / 2.
"""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from torch import Tensor

from mlrl_learners.algorithms.critics import CriticConfig, TeamCritics
from mlrl_learners.algorithms.metrics import group_metrics, policy_metrics
from mlrl_learners.algorithms.policy_gradient import (
    check_finite,
    count_by_agent,
    minibatches,
    per_token,
    surrogate,
)
from mlrl_learners.algorithms.reward_terms import Shaping
from mlrl_learners.algorithms.row_weights import answer_weights, mean_divisor
from mlrl_learners.algorithms.team import Team
from mlrl_learners.algorithms.turn_samples import Sample, turn_samples
from mlrl_learners.config.options import check_options
from mlrl_learners.errors import ConfigError
from mlrl_learners.functional.advantages import normalize
from mlrl_learners.functional.returns import check_rewards, rollout_groups
from mlrl_learners.play.steps import has_artificial_limit
from mlrl_learners.policies import ModelSource, PolicyOptimizer
from mlrl_learners.processes.work_sharing import sum_numbers
from mlrl_learners.types import AgentID, Rollout, RolloutConfig

__all__ = [
    "ActorCritic",
    "ActorCriticConfig",
    "make_iac",
    "make_ippo",
    "make_maac",
    "make_mappo",
]

CRITICS_FOLDER = "critics"
ONE_STEP: Mapping[str, Any] = {
    "gae_lambda": 0.0,
    "loss": "sequence",
    "clip_low": 1.0,
    "clip_high": math.inf,
    "value_clip": math.inf,
    "value_coef": 1.2,  # of (V - R)^2 / 2: the published 0.6 of (V - R)^2
    "epochs": 1,
}


@dataclass(frozen=True)
class ActorCriticConfig(CriticConfig):
    """What actor-critic methods do with the answers.

    Attributes:
        gamma: Discount a turn, in [0, 1].
        gae_lambda: From 0, one-step temporal differences, to 1, whole returns.
        bootstrap_truncated: Add the critic's value of what would have been read next where an
            artificial turn limit cut the episode. It takes an environment that declares its limit
            artificial (`metadata["artificial_limit"]`); any other limit ends the task.
        normalize_advantages: Shift and scale a policy's advantages to mean 0 and deviation 1 in
            each update; value targets are never touched.
        entropy_coef: Weight of the entropy of the distribution over tokens, at least 0.
        epochs: Passes over the same rollouts, at least 1.
    """

    gamma: float = 0.9
    gae_lambda: float = 0.95
    bootstrap_truncated: bool = False
    normalize_advantages: bool = True
    entropy_coef: float = 0.0
    epochs: int = 2

    def __post_init__(self) -> None:
        """Check ranges.

        Raises:
            ConfigError: If a value is outside its range.
        """
        super().__post_init__()
        if not 0 <= self.gae_lambda <= 1:
            raise ConfigError(f"gae_lambda must be in [0, 1], got {self.gae_lambda}")
        if not self.entropy_coef >= 0:
            raise ConfigError(f"entropy_coef must be at least 0, got {self.entropy_coef}")
        if self.bootstrap_truncated and self.gamma == 0:
            raise ConfigError(
                "bootstrap_truncated adds gamma times a critic's value, got gamma 0: leave it out"
            )


class ActorCritic(Team):
    """Learns from how much better answers did than critics expected.

    Args:
        agents: Every agent, in the environment's order.
        model: One model for all, or one an agent.
        config: The method and its models.
        seed: Decides everything that is sampled.
    """

    config: ActorCriticConfig

    def __init__(
        self,
        agents: Sequence[AgentID],
        model: ModelSource | Mapping[AgentID, ModelSource],
        config: ActorCriticConfig,
        seed: int = 0,
    ) -> None:
        super().__init__(agents, model, config, seed)
        self.rollout = RolloutConfig(config.group_size, config.joint_mode, config.branching)
        sources = dict(self.sources)
        if config.critic_model is not None:
            sources = dict.fromkeys(sources, config.critic_model)
        learners = {name: self.policies[name] for name in self.optimizers}
        self.shaping = Shaping(learners, self.policy_of, config)
        self.critics = TeamCritics(self, config, formats=self._formats, sources=sources)

    def update(self, rollouts: Sequence[Rollout]) -> dict[str, float]:
        """Take `epochs * num_minibatches` optimizer steps a policy and a critic on the rollouts.

        Returns:
            Metrics by name, per agent, per policy and per critic.

        Raises:
            NumericsError: If a reward, loss or gradient is not finite.
        """
        check_rewards(rollouts)
        rewarded = self.shaping.rewarded(rollouts)
        reading = self.critics.read(rewarded, bootstrap=self.config.bootstrap_truncated)
        samples = turn_samples(rewarded, reading, self.config, self.learning)
        groups = rollout_groups(rewarded, self.config.gamma, turn_weights="nodes")
        metrics = group_metrics(list(groups))
        self.begin_update()
        for name in self.optimizers:
            mine = [s for s in samples if self.policy_of[s.judgement.agent] == name]
            if mine:
                weights = [sample.judgement.weight for sample in mine]
                agents = {sample.judgement.agent for sample in mine}
                total = mean_divisor(rollouts, agents, weights, self.config)
                metrics |= self._update_policy(name, mine, total)
        judgements = [sample.judgement for sample in samples]
        return metrics | self.critics.update(judgements, rollouts, self.generator)

    def save(self, path: Path) -> None:
        """Write what a team writes, and its critics with their optimizers."""
        super().save(path)
        self.critics.save(path / CRITICS_FOLDER)

    def load(self, path: Path) -> None:
        """Restore what `save` wrote.

        Raises:
            CheckpointError: If it is missing, damaged, or of another team, model or critic.
        """
        super().load(path)
        self.critics.load(path / CRITICS_FOLDER)

    def check_env(self, env: Any) -> None:  # noqa: ANN401 - any PettingZoo parallel environment
        """Check that `bootstrap_truncated` finds an artificial turn limit.

        Raises:
            ConfigError: If it is set and the environment does not declare its limit artificial.
        """
        if self.config.bootstrap_truncated and not has_artificial_limit(env):
            raise ConfigError(
                "bootstrap_truncated takes an environment whose turn limit is artificial, and "
                f"metadata['artificial_limit'] of {type(env).__name__} is not true: its limit ends "
                "the task, so nothing can be earned behind it; leave bootstrap_truncated out"
            )

    def _every_optimizer(self) -> Iterator[PolicyOptimizer]:
        yield from super()._every_optimizer()
        yield from self.critics.optimizers.values()

    def _update_policy(self, name: str, samples: list[Sample], total: float) -> dict[str, float]:
        config, policy = self.config, self.policies[name]
        has_head = config.critic == "value_head"
        samples = _weighed(samples, config, total)
        if not has_head:  # a head learns from what the policy does not
            samples = [each for each in samples if not config.is_masked(each.completion)]
        if not samples:
            return {}
        stats: dict[str, float] = defaultdict(float)
        for minibatch in minibatches(samples, config, self.generator):
            rows = [sample.row for sample in minibatch]
            for places in policy.micro_batches(rows, config.micro_batch_tokens):
                loss = self._loss(name, [minibatch[i] for i in places], total, stats)
                # One minibatch of several is one mean: its share of the rows makes it whole.
                (loss * (len(samples) / len(minibatch))).backward()
            stats["grad_norm"] += self.optimizers[name].step()
            if has_head:
                stats["critic_grad_norm"] += self.critics.optimizers[name].step()
            stats["steps"] += 1
        stats = sum_numbers(stats)
        metrics = policy_metrics(name, stats, config.epochs, self.optimizers[name].last_lr)
        if has_head:
            metrics |= self.critics.metrics(name, [s.judgement for s in samples], stats)
        return metrics

    def _loss(
        self, name: str, batch: list[Sample], total: float, stats: dict[str, float]
    ) -> Tensor:
        """Return these rows' part of the loss, that of a head on the same states included."""
        config, completions = self.config, [sample.completion for sample in batch]
        weights = [sample.weight for sample in batch]
        logprobs, entropy, states = self.policies[name].logprobs_and_states(
            [sample.row for sample in batch],
            temperature=config.temperature,
            entropy_gradient=config.entropy_coef > 0,
        )
        advantages = [sample.advantage for sample in batch]
        loss = surrogate(logprobs, completions, advantages, weights, config, stats)
        if config.entropy_coef:
            spread = (per_token(weights, completions).to(entropy.device) * entropy).sum()
            loss = loss - config.entropy_coef * spread
        if self.shaping.in_loss:
            loss = loss + self.shaping.divergence_loss(name, logprobs, completions, weights, stats)
        agents = [sample.judgement.agent for sample in batch]
        count_by_agent(stats, agents, completions, logprobs, entropy)
        stats["loss"] += check_finite(loss, name)
        if config.critic == "value_head":
            values = self.critics.critics[name].of_states(states)
            judgements = [sample.judgement for sample in batch]
            loss = loss + self.critics.loss(name, values, judgements, total, stats)
        return loss


def make_ippo(
    *,
    agents: Sequence[AgentID],
    model: ModelSource | Mapping[AgentID, ModelSource],
    seed: int = 0,
    **options: Any,  # noqa: ANN401 - checked against the fields of ActorCriticConfig
) -> ActorCritic:
    """Build independent PPO; options are the fields of `ActorCriticConfig`.

    Raises:
        UnknownNameError: If an option is none of them.
        ConfigError: If a value has the wrong type or is outside its range.
        ModelNotFoundError: If a model cannot be loaded.
    """
    check_options(options, ActorCriticConfig)
    return ActorCritic(agents, model, ActorCriticConfig(**options), seed)


def make_mappo(**options: Any) -> ActorCritic:  # noqa: ANN401 - see make_ippo
    """Build multi-agent PPO: `make_ippo` with one critic that reads what all agents read."""
    return make_ippo(**{"critic": "central", **options})


def make_iac(**options: Any) -> ActorCritic:  # noqa: ANN401 - see make_ippo
    """Build independent actor-critic: one-step advantages, one pass, nothing clipped."""
    return make_ippo(**{**ONE_STEP, **options})


def make_maac(**options: Any) -> ActorCritic:  # noqa: ANN401 - see make_ippo
    """Build multi-agent actor-critic: `make_iac` with the critic of `make_mappo`."""
    return make_iac(**{"critic": "central", **options})


def _weighed(samples: Sequence[Sample], config: ActorCriticConfig, total: float) -> list[Sample]:
    """Give a policy's samples their weights, and advantages in the scale it is trained on."""
    node_weights = [sample.judgement.weight for sample in samples]
    completions = [sample.completion for sample in samples]
    weights = answer_weights(completions, config, node_weights, total)
    advantages = [sample.advantage for sample in samples]
    if config.normalize_advantages:
        advantages = normalize(advantages, node_weights)
    return [
        replace(sample, advantage=advantage, weight=weight)
        for sample, advantage, weight in zip(samples, advantages, weights, strict=True)
    ]
