"""Critics of a team: their kinds, value targets and updates.

- `separate`: one per policy, a model of its own that reads the observation of the agent
- `value_head`: one per policy, a head on the policy's own model
- `central`: one for the team, a model of its own that reads the observations of all agents and
  has one value per agent

Agents that share a policy share its critic, and frozen agents have none. If policies are adapters,
so are critics, on the base model of the policy or on `critic.model`.
"""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch
from torch import Tensor

from mlrl_learners.algorithms.critic_inputs import (
    CENTRAL,
    CriticInputs,
    Key,
    Prompt,
    ValueEstimates,
    critic_format,
)
from mlrl_learners.algorithms.critic_options import CriticOptions
from mlrl_learners.algorithms.policy_gradient_config import PolicyGradientConfig
from mlrl_learners.algorithms.policy_update import Stats, mean_divisor, take_steps
from mlrl_learners.algorithms.team import Team
from mlrl_learners.algorithms.update_metrics import critic_metrics
from mlrl_learners.engine import TokenRow
from mlrl_learners.functional.losses import check_finite, value_loss
from mlrl_learners.policies import ChatFormat, Critic, ModelSource, PolicyOptimizer, restore
from mlrl_learners.processes.work_sharing import gather
from mlrl_learners.types import AgentID, Rollout

__all__ = ["CriticConfig", "TeamCritics", "ValueSample"]

ADAPTERS = "critics"  # reserved: policies cannot have this name
OPTIMIZER_FILE = "optimizer.pt"


@dataclass(frozen=True)
class CriticConfig(PolicyGradientConfig):
    """Options of a method with critics.

    Attributes:
        critic: Kind and training of the critics.
    """

    critic: CriticOptions = field(default_factory=CriticOptions)


@dataclass(frozen=True, slots=True)
class ValueSample:
    """A value of a critic and its target.

    Attributes:
        agent: Agent whose return is estimated.
        prompt: Tokens that the critic read.
        old_value: Value at sampling time, V_old.
        target: Value target, in units of the return.
        node_weight: Weight of the node in the value loss.
    """

    agent: AgentID
    prompt: Prompt
    old_value: float
    target: float
    node_weight: float = 1.0

    @property
    def row(self) -> TokenRow:
        """The prompt, with one position for the hidden state after it."""
        return TokenRow(self.prompt, (0,))


class TeamCritics:
    """Critics of a team and their optimizers.

    Args:
        team: Team that the critics belong to.
        config: Kind and training of the critics.
        formats: Chat format of each agent.
        sources: Model that the critic of each policy starts from; a central critic starts from the
            first.
    """

    def __init__(
        self,
        team: Team,
        config: CriticConfig,
        *,
        formats: Mapping[AgentID, ChatFormat],
        sources: Mapping[str, ModelSource],
    ) -> None:
        self.config, self.kind = config, config.critic.kind
        central = self.kind == "central"
        self.critic_of = {
            agent: CENTRAL if central else team.policy_of[agent] for agent in team.learning
        }
        self.critics = {
            name: self._build(team, name, sources)
            for name in dict.fromkeys(self.critic_of.values())
        }
        optimizer = replace(config.optimizer, lr=config.critic.lr or config.optimizer.lr)
        self.optimizers = {
            name: PolicyOptimizer(critic.parameters(), optimizer)
            for name, critic in self.critics.items()
        }
        self._inputs = CriticInputs(team.agents, self.kind, self._formats(formats))

    def estimate(self, rollouts: Sequence[Rollout], *, bootstrap: bool = False) -> ValueEstimates:
        """Evaluate the current critics at all observations of the rollouts.

        Args:
            rollouts: Rollouts of the update.
            bootstrap: Include the observations behind artificial turn limits.
        """
        prompts = self._inputs.prompts(rollouts, bootstrap=bootstrap)
        values: dict[Key, list[float]] = {}
        for name, critic in self.critics.items():
            keys = [key for key in prompts if self.critic_of.get(key[0], CENTRAL) == name]
            values |= zip(keys, self._evaluate(critic, [prompts[key] for key in keys]), strict=True)
        return ValueEstimates(self._inputs, prompts, values)

    def update(
        self,
        samples: Sequence[ValueSample],
        rollouts: Sequence[Rollout],
        generator: torch.Generator,
    ) -> dict[str, float]:
        """Take the optimizer steps of the critics that have models of their own.

        Args:
            samples: Every value sample of the update.
            rollouts: Rollouts of the update.
            generator: Shuffles minibatches.
        """
        metrics: dict[str, float] = {}
        for name, critic in self.critics.items():
            mine = [sample for sample in samples if self.critic_of[sample.agent] == name]
            if mine and critic.owns_trunk:
                divisor = mean_divisor(rollouts, mine, self.config)
                stats = take_steps(
                    mine,
                    functools.partial(self._separate_loss, name, divisor),
                    model=critic.trunk,
                    optimizers={"critic_grad_norm": self.optimizers[name]},
                    config=self.config,
                    generator=generator,
                )
                metrics |= self.metrics(name, mine, stats)
        return metrics

    def loss(
        self,
        name: str,
        values: Tensor,  # [B, V]
        samples: Sequence[ValueSample],
        divisor: float,
        stats: Stats,
    ) -> Tensor:
        """Return the part of the mean value loss of some rows, times `value_coef`; a scalar.

        Args:
            name: Name of the critic.
            values: Current values of the rows, `[B, V]`.
            samples: The rows, B of them.
            divisor: From `mean_divisor`.
            stats: Receives `value_loss`.
        """
        columns = torch.tensor([self._inputs.column(sample.agent) for sample in samples]).long()
        losses = value_loss(
            values.gather(1, columns.to(values.device)[:, None]).squeeze(1),  # [B]
            torch.tensor([sample.old_value for sample in samples], device=values.device),
            torch.tensor([sample.target for sample in samples], device=values.device),
            self.config.critic.value_clip,
        )
        weights = torch.tensor([sample.node_weight for sample in samples], device=values.device)
        mean = (weights * losses).sum() / divisor
        stats["value_loss"] += check_finite(mean, f"{name}'s critic")
        return self.config.critic.value_coef * mean

    def metrics(
        self, name: str, samples: Sequence[ValueSample], stats: Mapping[str, float]
    ) -> dict[str, float]:
        """Return the metrics of a critic's update."""
        return critic_metrics(
            name,
            stats,
            old_values=[sample.old_value for sample in samples],
            targets=[sample.target for sample in samples],
            epochs=self.config.optimizer.epochs,
            lr=self.optimizers[name].last_lr,
        )

    def save(self, path: Path) -> None:
        """Write every critic and its optimizer into a folder of its own."""
        for name, critic in self.critics.items():
            critic.save(path / name)
            torch.save(self.optimizers[name].state_dict(), path / name / OPTIMIZER_FILE)

    def load(self, path: Path) -> None:
        """Restore what `save` wrote.

        Raises:
            CheckpointError: If a file is missing or damaged, or does not fit these critics.
        """
        for name, critic in self.critics.items():
            critic.load(path / name)
            restore(path / name / OPTIMIZER_FILE, self.optimizers[name].load_state_dict)

    def _build(self, team: Team, name: str, sources: Mapping[str, ModelSource]) -> Critic:
        if self.kind == "value_head":
            return Critic(team.policies[name], 1, owns_trunk=False)
        source = sources.get(name, next(iter(sources.values())))
        num_values = len(team.agents) if self.kind == "central" else 1
        trunk = team.models.trained(f"{ADAPTERS}/{name}", source)
        return Critic(trunk, num_values, owns_trunk=True)

    def _formats(self, actors: Mapping[AgentID, ChatFormat]) -> dict[str, ChatFormat]:
        if self.kind == "value_head":
            return {agent: actors[agent] for agent in self.critic_of}
        if self.kind == "central":
            limits = [each.max_prompt_tokens for each in actors.values()]
            limit = None if None in limits else sum(filter(None, limits))
            return {CENTRAL: critic_format(self.critics[CENTRAL], limit, None)}
        return {
            agent: critic_format(
                self.critics[name],
                actors[agent].max_prompt_tokens,
                actors[agent].system_prompt,
                actors[agent].template_kwargs,
            )
            for agent, name in self.critic_of.items()
        }

    def _evaluate(self, critic: Critic, prompts: Sequence[Prompt]) -> list[list[float]]:
        rows = [TokenRow(prompt, (0,)) for prompt in prompts]
        found: dict[int, list[float]] = {}
        with torch.no_grad():
            for batch in critic.trunk.micro_batches(rows, self.config.compute.micro_batch_tokens):
                values = critic.values([prompts[i] for i in batch]).tolist()
                found |= zip(batch, values, strict=True)
        return list(gather(found).values())

    def _separate_loss(
        self, name: str, divisor: float, samples: list[ValueSample], stats: Stats
    ) -> Tensor:
        values = self.critics[name].values([sample.prompt for sample in samples])
        return self.loss(name, values, samples, divisor, stats)
