"""MADPO: direct preference optimisation over the joint answers of a team.

At every decision point the joint answers are ranked by the team's return; the best is paired with
the worst, the second best with the second worst, and so on. The policy of a team is the product of
its agents' policies, so the margin of a pair is the sum of the agents' log-ratios, and the gradient
of each agent depends on the margin of the team. If agents have different returns, each agent's
answers are ranked by its own return and a pair trains that agent alone. Pairs come from rollouts
(iterated, on-policy) or from a file of episodes with several answers to the same prompts.

Sources: DPO (arXiv 2305.18290, eq. 7); other losses as in `mlrl_learners.functional.preferences`.
"""

import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from mlrl_learners.algorithms.file_pairs import TurnPair, ranked_turns
from mlrl_learners.algorithms.offline_team import OfflineTeam
from mlrl_learners.algorithms.pair_loss import SideRow, joint_lengths, pair_loss
from mlrl_learners.algorithms.policy_gradient_options import GroupOptions
from mlrl_learners.algorithms.preference_options import (
    EpochOptimizerOptions,
    PreferenceLossOptions,
    PreferenceOptions,
)
from mlrl_learners.algorithms.rollout_pairs import Pair, check_choice, played_pairs
from mlrl_learners.algorithms.team import TeamConfig
from mlrl_learners.algorithms.team_models import reference_policies
from mlrl_learners.algorithms.update_metrics import group_metrics
from mlrl_learners.config.groups import build_config
from mlrl_learners.config.options import check_unread
from mlrl_learners.engine import TokenRow
from mlrl_learners.errors import ConfigError
from mlrl_learners.functional.returns import check_rollouts, rollout_groups
from mlrl_learners.policies import ModelSource, Policy
from mlrl_learners.policies.gradient_batches import gradient_batches
from mlrl_learners.processes.work_sharing import gather
from mlrl_learners.runs.demonstrations import JointTurn
from mlrl_learners.types import AgentID, Rollout, RolloutConfig

__all__ = ["Madpo", "MadpoConfig", "make_madpo"]

# Published: 80 candidates (comlrl 1.4.3 default of MADPO).
CANDIDATES = GroupOptions(size=80, branching="chain")


@dataclass(frozen=True)
class MadpoConfig(TeamConfig):
    """Selection of pairs, and the loss on them.

    Attributes:
        optimizer: Learning rate, its schedule, and steps per update.
        group: Answers that are sampled for a prompt, at least 2.
        preferences: Pairs of joint answers.
        loss: Loss of a pair.
    """

    optimizer: EpochOptimizerOptions = field(default_factory=EpochOptimizerOptions)
    group: GroupOptions = CANDIDATES
    preferences: PreferenceOptions = field(default_factory=PreferenceOptions)
    loss: PreferenceLossOptions = field(default_factory=PreferenceLossOptions)

    def __post_init__(self) -> None:
        """Check ranges and combinations.

        Raises:
            ConfigError: If a value is outside its range, or another option makes it meaningless.
        """
        super().__post_init__()
        if self.group.size < 2:
            raise ConfigError(f"group.size must be at least 2, got {self.group.size}")
        if self.preferences.episodes:
            reason = "preferences.episodes, because no rollouts are collected: leave it out"
            check_unread(
                self.group,
                ("joint_mode", "branching", "rollouts", "resample"),
                reason,
                "group.",
                CANDIDATES,
            )
            check_unread(self.preferences, ("gamma",), reason, "preferences.")
            check_unread(self.sampler, ("endpoint",), reason, "sampler.")

    def check_rollout(self, rollout: RolloutConfig) -> None:
        """Check that every prompt has several answers, unless pairs come from a file.

        Raises:
            ConfigError: If there is one answer per prompt.
        """
        if not self.preferences.episodes:
            check_choice(rollout)


class Madpo(OfflineTeam):
    """Learner with a loss on preferences between joint answers.

    Args:
        agents: Every agent, in the environment's order.
        model: One model for all agents, or one per agent.
        config: Pairs, loss and models.
        seed: Seed of everything that is sampled, and of the order of a file's pairs.
    """

    config: MadpoConfig

    def __init__(
        self,
        agents: Sequence[AgentID],
        model: ModelSource | Mapping[AgentID, ModelSource],
        config: MadpoConfig,
        seed: int = 0,
    ) -> None:
        super().__init__(agents, model, config, seed, offline=bool(config.preferences.episodes))
        self.rollout = config.group.rollout
        used = self.policies if config.loss.use_reference else {}
        self.references = reference_policies(used, self.sources)

    @functools.cached_property
    def examples(self) -> list[Pair]:
        """Every pair of the file, read on first use.

        Raises:
            ConfigError: If the file is missing, or has no two answers of trained agents with
                different returns.
        """
        points = ranked_turns(
            Path(self.config.preferences.episodes),
            self.config.preferences.num_pairs,
            self.learning,
            own_answers=True,
            conversation=self.config.team.conversation,
        )
        return [self._pair_of_turns(pair) for point in points for pair in point]

    def update(self, rollouts: Sequence[Rollout]) -> dict[str, float]:
        """Take `epochs` optimizer steps per policy on pairs of the file or of the rollouts.

        Returns:
            Metrics by name: of the team (`preferences/accuracy`), per agent and per policy.

        Raises:
            ContractError: If an answer in the rollouts has no tokens.
            NumericsError: If a reward, loss or gradient is not finite.
            ConfigError: If the file has no usable pairs.
        """
        check_rollouts(rollouts)
        self.begin_update()
        self._updates += 1
        metrics = group_metrics(list(rollout_groups(rollouts, self.config.preferences.gamma)))
        metrics |= self.sampler_metrics()
        pairs = self._drawn() if self.offline else list(self._played(rollouts))
        metrics["preferences/pairs"] = float(len(pairs))
        if not pairs:
            return metrics
        metrics["preferences/gap"] = math.fsum(pair.gap for pair in pairs) / len(pairs)
        rows = self._side_rows(pairs)
        lengths = joint_lengths(rows, len(pairs))
        # The reference is constant over the epochs: its log-probabilities are computed once.
        reference = self._reference_logprobs(rows, len(pairs))
        for _ in range(self.config.optimizer.epochs):
            metrics |= self._step(rows, reference, lengths)
        return metrics

    def _drawn(self) -> list[Pair]:
        size = self.config.preferences.num_pairs
        return [self.examples[i] for i in self.draw(len(self.examples), size)]

    def _pair_of_turns(self, pair: TurnPair) -> Pair:
        agents = self.agents if pair.agent is None else (pair.agent,)
        better, worse = (self._rows_of_turn(turn, agents) for turn in (pair.better, pair.worse))
        return Pair(better, worse, pair.gap)

    def _rows_of_turn(self, turn: JointTurn, agents: Sequence[AgentID]) -> dict[AgentID, TokenRow]:
        rows = {
            agent: self.row_of_text(
                agent, turn.observations[agent], turn.actions[agent], end=turn.is_whole[agent]
            )
            for agent in turn.actions
            if agent in agents
        }
        return {agent: row for agent, row in rows.items() if row.token_ids}

    def _played(self, rollouts: Sequence[Rollout]) -> Iterator[Pair]:
        config = self.config.preferences
        return played_pairs(
            rollouts, gamma=config.gamma, num_pairs=config.num_pairs, agents=self.learning
        )

    def _side_rows(self, pairs: Sequence[Pair]) -> dict[str, list[SideRow]]:
        rows: dict[str, list[SideRow]] = {name: [] for name in self.policies}
        for number, pair in enumerate(pairs):
            for side, answers in enumerate((pair.better, pair.worse)):
                for agent, row in answers.items():
                    if agent in self.learning:
                        rows[self.policy_of[agent]].append(SideRow(number, side, row))
        return rows

    def _reference_logprobs(self, rows: Mapping[str, list[SideRow]], num_pairs: int) -> Tensor:
        """Return the reference's log-probabilities, `[P, 2]`; zeros without a reference."""
        if not self.config.loss.use_reference:
            return torch.zeros(num_pairs, 2, dtype=torch.float64)
        return self._logprobs(self.references, rows, num_pairs)

    @torch.no_grad()
    def _logprobs(
        self, policies: Mapping[str, Policy], rows: Mapping[str, list[SideRow]], num_pairs: int
    ) -> Tensor:
        """Return log pi of the better and the worse answers, summed over agents, `[P, 2]`."""
        found = torch.zeros(num_pairs, 2, dtype=torch.float64)
        for name, mine in rows.items():
            policy, sums = policies[name], dict[int, float]()
            plain = [each.row for each in mine]
            for numbers in policy.micro_batches(plain, self.config.compute.micro_batch_tokens):
                part = self._row_sums(policy, [plain[i] for i in numbers])
                sums |= zip(numbers, part.tolist(), strict=True)
            places = torch.tensor([2 * each.pair + each.side for each in mine]).long()
            # Added in the order of the rows, whatever the number of processes.
            rows_sums = torch.tensor(list(gather(sums).values()), dtype=torch.float64)
            found.view(-1).index_add_(0, places, rows_sums)
        return found

    def _row_sums(self, policy: Policy, rows: Sequence[TokenRow]) -> Tensor:
        """Return the log-probability of each row of a micro-batch, `[B]`.

        Rollouts are evaluated at the sampling temperature. Answers of a file were not sampled from
        these policies and are evaluated at temperature 1.
        """
        temperature = 1.0 if self.offline else self.config.sampling.temperature
        logprobs, _ = policy.logprobs(rows, temperature=temperature, with_entropy=False)
        parts = logprobs.split([len(row.token_ids) for row in rows])
        return torch.stack([part.sum() for part in parts]) if rows else logprobs

    def _step(
        self, rows: Mapping[str, list[SideRow]], reference: Tensor, lengths: Tensor
    ) -> dict[str, float]:
        """Take one optimizer step per policy.

        The margin h of a pair depends on the rows of all agents, which are in several
        micro-batches. All log-probabilities are therefore computed first without a gradient; the
        derivative of the loss in each of them then weights its rows. The gradient does not depend
        on the micro-batches.
        """
        logprobs = self._logprobs(self.policies, rows, len(reference)).requires_grad_()
        loss, metrics = pair_loss(logprobs, reference, lengths, self.config.loss)
        (slopes,) = torch.autograd.grad(loss, logprobs)  # [P, 2]
        max_tokens = self.config.compute.micro_batch_tokens
        for name, mine in rows.items():
            if not mine:
                continue
            policy, optimizer = self.policies[name], self.optimizers[name]
            plain = [each.row for each in mine]
            for _, numbers in gradient_batches(policy, plain, max_tokens, [optimizer]):
                sums = self._row_sums(policy, [plain[i] for i in numbers])
                weights = [float(slopes[mine[i].pair, mine[i].side]) for i in numbers]
                optimizer.backward((sums * sums.new_tensor(weights)).sum())
            metrics[f"{name}/grad_norm"] = optimizer.step()
            metrics[f"{name}/lr"] = optimizer.last_lr
            metrics |= optimizer.scale.metrics(f"{name}/")
        return metrics


def make_madpo(
    *,
    agents: Sequence[AgentID],
    model: ModelSource | Mapping[AgentID, ModelSource],
    seed: int = 0,
    **options: Any,  # noqa: ANN401 - checked against the groups of MadpoConfig
) -> Madpo:
    """Build MADPO; options are the groups of `MadpoConfig`.

    Raises:
        UnknownNameError: If an option is not a field of a group.
        ConfigError: If a value has the wrong type or is outside its range.
        ModelNotFoundError: If a model cannot be loaded.
    """
    return Madpo(agents, model, build_config(MadpoConfig, options), seed)
