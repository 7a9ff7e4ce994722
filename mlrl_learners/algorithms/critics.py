"""The critics of a team: which there are, what each reads, and how they learn.

- `separate`: one a policy, a model of its own that reads what the agent reads
- `value_head`: one a policy, a head on the actor's own model
- `central`: one for the whole team, a model of its own that reads what all agents read, with one
  value an agent

Agents that share weights share the critic, as they share everything; those that are frozen need
none. Where policies are adapters, so are critics, on the base of the policy or of `critic_model`.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from mlrl_learners.algorithms.critic_inputs import (
    CENTRAL,
    CriticInputs,
    CriticKind,
    Key,
    Prompt,
    Reading,
)
from mlrl_learners.algorithms.metrics import critic_metrics
from mlrl_learners.algorithms.policy_gradient import PolicyGradientConfig, check_finite, minibatches
from mlrl_learners.algorithms.row_weights import mean_divisor
from mlrl_learners.algorithms.team import Team
from mlrl_learners.config.options import check_unread
from mlrl_learners.engine import TokenRow
from mlrl_learners.errors import ConfigError
from mlrl_learners.functional.losses import value_loss
from mlrl_learners.policies import ChatFormat, Critic, ModelSource, PolicyOptimizer, restore
from mlrl_learners.processes.work_sharing import gather, sum_numbers
from mlrl_learners.types import AgentID, Rollout

__all__ = ["CriticConfig", "TeamCritics", "ValueSample"]

ADAPTERS = "critics"  # no policy is called so
OPTIMIZER_FILE = "optimizer.pt"


@dataclass(frozen=True)
class CriticConfig(PolicyGradientConfig):
    """Which critics a team has, and how they learn.

    Attributes:
        critic: `"separate"` (a model or adapter of its own for each policy), `"value_head"` (a
            head on the actor, in one forward pass with it) or `"central"` (one model or adapter
            that reads what all agents read).
        critic_model: What critics with a model of their own start from; null for the actor's.
        critic_lr: Highest learning rate of the critics (of the heads, for `value_head`), above 0;
            null for `lr`.
        value_coef: Weight of the value loss, which is half of a squared error, at least 0.
        value_clip: How far a value counts from what it was when the rollouts were played, above
            0; `inf` for no limit.
    """

    critic: CriticKind = "separate"
    critic_model: ModelSource | None = None
    critic_lr: float | None = None
    value_coef: float = 0.5
    value_clip: float = 0.2

    def __post_init__(self) -> None:
        """Check ranges.

        Raises:
            ConfigError: If a value is outside its range.
        """
        super().__post_init__()
        if self.critic not in ("separate", "value_head", "central"):
            raise ConfigError(
                f"critic must be separate, value_head or central, got {self.critic!r}"
            )
        if not self.value_coef >= 0:
            raise ConfigError(f"value_coef must be at least 0, got {self.value_coef}")
        for name in ("value_clip", "critic_lr"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ConfigError(f"{name} must be above 0, got {value}")
        if self.critic == "value_head" and self.critic_model is not None:
            raise ConfigError("a value_head has no model of its own: leave critic_model out")
        if not self.value_coef:
            reason = "value_coef 0, with which no critic learns: set value_coef above 0"
            check_unread(self, ("critic_lr", "critic_model"), reason)


@dataclass(frozen=True, slots=True)
class ValueSample:
    """One judgement of a critic, and what it should have been.

    Attributes:
        agent: Whose value it is.
        prompt: What the critic read.
        old_value: What it expected when the rollouts were played.
        target: What it should have expected, in the scale of the rewards.
        weight: Weight of the node in the value loss.
    """

    agent: AgentID
    prompt: Prompt
    old_value: float
    target: float
    weight: float = 1.0

    @property
    def row(self) -> TokenRow:
        """The prompt, and room for the state behind it."""
        return TokenRow(self.prompt, (0,))


class TeamCritics:
    """The critics of a team, with their optimizers.

    Args:
        team: Whose critics they are.
        config: Which, and how they learn.
        formats: For each agent, how its prompts are made.
        sources: For each policy, the model that its critic starts from if it has one of its own;
            a central critic starts from the first.
    """

    def __init__(
        self,
        team: Team,
        config: CriticConfig,
        *,
        formats: Mapping[AgentID, ChatFormat],
        sources: Mapping[str, ModelSource],
    ) -> None:
        self.agents, self.config, self.kind = team.agents, config, config.critic
        central = self.kind == "central"
        self.critic_of = {
            agent: CENTRAL if central else team.policy_of[agent] for agent in team.learning
        }
        self.critics = {
            name: self._build(team, name, sources)
            for name in dict.fromkeys(self.critic_of.values())
        }
        optimizer = replace(config, lr=config.critic_lr or config.lr)
        self.optimizers = {
            name: PolicyOptimizer(critic.parameters(), optimizer)
            for name, critic in self.critics.items()
        }
        self._inputs = CriticInputs(team.agents, self.kind, self._formats(formats))

    def read(self, rollouts: Sequence[Rollout], *, bootstrap: bool = False) -> Reading:
        """Ask the critics, as they are now, about everything that was or would have been read.

        Args:
            rollouts: What was played.
            bootstrap: Ask about what would have been read behind artificial turn limits, too.
        """
        prompts = self._inputs.prompts(rollouts, bootstrap=bootstrap)
        values: dict[Key, list[float]] = {}
        for name, critic in self.critics.items():
            keys = [key for key in prompts if self.critic_of.get(key[0], CENTRAL) == name]
            values |= zip(keys, self._ask(critic, [prompts[key] for key in keys]), strict=True)
        return Reading(self._inputs, prompts, values)

    def update(
        self,
        samples: Sequence[ValueSample],
        rollouts: Sequence[Rollout],
        generator: torch.Generator,
    ) -> dict[str, float]:
        """Take the optimizer steps of the critics that have models of their own.

        Args:
            samples: Every judgement of the update.
            rollouts: What was played.
            generator: Shuffles minibatches.
        """
        metrics: dict[str, float] = {}
        for name, critic in self.critics.items():
            mine = [sample for sample in samples if self.critic_of[sample.agent] == name]
            if mine and critic.owns_trunk:
                agents = {sample.agent for sample in mine}
                weights = [sample.weight for sample in mine]
                total = mean_divisor(rollouts, agents, weights, self.config)
                metrics |= self._update_one(name, mine, total, generator)
        return metrics

    def loss(
        self,
        name: str,
        values: Tensor,  # [B, V]
        batch: Sequence[ValueSample],
        total: float,
        stats: dict[str, float],
    ) -> Tensor:
        """Return these rows' part of the mean value loss, times its coefficient.

        Args:
            name: Whose critic.
            values: What it says now, `[B, V]`.
            batch: The judgements, B of them.
            total: What the mean over all judgements of the update divides by.
            stats: The statistics of the update; `value_loss` grows.
        """
        columns = torch.tensor([self._inputs.column(sample.agent) for sample in batch]).long()
        losses = value_loss(
            values.gather(1, columns.to(values.device)[:, None]).squeeze(1),  # [B]
            torch.tensor([sample.old_value for sample in batch], device=values.device),
            torch.tensor([sample.target for sample in batch], device=values.device),
            self.config.value_clip,
        )
        weights = torch.tensor([sample.weight for sample in batch], device=values.device)
        mean = (weights * losses).sum() / total
        stats["value_loss"] += check_finite(mean, f"{name}'s critic")
        return self.config.value_coef * mean

    def metrics(
        self, name: str, samples: Sequence[ValueSample], stats: Mapping[str, float]
    ) -> dict[str, float]:
        """Return what is worth logging of a critic's update."""
        return critic_metrics(
            name,
            stats,
            old_values=[sample.old_value for sample in samples],
            targets=[sample.target for sample in samples],
            epochs=self.config.epochs,
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
            CheckpointError: If it is missing, damaged, or of other critics.
        """
        for name, critic in self.critics.items():
            critic.load(path / name)
            restore(path / name / OPTIMIZER_FILE, self.optimizers[name].load_state_dict)

    def _build(self, team: Team, name: str, sources: Mapping[str, ModelSource]) -> Critic:
        if self.kind == "value_head":
            return Critic(team.policies[name], 1, owns_trunk=False)
        source = sources.get(name, next(iter(sources.values())))
        num_values = len(team.agents) if self.kind == "central" else 1
        trunk = team.weights.trained(f"{ADAPTERS}/{name}", source)
        return Critic(trunk, num_values, owns_trunk=True)

    def _formats(self, actors: Mapping[AgentID, ChatFormat]) -> dict[str, ChatFormat]:
        if self.kind == "value_head":
            return {agent: actors[agent] for agent in self.critic_of}
        if self.kind == "central":
            limits = [each.max_prompt_tokens for each in actors.values()]
            limit = None if None in limits else sum(filter(None, limits))
            return {CENTRAL: _format(self.critics[CENTRAL], limit, None)}
        return {
            agent: _format(
                self.critics[name], actors[agent].max_prompt_tokens, actors[agent].system_prompt
            )
            for agent, name in self.critic_of.items()
        }

    def _ask(self, critic: Critic, prompts: Sequence[Prompt]) -> list[list[float]]:
        rows = [TokenRow(prompt, (0,)) for prompt in prompts]
        answers: dict[int, list[float]] = {}
        with torch.no_grad():
            for batch in critic.trunk.micro_batches(rows, self.config.micro_batch_tokens):
                values = critic.values([prompts[i] for i in batch]).tolist()
                answers |= zip(batch, values, strict=True)
        return list(gather(answers).values())

    def _update_one(
        self,
        name: str,
        samples: list[ValueSample],
        total: float,
        generator: torch.Generator,
    ) -> dict[str, float]:
        stats: dict[str, float] = defaultdict(float)
        for minibatch in minibatches(samples, self.config, generator):
            rows = [sample.row for sample in minibatch]
            for places in self.critics[name].trunk.micro_batches(
                rows, self.config.micro_batch_tokens
            ):
                batch = [minibatch[i] for i in places]
                values = self.critics[name].values([sample.prompt for sample in batch])
                loss = self.loss(name, values, batch, total, stats)
                (loss * (len(samples) / len(minibatch))).backward()
            stats["critic_grad_norm"] += self.optimizers[name].step()
            stats["steps"] += 1
        return self.metrics(name, samples, sum_numbers(stats))


def _format(critic: Critic, limit: int | None, system_prompt: str | None) -> ChatFormat:
    readable = critic.trunk.max_positions
    least = min((each for each in (limit, readable) if each is not None), default=None)
    chat = ChatFormat(critic.trunk.tokenizer, system_prompt, least)
    if least is not None and least <= chat.num_fixed_tokens:
        raise ConfigError(
            f"a critic must read more than {chat.num_fixed_tokens} tokens, those of its chat "
            f"template and system prompt, and its prompts may have {least}: raise "
            "max_prompt_tokens, or take a critic_model that reads longer prompts"
        )
    return chat
