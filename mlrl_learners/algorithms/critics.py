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
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from mlrl_learners.algorithms.critic_config import CriticConfig
from mlrl_learners.algorithms.critic_inputs import (
    CENTRAL,
    AnswerKey,
    CriticInputs,
    Key,
    ValueEstimates,
    critic_format,
)
from mlrl_learners.algorithms.policy_update import Stats, mean_divisor, take_steps
from mlrl_learners.algorithms.team import Team
from mlrl_learners.algorithms.update_metrics import critic_metrics
from mlrl_learners.algorithms.value_samples import (
    FIRST_TOKEN,
    ValueSample,
    per_value,
    value_weights,
)
from mlrl_learners.algorithms.value_scale import ValueScale
from mlrl_learners.engine import TokenRow
from mlrl_learners.errors import ConfigError
from mlrl_learners.functional.losses import check_finite, value_loss
from mlrl_learners.policies import ChatFormat, Critic, ModelSource, PolicyOptimizer, restore
from mlrl_learners.processes.work_sharing import gather
from mlrl_learners.types import AgentID, Rollout

__all__ = ["TeamCritics"]

ADAPTERS = "critics"  # reserved: policies cannot have this name
OPTIMIZER_FILE = "optimizer.pt"
SCALE_FILE = "value_scale.pt"


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
        self.by_token = config.critic.level == "token"
        central = self.kind == "central"
        self.critic_of = {
            agent: CENTRAL if central else team.policy_of[agent] for agent in team.learning
        }
        self.critics = {
            name: self._build(team, name, sources)
            for name in dict.fromkeys(self.critic_of.values())
        }
        if self.by_token:
            self._check_vocabularies(team)
        optimizer = replace(config.optimizer, lr=config.critic.lr or config.optimizer.lr)
        self.optimizers = {
            # A value head is trained by one loss with its policy, and shares its scale.
            name: PolicyOptimizer(
                critic.parameters(),
                optimizer,
                critic.trunk.new_loss_scale() if critic.owns_trunk else team.optimizers[name].scale,
            )
            for name, critic in self.critics.items()
        }
        self.scales = {
            name: ValueScale(critic.head)
            for name, critic in self.critics.items()
            if config.critic.normalize
        }
        self._inputs = CriticInputs(team.agents, self.kind, self._formats(formats))

    def estimate(self, rollouts: Sequence[Rollout], *, bootstrap: bool = False) -> ValueEstimates:
        """Evaluate the current critics at all observations of the rollouts, and answers if needed.

        Args:
            rollouts: Rollouts of the update.
            bootstrap: Include the observations behind artificial turn limits.
        """
        prompts = self._inputs.prompts(rollouts, bootstrap=bootstrap)
        values: dict[Key, list[float]] = {}
        of_answers: dict[AnswerKey, list[list[float]]] = {}
        for name in self.critics:
            keys = [key for key in prompts if self.critic_of.get(key[0], CENTRAL) == name]
            rows = [TokenRow(prompts[key], FIRST_TOKEN) for key in keys]
            found = self._evaluate(name, rows)
            values |= {key: each[0] for key, each in zip(keys, found, strict=True)}
            if self.by_token:
                answers = self._inputs.answers(rollouts, set(keys))
                rows = [TokenRow(prompts[key], tokens) for key, tokens in answers]
                of_answers |= zip(answers, self._evaluate(name, rows), strict=True)
        return ValueEstimates(self._inputs, prompts, values, of_answers)

    def adapt(self, samples: Sequence[ValueSample]) -> None:
        """Add the targets of an update to the statistics of `critic.normalize`.

        Args:
            samples: Every value sample of the update.
        """
        for name, scale in self.scales.items():
            mine = [sample for sample in samples if self.critic_of[sample.agent] == name]
            if mine:
                targets = torch.tensor([t for each in mine for t in each.targets]).double()
                scale.adapt(targets, self._columns(mine), value_weights(mine))

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
                agents = {agent for agent, each in self.critic_of.items() if each == name}
                divisor = mean_divisor(rollouts, mine, self.config, agents)
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
        values: Tensor,  # [T, V]
        samples: Sequence[ValueSample],
        divisor: float,
        stats: Stats,
    ) -> Tensor:
        """Return the part of the mean value loss of some rows, times `value_coef`; a scalar.

        Args:
            name: Name of the critic.
            values: Current values of the rows, one for each target, `[T, V]`.
            samples: The rows, B of them.
            divisor: From `mean_divisor`.
            stats: Receives `value_loss`.
        """
        columns = self._columns(samples)
        old_values = torch.tensor([v for each in samples for v in each.old_values]).to(values)
        targets = torch.tensor([t for each in samples for t in each.targets]).to(values)
        if name in self.scales:
            old_values = self.scales[name].normalize_old(old_values, columns)
            targets = self.scales[name].normalize(targets, columns)
        losses = value_loss(
            values.gather(1, columns.to(values.device)[:, None]).squeeze(1),  # [T]
            old_values,
            targets,
            self.config.critic.value_clip,
        )
        mean = (value_weights(samples).to(values) * losses).sum() / divisor
        stats["value_loss"] += check_finite(mean, f"{name}'s critic")
        return self.config.critic.value_coef * mean

    def metrics(
        self, name: str, samples: Sequence[ValueSample], stats: Mapping[str, float]
    ) -> dict[str, float]:
        """Return the metrics of a critic's update."""
        metrics = critic_metrics(
            name,
            stats,
            old_values=[value for sample in samples for value in sample.old_values],
            targets=[target for sample in samples for target in sample.targets],
            epochs=self.config.optimizer.epochs,
            lr=self.optimizers[name].last_lr,
        )
        return metrics | self.optimizers[name].scale.metrics(f"{name}/critic_")

    def save(self, path: Path) -> None:
        """Write every critic and its optimizer into a folder of its own."""
        for name, critic in self.critics.items():
            critic.save(path / name)
            torch.save(self.optimizers[name].state_dict(), path / name / OPTIMIZER_FILE)
            if name in self.scales:
                torch.save(self.scales[name].state_dict(), path / name / SCALE_FILE)

    def load(self, path: Path) -> None:
        """Restore what `save` wrote.

        Raises:
            CheckpointError: If a file is missing or damaged, or does not fit these critics.
        """
        for name, critic in self.critics.items():
            critic.load(path / name)
            restore(path / name / OPTIMIZER_FILE, self.optimizers[name].load_state_dict)
            if name in self.scales:
                restore(path / name / SCALE_FILE, self.scales[name].load_state_dict)

    def _columns(self, samples: Sequence[ValueSample]) -> Tensor:
        return per_value([self._inputs.column(sample.agent) for sample in samples], samples).long()

    def _check_vocabularies(self, team: Team) -> None:
        for agent, name in self.critic_of.items():
            policy = team.policies[team.policy_of[agent]]
            if self.critics[name].trunk.tokenizer.get_vocab() != policy.tokenizer.get_vocab():
                raise ConfigError(
                    f"critic.level token reads the tokens of {agent!r}, and its critic has another "
                    "vocabulary: leave critic.model out, or set a model of the same family"
                )

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
        room = self.config.sampling.max_new_tokens if self.by_token else 0
        if self.kind == "central":
            limits = [each.max_prompt_tokens for each in actors.values()]
            limit = None if None in limits else sum(filter(None, limits))
            return {CENTRAL: critic_format(self.critics[CENTRAL], limit, None, room)}
        return {
            agent: critic_format(
                self.critics[name],
                actors[agent].max_prompt_tokens,
                actors[agent].system_prompt,
                room,
                actors[agent].template_kwargs,
            )
            for agent, name in self.critic_of.items()
        }

    def _evaluate(self, name: str, rows: Sequence[TokenRow]) -> list[list[list[float]]]:
        """Return the values before each token of each row, one for each column."""
        critic, scale = self.critics[name], self.scales.get(name)
        found: dict[int, list[list[float]]] = {}
        with torch.no_grad():
            for batch in critic.trunk.micro_batches(rows, self.config.compute.micro_batch_tokens):
                values = self._values(critic, [rows[i] for i in batch])
                values = values if scale is None else scale.to_returns(values)
                parts = values.split([len(rows[i].token_ids) for i in batch])
                found |= zip(batch, (part.tolist() for part in parts), strict=True)
        return list(gather(found).values())

    def _separate_loss(
        self, name: str, divisor: float, samples: list[ValueSample], stats: Stats
    ) -> Tensor:
        values = self._values(self.critics[name], [sample.row for sample in samples])
        return self.loss(name, values, samples, divisor, stats)

    def _values(self, critic: Critic, rows: Sequence[TokenRow]) -> Tensor:
        """Return the values before each token of the rows, `[T, V]`."""
        if all(row.token_ids == FIRST_TOKEN for row in rows):
            return critic.values([row.prompt_ids for row in rows])
        return critic.token_values(rows)
