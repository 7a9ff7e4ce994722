"""MAGRPO and its family: group-relative policy gradients for teams, without a critic.

The answers of an agent to one prompt form a group, and the advantage of an answer is its return
minus a baseline of its group. `mareinforce`, `marloo` and `maremax` use other baselines.

The default loss is the published one: the sum over the tokens of an answer, without clipping.

Sources: MAGRPO (arXiv 2508.04652) and its library, comlrl 1.4.3; RLOO
(arXiv 2402.14740) for the leave-one-out baseline; clipping as in PPO (arXiv 1707.06347).
"""

import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from mlrl_learners.algorithms.answer_advantages import (
    answer_advantages,
    comparison_keys,
    with_token_charges,
)
from mlrl_learners.algorithms.answer_loss import answer_loss, with_old_logprobs
from mlrl_learners.algorithms.magrpo_config import MagrpoConfig
from mlrl_learners.algorithms.policy_update import (
    AnswerSample,
    Stats,
    mean_divisor,
    take_steps,
    weigh_samples,
)
from mlrl_learners.algorithms.reward_terms import RewardTerms
from mlrl_learners.algorithms.team import Team
from mlrl_learners.algorithms.update_metrics import group_metrics, policy_metrics
from mlrl_learners.config.groups import build_config
from mlrl_learners.config.option_places import merge_options
from mlrl_learners.functional.returns import AnswerGroup, check_rollouts, rollout_groups
from mlrl_learners.functional.role_baseline import RoleBaseline
from mlrl_learners.policies import ModelSource, restore
from mlrl_learners.types import AgentID, Rollout

__all__ = [
    "Magrpo",
    "MagrpoConfig",
    "make_magrpo",
    "make_mareinforce",
    "make_maremax",
    "make_marloo",
]

BASELINES_FILE = "baselines.pt"
MAREINFORCE = {"baseline": {"kind": "none"}}
MARLOO = {"baseline": {"kind": "leave_one_out"}}
MAREMAX = {"baseline": {"kind": "max"}}


class Magrpo(Team):
    """Learner that compares the answers of a group.

    Args:
        agents: Every agent, in the environment's order.
        model: One model for all agents, or one per agent.
        config: Options of the method and its models.
        seed: Seed of everything that is sampled.
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
        self.rollout = config.group.rollout
        learners = {name: self.policies[name] for name in self.optimizers}
        self.reward_terms = RewardTerms(learners, self.policy_of, config, self.sources)
        self.role_baseline = RoleBaseline(config.baseline.ema_decay)

    def update(self, rollouts: Sequence[Rollout]) -> dict[str, float]:
        """Take `epochs * num_minibatches` optimizer steps per policy on the rollouts.

        Returns:
            Metrics by name, per agent (`aux/kl`) and per policy (`shared/loss`).

        Raises:
            ContractError: If an answer in the rollouts has no tokens.
            NumericsError: If a reward, loss or gradient is not finite.
        """
        check_rollouts(rollouts)
        config = self.config
        rewarded = self.reward_terms.apply(rollouts)
        # Returns R_t^(g) of the G answers of each agent at each prompt of turn t.
        credit = config.credit
        groups = list(
            rollout_groups(
                rewarded, credit.gamma, credit.kind, credit.turn_weights, credit.term_weight
            )
        )
        # Advantages A_t^(g) = R_t^(g) - baseline; agents are trained on their own answers only.
        samples = self._samples(groups, rewarded)
        keys = comparison_keys(groups, rewarded, config.baseline)
        metrics = group_metrics(groups, keys) | self.sampler_metrics()
        if config.baseline.kind == "role_ema":
            self.role_baseline.add(groups)
            metrics |= {f"{role}/baseline": b for role, b in self.role_baseline.values.items()}
        self.begin_update()
        # Each policy descends on -sum over g of A_t^(g) * log pi(a_t^(g) | h_t).
        for name in self.optimizers:
            mine = [sample for sample in samples if self.policy_of[sample.agent] == name]
            if mine:
                divisor = mean_divisor(rollouts, mine, config, self.trained_by(name))
                metrics |= self._update_policy(name, mine, divisor)
        return metrics

    def save(self, path: Path) -> None:
        """Write the team, and the moving averages of `role_ema`, into the folder `path`."""
        super().save(path)
        if self.config.baseline.kind == "role_ema":
            torch.save(self.role_baseline.state_dict(), path / BASELINES_FILE)

    def load(self, path: Path) -> None:
        """Restore what `save` wrote.

        Raises:
            CheckpointError: If a file is missing or damaged, or does not fit this learner.
        """
        super().load(path)
        if self.config.baseline.kind == "role_ema":
            restore(path / BASELINES_FILE, self.role_baseline.load_state_dict)

    def _samples(
        self, groups: Sequence[AnswerGroup], rollouts: Sequence[Rollout]
    ) -> list[AnswerSample]:
        """Return every answer of the trained agents with its advantage."""
        found = answer_advantages(
            groups,
            rollouts,
            self.config.baseline,
            credit=self.config.credit,
            role_baseline=self.role_baseline,
            agents=self.learning,
        )
        samples = [
            AnswerSample(group.agent, completion, advantage, group.weight)
            for group, advantages in found
            for completion, advantage in zip(group.completions, advantages, strict=True)
        ]
        return with_token_charges(samples, self.reward_terms.token_charges)

    def _update_policy(
        self, name: str, samples: list[AnswerSample], divisor: float
    ) -> dict[str, float]:
        config = self.config
        samples = weigh_samples(
            samples, config, divisor, normalize_advantages=config.baseline.normalize_batch
        )
        samples = [sample for sample in samples if self._has_gradient(sample)]
        if not samples:
            return {}
        samples = with_old_logprobs(samples, self.policies[name], config)
        stats = take_steps(
            samples,
            functools.partial(self._loss, name),
            model=self.policies[name],
            optimizers={"grad_norm": self.optimizers[name]},
            config=config,
            generator=self.generator,
        )
        return policy_metrics(name, stats, config.optimizer.epochs, self.optimizers[name])

    def _has_gradient(self, sample: AnswerSample) -> bool:
        """Return whether an answer contributes to the loss of the update."""
        if self.config.is_masked(sample.completion):
            return False
        has_terms = self.reward_terms.in_loss or self.config.penalty.entropy_coef > 0
        always = has_terms or not self.config.baseline.skip_equal_groups
        return always or any(sample.by_token)

    def _loss(self, name: str, samples: list[AnswerSample], stats: Stats) -> Tensor:
        """Return the loss of a micro-batch."""
        logprobs, entropy, _ = self.policies[name].logprobs_and_states(
            [sample.row for sample in samples],
            temperature=self.config.sampling.temperature,
            entropy_gradient=self.config.penalty.entropy_coef > 0,
        )
        return answer_loss(name, samples, logprobs, entropy, self.reward_terms, stats)


def make_magrpo(
    *,
    agents: Sequence[AgentID],
    model: ModelSource | Mapping[AgentID, ModelSource],
    seed: int = 0,
    **options: Any,  # noqa: ANN401 - checked against the groups of MagrpoConfig
) -> Magrpo:
    """Build MAGRPO; options are the groups of `MagrpoConfig`.

    Raises:
        UnknownNameError: If an option is not a field of a group.
        ConfigError: If a value has the wrong type or is outside its range.
        ModelNotFoundError: If a model cannot be loaded.
    """
    return Magrpo(agents, model, build_config(MagrpoConfig, options), seed)


def make_mareinforce(**options: Any) -> Magrpo:  # noqa: ANN401 - see make_magrpo
    """Build multi-agent REINFORCE: `make_magrpo` without a baseline."""
    return make_magrpo(**merge_options(MAREINFORCE, options))


def make_marloo(**options: Any) -> Magrpo:  # noqa: ANN401 - see make_magrpo
    """Build multi-agent RLOO: `make_magrpo` with the leave-one-out baseline."""
    return make_magrpo(**merge_options(MARLOO, options))


def make_maremax(**options: Any) -> Magrpo:  # noqa: ANN401 - see make_magrpo
    """Build multi-agent ReMax: `make_magrpo` with the group's highest return as baseline."""
    return make_magrpo(**merge_options(MAREMAX, options))
