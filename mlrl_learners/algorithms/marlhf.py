"""MARLHF: a team is trained on a reward model, which is trained on preferences.

An update first trains the reward model on pairs of joint answers ranked by their returns, from the
collected rollouts or from a file. Every collected joint answer then receives its score as reward,
and a policy-gradient method takes its steps on these rewards. If agents have different rewards,
each has its own score; this is detected in the ranked returns, and once detected it stays so.

A score estimates the return of a joint answer, not the reward of its turn. Scores of later turns
are therefore not added: the method has a discount of 0, and `preferences.gamma` is that of the
ranked returns. `credit.kind: outcome` is refused, because it would drop the scores of all turns but
the last.

Source: RLHF (arXiv 2203.02155), applied to the joint answers of a team.
"""

import dataclasses
import functools
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from random import Random
from typing import Any

from mlrl_learners.algorithms import actor_critic, magrpo, single_agent
from mlrl_learners.algorithms.actor_critic import ActorCritic
from mlrl_learners.algorithms.file_pairs import TurnPair, ranked_turns
from mlrl_learners.algorithms.magrpo import Magrpo
from mlrl_learners.algorithms.marlhf_config import MarlhfConfig, Method, split_options
from mlrl_learners.algorithms.reward_model import RewardModel, TextPair, joint_text
from mlrl_learners.algorithms.rollout_pairs import (
    StepPair,
    check_choice,
    has_shared_returns,
    ranked_steps,
)
from mlrl_learners.errors import CheckpointError
from mlrl_learners.functional.advantages import normalize
from mlrl_learners.functional.credit import with_rewards
from mlrl_learners.functional.returns import check_rollouts
from mlrl_learners.policies import ModelSource
from mlrl_learners.seeding import task_indices
from mlrl_learners.types import AgentID, Completion, JointStep, Node, Rollout, RolloutConfig

__all__ = ["Marlhf", "MarlhfConfig", "make_marlhf"]

FACTORIES: Mapping[Method, Callable[..., Magrpo | ActorCritic]] = {
    "magrpo": magrpo.make_magrpo,
    "mareinforce": magrpo.make_mareinforce,
    "marloo": magrpo.make_marloo,
    "maremax": magrpo.make_maremax,
    "grpo": single_agent.make_grpo,
    "rloo": single_agent.make_rloo,
    "reinforce_pp": single_agent.make_reinforce_pp,
    "ippo": actor_critic.make_ippo,
    "mappo": actor_critic.make_mappo,
    "iac": actor_critic.make_iac,
    "maac": actor_critic.make_maac,
    "ppo": single_agent.make_ppo,
}
FOLDER = "reward_model"
STATE_FILE = "marlhf.json"


class Marlhf:
    """Policy-gradient learner with a reward model.

    Args:
        learner: The method with the team's policies; its `credit.gamma` is 0.
        config: Training of the reward model.
        seed: Seed of the validation split of a file, and of the order of its pairs.
    """

    shares_work = True

    def __init__(self, learner: Magrpo | ActorCritic, config: MarlhfConfig, seed: int = 0) -> None:
        self.learner, self.config = learner, config
        self.agents, self.rollout = learner.agents, learner.rollout
        self.policies = learner.policies
        self.save_weights, self.load_weights = learner.save_weights, learner.load_weights
        self.spare = learner.spare
        self._seed, self._updates = seed, 0
        self._has_own_rewards = False
        source = config.reward_model.model or next(iter(learner.sources.values()))
        self.reward_model = RewardModel(
            learner.models.trained(FOLDER, source),
            dataclasses.replace(
                learner.config.optimizer,
                lr=config.reward_model.lr or learner.config.optimizer.lr,
                schedule="constant",
                warmup_steps=0,
                total_steps=0,
            ),
            micro_batch_tokens=learner.config.compute.micro_batch_tokens,
            label_smoothing=config.reward_model.label_smoothing,
        )

    @property
    def is_sharded(self) -> bool:
        """Whether weights, those of the reward model included, are sharded over processes."""
        return self.learner.is_sharded

    @functools.cached_property
    def examples(self) -> tuple[list[TextPair], list[TextPair]]:
        """Training pairs and validation pairs of the file, read on first use.

        The split is by decision point, so that no prompt of a validation pair is trained on.

        Raises:
            ConfigError: If the file is missing, or has no two answers of these agents with
                different returns.
        """
        points = [
            [self._text_pair_of_turns(pair) for pair in point]
            for point in ranked_turns(
                Path(self.config.preferences.episodes),
                self.config.preferences.num_pairs,
                self.agents,
                own_answers=False,
            )
        ]
        Random(self._seed).shuffle(points)  # noqa: S311 - reproducible on purpose
        num_training = len(points) - math.floor(self.config.preferences.held_out * len(points))
        training, validation = points[:num_training], points[num_training:]
        return [p for point in training for p in point], [p for point in validation for p in point]

    def check_rollout(self, rollout: RolloutConfig) -> None:
        """Check that this learner can train on rollouts collected in this way.

        Raises:
            ConfigError: If it cannot.
        """
        self.learner.check_rollout(rollout)
        if not self.config.preferences.episodes:
            check_choice(rollout)

    def plan_updates(self, num_updates: int) -> None:
        """Set the number of updates of the run, over which the method's learning rates decay.

        The learning rate of the reward model is constant.

        Args:
            num_updates: Updates of the whole run, those before a resume included.

        Raises:
            ConfigError: If a schedule would have steps at rate 0, or end within its warm-up.
        """
        self.learner.plan_updates(num_updates)

    def act(
        self,
        observations: Sequence[Mapping[AgentID, str]],
        *,
        num_samples: int = 1,
        explore: bool = True,
    ) -> list[Mapping[AgentID, list[Completion]]]:
        """Sample answers from the team's policies; see `Team.act`."""
        return self.learner.act(observations, num_samples=num_samples, explore=explore)

    def sampling_seed(self, seed: int) -> AbstractContextManager[None]:
        """Sample from `seed` inside the block, then restore the generator."""
        return self.learner.sampling_seed(seed)

    def update(self, rollouts: Sequence[Rollout]) -> dict[str, float]:
        """Train the reward model, then the policies on its scores.

        Returns:
            Metrics of the method and of the reward model. `reward_model/held_out_accuracy` is on
            the validation pairs of the file, or on the collected pairs before training on them.

        Raises:
            ContractError: If an answer in the rollouts has no tokens.
            NumericsError: If a reward, loss or gradient is not finite.
            ConfigError: If the file has no usable pairs.
        """
        check_rollouts(rollouts)
        self._updates += 1
        training, validation = (
            self._pairs_of_file()
            if self.config.preferences.episodes
            else self._played_pairs(rollouts)
        )
        metrics = {"pairs": float(len(training))}
        if validation:
            metrics["held_out_accuracy"] = self.reward_model.accuracy(validation)
        if training:
            metrics |= self.reward_model.learn(training, self.config.reward_model.epochs)
            metrics["accuracy"] = self.reward_model.accuracy(training)
        named = {f"reward_model/{name}": value for name, value in metrics.items()}
        return self.learner.update(self.rescored(rollouts)) | named

    def rescored(self, rollouts: Sequence[Rollout]) -> list[Rollout]:
        """Return the rollouts with the score of each joint answer as its reward.

        All agents have the same score, or, if their rewards have been seen to differ, each agent
        that acts has its own and those that wait have 0.
        """
        asked: dict[tuple[int, AgentID | None], str] = {}
        for rollout in rollouts:
            for node in rollout.root.walk():
                for step in node.steps:
                    for agent in step.samples if self._has_own_rewards else (None,):
                        asked[id(step), agent] = self._text(node, step, agent)
        scores = self.reward_model.scores(list(asked.values()))
        if self.config.reward_model.normalize_rewards:
            scores = normalize(scores)
        score_of = dict(zip(asked, scores, strict=True))

        def score(_: Node, step: JointStep, agent: AgentID) -> float:
            return score_of.get((id(step), agent if self._has_own_rewards else None), 0.0)

        return [with_rewards(rollout, score) for rollout in rollouts]

    def save(self, path: Path) -> None:
        """Write the method, the reward model and the number of updates into the folder `path`."""
        self.learner.save(path)
        self.reward_model.save(path / FOLDER)
        state = {
            "updates": self._updates,
            "seed": self._seed,
            "is_pay_apart": self._has_own_rewards,
        }
        (path / STATE_FILE).write_text(json.dumps(state) + "\n")

    def load(self, path: Path) -> None:
        """Restore what `save` wrote.

        Raises:
            CheckpointError: If a file is missing or damaged, or does not fit this learner.
        """
        self.learner.load(path)
        self.reward_model.load(path / FOLDER)
        try:
            state = json.loads((path / STATE_FILE).read_text())
            self._updates, self._seed = state["updates"], state["seed"]
            self._has_own_rewards = bool(state.get("is_pay_apart", False))
        except (OSError, ValueError, LookupError, TypeError) as error:
            raise CheckpointError(f"{str(path)!r} is of no reward model: {error}") from None

    def _pairs_of_file(self) -> tuple[list[TextPair], list[TextPair]]:
        """Return the training pairs of this update and all validation pairs."""
        training, validation = self.examples
        size = min(self.config.preferences.num_pairs, len(training))
        drawn = task_indices(len(training), size, self._updates, self._seed)
        return [training[i] for i in drawn], validation

    def _played_pairs(self, rollouts: Sequence[Rollout]) -> tuple[list[TextPair], list[TextPair]]:
        if not self._has_own_rewards:
            gamma = self.config.preferences.gamma
            self._has_own_rewards = not has_shared_returns(rollouts, gamma=gamma)
        pairs = list(self._pairs(rollouts))
        return pairs, pairs  # new pairs are validation pairs until the first step on them

    def _pairs(self, rollouts: Sequence[Rollout]) -> Iterator[TextPair]:
        config = self.config.preferences
        for pair in ranked_steps(
            rollouts, gamma=config.gamma, num_pairs=config.num_pairs, by_agent=self._has_own_rewards
        ):
            yield self._text_pair(pair)

    def _text_pair(self, pair: StepPair) -> TextPair:
        better, worse = (
            self._text(pair.node, step, pair.agent) for step in (pair.better, pair.worse)
        )
        return TextPair(better, worse, pair.gap)

    def _text(self, node: Node, step: JointStep, agent: AgentID | None) -> str:
        answers = {who: node.completions[who][k].text for who, k in step.samples.items()}
        return joint_text(node.observations, answers, self.agents, agent)

    def _text_pair_of_turns(self, pair: TurnPair) -> TextPair:
        self._has_own_rewards |= pair.agent is not None
        better, worse = (
            joint_text(turn.observations, turn.actions, self.agents, pair.agent)
            for turn in (pair.better, pair.worse)
        )
        return TextPair(better, worse, pair.gap)


def make_marlhf(
    *,
    agents: Sequence[AgentID],
    model: ModelSource | Mapping[AgentID, ModelSource],
    seed: int = 0,
    **options: Any,  # noqa: ANN401 - checked against the groups of both configurations
) -> Marlhf:
    """Build MARLHF; options are the groups of `MarlhfConfig` and of its method.

    Raises:
        UnknownNameError: If an option is not one of these.
        ConfigError: If a value has the wrong type or is outside its range.
        ModelNotFoundError: If a model cannot be loaded.
    """
    config, rest = split_options(options)
    learner = FACTORIES[config.method](agents=agents, model=model, seed=seed, **rest)
    return Marlhf(learner, config, seed)
