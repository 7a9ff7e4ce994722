"""MADPO: a team learns from pairs of joint answers of which one earned more.

At every decision point the joint answers are ranked by the team's return; the best is paired with
the worst, and so on inwards. The policy of a team is the product of its agents' policies, so the
margin of a pair is the sum over agents of their log-ratios, and each agent is moved by how sure the
whole team is. Where agents are not paid alike, each ranks its own answers by its own return, and a
pair moves that agent alone. Pairs come from what the team plays (iterated, on-policy) or from a
file of episodes in which the same prompts were answered more than once.

Sources: DPO (arXiv 2305.18290); losses as in `mlrl_learners.functional.preferences`.
"""

import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from mlrl_learners.algorithms.metrics import group_metrics
from mlrl_learners.algorithms.offline import OfflineTeam
from mlrl_learners.algorithms.pairs import Pair, SignedRow, check_choice, played_pairs
from mlrl_learners.algorithms.policy_gradient import check_finite
from mlrl_learners.algorithms.team import TeamConfig
from mlrl_learners.algorithms.turn_pairs import TurnPair, ranked_turns
from mlrl_learners.config.options import check_options, check_unread
from mlrl_learners.engine import TokenRow
from mlrl_learners.errors import ConfigError
from mlrl_learners.functional.preferences import PreferenceLoss, preference_loss
from mlrl_learners.functional.returns import check_rewards, rollout_groups
from mlrl_learners.policies import ModelSource, Policy
from mlrl_learners.processes.work_sharing import sum_tensors
from mlrl_learners.runs.demonstrations import JointTurn
from mlrl_learners.types import AgentID, Branching, JointMode, Rollout, RolloutConfig

__all__ = ["Madpo", "MadpoConfig", "make_madpo"]


@dataclass(frozen=True)
class MadpoConfig(TeamConfig):
    """Which pairs are taken, and what is done with them.

    Attributes:
        episodes: A file of `mlrl collect` with several episodes a task; empty to learn from what
            the agents themselves play.
        group_size: Answers an agent gives to one prompt, the candidates, at least 2.
        joint_mode: `"aligned"` plays the j-th answers together, `"cross"` every combination.
        branching: `"tree"` goes on from every joint action, `"chain"` from one of them.
        gamma: Discount a turn of what is played, in [0, 1].
        num_pairs: Most pairs of joint answers to the same prompts, those of largest gap, at least
            1; from a file also the pairs of one update.
        beta: How much a nat of log-ratio counts, above 0.
        loss: `sigmoid`, `hinge` or `ipo`.
        label_smoothing: Chance that the worse answer was the better one, in [0, 0.5).
        use_reference: Measure log-ratios from the starting weights; else log-probabilities alone.
        epochs: Optimizer steps on the same pairs, at least 1.
    """

    episodes: str = ""
    group_size: int = 80
    joint_mode: JointMode = "aligned"
    branching: Branching = "chain"
    gamma: float = 1.0
    num_pairs: int = 16
    beta: float = 0.1
    loss: PreferenceLoss = "sigmoid"
    label_smoothing: float = 0.0
    use_reference: bool = True
    epochs: int = 1

    def __post_init__(self) -> None:
        """Check ranges.

        Raises:
            ConfigError: If a value is outside its range.
        """
        super().__post_init__()
        for name, low in (("group_size", 2), ("num_pairs", 1), ("epochs", 1)):
            if getattr(self, name) < low:
                raise ConfigError(f"{name} must be at least {low}, got {getattr(self, name)}")
        if not 0 <= self.gamma <= 1:
            raise ConfigError(f"gamma must be in [0, 1], got {self.gamma}")
        if not self.beta > 0:
            raise ConfigError(f"beta must be above 0, got {self.beta}")
        if not 0 <= self.label_smoothing < 0.5:
            raise ConfigError(f"label_smoothing must be in [0, 0.5), got {self.label_smoothing}")
        if self.episodes:
            reason = "episodes, from which pairs come and nothing is played: leave it out"
            check_unread(self, ("joint_mode", "branching", "gamma"), reason)

    @property
    def steps_per_update(self) -> int:
        """Most optimizer steps that one update takes."""
        return self.epochs

    def check_rollout(self, rollout: RolloutConfig) -> None:
        """Check that there are answers to choose from, where they do not come from a file.

        Raises:
            ConfigError: If there are not.
        """
        if not self.episodes:
            check_choice(rollout)


class Madpo(OfflineTeam):
    """Learns from preferences between joint answers.

    Args:
        agents: Every agent, in the environment's order.
        model: One model for all, or one an agent.
        config: The pairs, the loss and the models.
        seed: Decides everything that is sampled, and the order of what is drawn.
    """

    config: MadpoConfig

    def __init__(
        self,
        agents: Sequence[AgentID],
        model: ModelSource | Mapping[AgentID, ModelSource],
        config: MadpoConfig,
        seed: int = 0,
    ) -> None:
        super().__init__(agents, model, config, seed, offline=bool(config.episodes))
        self.rollout = RolloutConfig(config.group_size, config.joint_mode, config.branching)
        self.references = {
            name: policy.frozen_copy()
            for name, policy in self.policies.items()
            if config.use_reference
        }

    @functools.cached_property
    def examples(self) -> list[Pair]:
        """Every pair that the file holds; read on first use.

        Raises:
            ConfigError: If the file is missing, holds no two answers that differ in worth, or none
                of agents that learn.
        """
        points = ranked_turns(
            Path(self.config.episodes), self.config.num_pairs, self.learning, own_answers=True
        )
        return [self._pair_of_turns(pair) for point in points for pair in point]

    def update(self, rollouts: Sequence[Rollout]) -> dict[str, float]:
        """Take `epochs` optimizer steps a policy on pairs of the file, or of the rollouts.

        Returns:
            Metrics by name: of the team (`preferences/accuracy`), per agent and per policy.

        Raises:
            NumericsError: If a reward, loss or gradient is not finite.
            ConfigError: If a file cannot be learnt from.
        """
        check_rewards(rollouts)
        self.begin_update()
        self._updates += 1
        metrics = group_metrics(list(rollout_groups(rollouts, self.config.gamma)))
        pairs = self._drawn() if self.offline else list(self._played(rollouts))
        metrics["preferences/pairs"] = float(len(pairs))
        if not pairs:
            return metrics
        metrics["preferences/gap"] = math.fsum(pair.gap for pair in pairs) / len(pairs)
        rows = self._signed_rows(pairs)
        reference = self._reference_margins(rows, len(pairs))
        for _ in range(self.config.epochs):
            metrics |= self._step(rows, reference)
        return metrics

    def _drawn(self) -> list[Pair]:
        return [self.examples[i] for i in self.draw(len(self.examples), self.config.num_pairs)]

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
        config = self.config
        return played_pairs(
            rollouts, gamma=config.gamma, num_pairs=config.num_pairs, agents=self.learning
        )

    def _signed_rows(self, pairs: Sequence[Pair]) -> dict[str, list[SignedRow]]:
        rows: dict[str, list[SignedRow]] = {name: [] for name in self.policies}
        for number, pair in enumerate(pairs):
            for sign, side in ((1.0, pair.better), (-1.0, pair.worse)):
                for agent, row in side.items():
                    if agent in self.learning:
                        rows[self.policy_of[agent]].append(SignedRow(number, sign, row))
        return rows

    def _reference_margins(self, rows: Mapping[str, list[SignedRow]], num_pairs: int) -> Tensor:
        """Return the reference's part of the margins, `[P]`; zeros without a reference."""
        if not self.config.use_reference:
            return torch.zeros(num_pairs, dtype=torch.float64)
        return self._margins(self.references, rows, num_pairs)

    @torch.no_grad()
    def _margins(
        self, policies: Mapping[str, Policy], rows: Mapping[str, list[SignedRow]], num_pairs: int
    ) -> Tensor:
        """Return sum over rows of sign * log pi(row) for each pair, `[P]`."""
        margins = torch.zeros(num_pairs, dtype=torch.float64)
        for name, mine in rows.items():
            for batch, sums in self._row_sums(policies[name], mine):
                pairs = torch.tensor([each.pair for each in batch], dtype=torch.long)
                signs = torch.tensor([each.sign for each in batch], dtype=torch.float64)
                margins.index_add_(0, pairs, signs * sums.double().cpu())
        sum_tensors([margins])
        return margins

    def _row_sums(
        self, policy: Policy, rows: Sequence[SignedRow]
    ) -> Iterator[tuple[list[SignedRow], Tensor]]:
        """Yield micro-batches and log pi of each of their rows, `[B]`.

        What the policies played is scored at the temperature they played at; what a file holds was
        not drawn from them, and is scored at temperature 1.
        """
        temperature = 1.0 if self.offline else self.config.temperature
        plain = [each.row for each in rows]
        for numbers in policy.micro_batches(plain, self.config.micro_batch_tokens):
            batch = [rows[number] for number in numbers]
            logprobs, _ = policy.logprobs(
                [each.row for each in batch], temperature=temperature, with_entropy=False
            )
            lengths = [len(each.row.token_ids) for each in batch]
            parts = logprobs.split(lengths)
            yield batch, torch.stack([part.sum() for part in parts]) if batch else logprobs

    def _step(self, rows: Mapping[str, list[SignedRow]], reference: Tensor) -> dict[str, float]:
        """Take one step a policy.

        The margin of a pair depends on rows of all agents and of any micro-batch. So all margins
        come first, without a gradient; dL/dh of each pair then weighs its rows, which is the same
        gradient whatever is computed together.
        """
        margins = self._margins(self.policies, rows, len(reference)) - reference
        margins.requires_grad_()
        losses = preference_loss(
            margins,
            beta=self.config.beta,
            kind=self.config.loss,
            label_smoothing=self.config.label_smoothing,
        )
        metrics = {"preferences/loss": check_finite(losses.mean(), "preferences")}
        (slopes,) = torch.autograd.grad(losses.mean(), margins)
        metrics["preferences/margin"] = float(margins.detach().mean())
        metrics["preferences/accuracy"] = float((margins.detach() > 0).double().mean())
        for name, mine in rows.items():
            if not mine:
                continue
            for batch, sums in self._row_sums(self.policies[name], mine):
                weights = [each.sign * float(slopes[each.pair]) for each in batch]
                (sums * sums.new_tensor(weights)).sum().backward()
            metrics[f"{name}/grad_norm"] = self.optimizers[name].step()
            metrics[f"{name}/lr"] = self.optimizers[name].last_lr
        return metrics


def make_madpo(
    *,
    agents: Sequence[AgentID],
    model: ModelSource | Mapping[AgentID, ModelSource],
    seed: int = 0,
    **options: Any,  # noqa: ANN401 - checked against the fields of MadpoConfig
) -> Madpo:
    """Build MADPO; options are the fields of `MadpoConfig`.

    Raises:
        UnknownNameError: If an option is none of them.
        ConfigError: If a value has the wrong type or is outside its range.
        ModelNotFoundError: If a model cannot be loaded.
    """
    check_options(options, MadpoConfig)
    return Madpo(agents, model, MadpoConfig(**options), seed)
