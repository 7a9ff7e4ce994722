"""Actor-critic methods for teams: IPPO, MAPPO, IAC, MAAC, and PPO for one agent.

A turn is one action: an agent reads its observation and writes a whole answer. The advantage of an
answer is estimated over turns (`mlrl_learners.functional.gae`) with the critics at sampling time,
and the policy loss is the clipped surrogate over the tokens of the answer. With
`critic.level: token` each token is an action (`mlrl_learners.algorithms.token_actions`).

Sources: PPO (arXiv 1707.06347), IPPO (arXiv 2011.09533), MAPPO (arXiv 2103.01955), independent
actor-critic (arXiv 1705.08926); `iac` and `maac` for teams of language models (arXiv 2601.21972)
with the loss of its library, comlrl 1.4.3: the sum over the tokens of an answer without clipping,
and a value loss of 0.6 (V - R)^2, which is 1.2 times (V - R)^2 / 2.
"""

import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from mlrl_learners.algorithms.answer_advantages import with_token_charges
from mlrl_learners.algorithms.answer_loss import answer_loss, with_old_logprobs
from mlrl_learners.algorithms.critic_config import ActorCriticConfig
from mlrl_learners.algorithms.critic_inputs import ValueEstimates, check_no_waiting
from mlrl_learners.algorithms.critics import TeamCritics
from mlrl_learners.algorithms.policy_update import (
    Stats,
    mean_divisor,
    take_steps,
    weigh_samples,
)
from mlrl_learners.algorithms.reward_terms import RewardTerms
from mlrl_learners.algorithms.team import Team
from mlrl_learners.algorithms.token_actions import TokenActions
from mlrl_learners.algorithms.turn_samples import TurnSample, turn_samples
from mlrl_learners.algorithms.update_metrics import group_metrics, policy_metrics
from mlrl_learners.config.groups import build_config
from mlrl_learners.config.option_places import merge_options
from mlrl_learners.errors import ConfigError
from mlrl_learners.functional.gae import TurnGae
from mlrl_learners.functional.returns import check_rollouts, rollout_groups
from mlrl_learners.play.steps import has_artificial_limit
from mlrl_learners.policies import ModelSource, PolicyOptimizer
from mlrl_learners.types import AgentID, Rollout

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
    "advantage": {"gae_lambda": 0.0},
    "loss": {"kind": "sequence", "clip_low": 1.0, "clip_high": math.inf},
    # value_coef of (V - R)^2 / 2: the published 0.6 of (V - R)^2
    "critic": {"value_clip": math.inf, "value_coef": 1.2},
    "optimizer": {"epochs": 1},
}
CENTRAL_CRITIC: Mapping[str, Any] = {"critic": {"kind": "central"}}


class ActorCritic(Team):
    """Learner that compares answers with the values of critics.

    Args:
        agents: Every agent, in the environment's order.
        model: One model for all agents, or one per agent.
        config: Options of the method and its models.
        seed: Seed of everything that is sampled.
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
        self.rollout = config.group.rollout
        sources = dict(self.sources)
        if config.critic.model is not None:
            sources = dict.fromkeys(sources, config.critic.model)
        learners = {name: self.policies[name] for name in self.optimizers}
        self.reward_terms = RewardTerms(learners, self.policy_of, config, self.sources)
        self.critics = TeamCritics(self, config, formats=self._formats, sources=sources)

    def update(self, rollouts: Sequence[Rollout]) -> dict[str, float]:
        """Take `epochs * num_minibatches` optimizer steps per policy and per critic.

        Returns:
            Metrics by name, per agent, per policy and per critic.

        Raises:
            ContractError: If an answer in the rollouts has no tokens.
            NumericsError: If a reward, loss or gradient is not finite.
            ConfigError: If an agent waits and `bootstrap_truncated` is set.
        """
        check_rollouts(rollouts)
        config = self.config
        if config.advantage.bootstrap_truncated:
            check_no_waiting(rollouts)
        rewarded = self.reward_terms.apply(rollouts)
        # V_old(h): all epochs use the values from before the update.
        estimates = self.critics.estimate(rewarded, bootstrap=config.advantage.bootstrap_truncated)
        # A_t = sum over l of (gamma lambda)^l delta_{t+l}; its value target is A_t + V_old(h_t).
        tokens = self.token_actions(estimates)
        estimators = self.advantage_estimators(rewarded, estimates, tokens)
        samples = turn_samples(
            rewarded, estimates, estimators, config.credit, self.learning, tokens
        )
        if tokens is None:
            samples = with_token_charges(samples, self.reward_terms.token_charges)
        metrics = group_metrics(
            list(rollout_groups(rewarded, config.credit.gamma, turn_weights="nodes"))
        )
        metrics |= self.sampler_metrics()
        values = [sample.value_sample for sample in samples]
        self.critics.adapt(values)
        self.begin_update()
        for name in self.optimizers:
            mine = [sample for sample in samples if self.policy_of[sample.agent] == name]
            if mine:
                divisor = mean_divisor(rollouts, mine, config, self.trained_by(name))
                metrics |= self._update_policy(name, mine, divisor)
        # Critics with models of their own; value heads were trained together with their policies.
        return metrics | self.critics.update(values, rollouts, self.generator)

    def token_actions(self, estimates: ValueEstimates) -> TokenActions | None:
        """Return the advantages of tokens, with `critic.level: token`."""
        if self.config.critic.level == "turn":
            return None
        charges, gae_lambda = self.reward_terms.token_charges, self.config.advantage.gae_lambda
        return TokenActions(estimates, charges, gae_lambda)

    def advantage_estimators(
        self,
        rollouts: Sequence[Rollout],
        estimates: ValueEstimates,
        tokens: TokenActions | None = None,
    ) -> list[TurnGae]:
        """Return the GAE estimator of each rollout, with the critics' values at sampling time."""
        config = self.config
        return [
            TurnGae(
                estimates.value,
                config.credit.gamma,
                config.advantage.gae_lambda,
                bootstrap=config.advantage.bootstrap_truncated and rollout.artificial_limit,
                entering=None if tokens is None else tokens.entering,
            )
            for rollout in rollouts
        ]

    def save(self, path: Path) -> None:
        """Write the team, and its critics with their optimizers, into the folder `path`."""
        super().save(path)
        self.critics.save(path / CRITICS_FOLDER)

    def load(self, path: Path) -> None:
        """Restore what `save` wrote.

        Raises:
            CheckpointError: If a file is missing or damaged, or does not fit this learner.
        """
        super().load(path)
        self.critics.load(path / CRITICS_FOLDER)

    def check_env(self, env: Any) -> None:  # noqa: ANN401 - any PettingZoo parallel environment
        """Check that `bootstrap_truncated` is used with an artificial turn limit.

        Raises:
            ConfigError: If it is set and the environment does not declare its limit artificial.
        """
        if self.config.advantage.bootstrap_truncated and not has_artificial_limit(env):
            raise ConfigError(
                "advantage.bootstrap_truncated takes an environment whose turn limit is "
                f"artificial, and metadata['artificial_limit'] of {type(env).__name__} is not "
                "true: its limit ends the task, so no reward can follow it; leave it out"
            )

    def _every_optimizer(self) -> Iterator[PolicyOptimizer]:
        yield from super()._every_optimizer()
        yield from self.critics.optimizers.values()

    def _update_policy(
        self, name: str, samples: list[TurnSample], divisor: float
    ) -> dict[str, float]:
        config = self.config
        optimizers = {"grad_norm": self.optimizers[name]}
        samples = weigh_samples(
            samples, config, divisor, normalize_advantages=config.advantage.normalize
        )
        if config.critic.kind == "value_head":  # the head is trained on masked answers too
            optimizers["critic_grad_norm"] = self.critics.optimizers[name]
        else:
            samples = [each for each in samples if not config.is_masked(each.completion)]
        if not samples:
            return {}
        samples = with_old_logprobs(samples, self.policies[name], config)
        stats = take_steps(
            samples,
            functools.partial(self._loss, name, divisor),
            model=self.policies[name],
            optimizers=optimizers,
            config=config,
            generator=self.generator,
        )
        metrics = policy_metrics(name, stats, config.optimizer.epochs, self.optimizers[name])
        if config.critic.kind == "value_head":
            metrics |= self.critics.metrics(name, [each.value_sample for each in samples], stats)
        return metrics

    def _loss(self, name: str, divisor: float, samples: list[TurnSample], stats: Stats) -> Tensor:
        """Return the loss of a micro-batch, with that of a value head."""
        config = self.config
        logprobs, entropy, states = self.policies[name].logprobs_and_states(
            [sample.row for sample in samples],
            temperature=config.sampling.temperature,
            entropy_gradient=config.penalty.entropy_coef > 0,
            every_state=config.critic.level == "token",
        )
        loss = answer_loss(name, samples, logprobs, entropy, self.reward_terms, stats)
        if config.critic.kind == "value_head":
            values = self.critics.critics[name].of_states(states)
            targets = [sample.value_sample for sample in samples]
            loss = loss + self.critics.loss(name, values, targets, divisor, stats)
        return loss


def make_ippo(
    *,
    agents: Sequence[AgentID],
    model: ModelSource | Mapping[AgentID, ModelSource],
    seed: int = 0,
    **options: Any,  # noqa: ANN401 - checked against the groups of ActorCriticConfig
) -> ActorCritic:
    """Build independent PPO; options are the groups of `ActorCriticConfig`.

    Raises:
        UnknownNameError: If an option is not a field of a group.
        ConfigError: If a value has the wrong type or is outside its range.
        ModelNotFoundError: If a model cannot be loaded.
    """
    return ActorCritic(agents, model, build_config(ActorCriticConfig, options), seed)


def make_mappo(**options: Any) -> ActorCritic:  # noqa: ANN401 - see make_ippo
    """Build multi-agent PPO: `make_ippo` with a central critic."""
    return make_ippo(**merge_options(CENTRAL_CRITIC, options))


def make_iac(**options: Any) -> ActorCritic:  # noqa: ANN401 - see make_ippo
    """Build independent actor-critic: one-step advantages, one epoch, no clipping."""
    return make_ippo(**merge_options(ONE_STEP, options))


def make_maac(**options: Any) -> ActorCritic:  # noqa: ANN401 - see make_ippo
    """Build multi-agent actor-critic: `make_iac` with a central critic."""
    return make_iac(**merge_options(CENTRAL_CRITIC, options))
