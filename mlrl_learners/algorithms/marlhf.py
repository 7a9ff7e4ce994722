"""MARLHF: a team learns from a reward model, and the reward model from preferences.

In each update the reward model learns first, from pairs of joint answers ranked by what the team
earned from there on: those that were just played, or those of a file. Then every joint answer that
was played is paid its score, and any of the policy-gradient methods takes its step on that. Where
agents are not paid alike, each has a score of its own; whether they are is seen in what is ranked,
and once they were not, scores stay apart.

A score is of all that came of a joint answer, not of its own turn alone. So the method does not add
up the scores of later turns: it is given a discount of 0, and `gamma` is that of the ranking. Nor
does it take credit by outcome, which would leave the scores of all turns but the last out.

Source: RLHF (arXiv 2203.02155), over the joint answers of a team.
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
from mlrl_learners.algorithms.magrpo import Magrpo
from mlrl_learners.algorithms.marlhf_config import MarlhfConfig, Method, check_method_options
from mlrl_learners.algorithms.pairs import StepPair, check_choice, is_pay_shared, ranked_steps
from mlrl_learners.algorithms.reward_model import RewardModel, TextPair, joint_text
from mlrl_learners.algorithms.turn_pairs import TurnPair, ranked_turns
from mlrl_learners.config.options import check_options
from mlrl_learners.errors import CheckpointError
from mlrl_learners.functional.advantages import normalize
from mlrl_learners.functional.credit import with_rewards
from mlrl_learners.functional.returns import check_rewards
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
    """A team, its method, and the reward model that both learn with.

    Args:
        learner: The method, with the team's policies; it should not discount later turns in.
        config: How the reward model learns.
        seed: Decides what is held out of a file, and the order of what is drawn from it.
    """

    shares_work = True

    def __init__(self, learner: Magrpo | ActorCritic, config: MarlhfConfig, seed: int = 0) -> None:
        self.learner, self.config = learner, config
        self.agents, self.rollout = learner.agents, learner.rollout
        self.policies = learner.policies
        self._seed, self._updates = seed, 0
        self._is_pay_apart = False
        source = config.reward_model or next(iter(learner.sources.values()))
        self.reward_model = RewardModel(
            learner.weights.trained(FOLDER, source),
            dataclasses.replace(
                learner.config,
                lr=config.reward_lr or learner.config.lr,
                schedule="constant",
                warmup_steps=0,
                total_steps=0,
            ),
            micro_batch_tokens=learner.config.micro_batch_tokens,
            label_smoothing=config.label_smoothing,
        )

    @property
    def is_sharded(self) -> bool:
        """Whether weights, the reward model's too, are in pieces; see `Team.is_sharded`."""
        return self.learner.is_sharded

    @functools.cached_property
    def examples(self) -> tuple[list[TextPair], list[TextPair]]:
        """The pairs of the file to learn from, and those that are held out; read on first use.

        Whole decision points are held out, so that no answer to a prompt is known beforehand.

        Raises:
            ConfigError: If the file is missing, holds no two answers that differ in worth, or none
                of these agents.
        """
        points = [
            [self._text_pair_of_turns(pair) for pair in point]
            for point in ranked_turns(
                Path(self.config.episodes), self.config.num_pairs, self.agents, own_answers=False
            )
        ]
        Random(self._seed).shuffle(points)  # noqa: S311 - reproducible on purpose
        kept = len(points) - math.floor(self.config.held_out * len(points))
        known, unknown = points[:kept], points[kept:]
        return [p for point in known for p in point], [p for point in unknown for p in point]

    def check_rollout(self, rollout: RolloutConfig) -> None:
        """Check that there is something to learn from what is played in this way.

        Raises:
            ConfigError: If there is not.
        """
        self.learner.check_rollout(rollout)
        if not self.config.episodes:
            check_choice(rollout)

    def plan_updates(self, num_updates: int) -> None:
        """Take note of how many updates the whole run has; the method's rates fall over all of it.

        The reward model's rate is constant.

        Args:
            num_updates: Those before a resume included.

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
        """Answer as the team does."""
        return self.learner.act(observations, num_samples=num_samples, explore=explore)

    def sampling_seed(self, seed: int) -> AbstractContextManager[None]:
        """Sample from `seed` inside the block, then go on as if nothing had happened."""
        return self.learner.sampling_seed(seed)

    def update(self, rollouts: Sequence[Rollout]) -> dict[str, float]:
        """Teach the reward model, then let the method learn from its scores.

        Returns:
            Metrics of the method, and of the reward model (`reward_model/held_out_accuracy`): of
            the file's held-out pairs, or of the pairs just played, before it has learnt from them.

        Raises:
            NumericsError: If a reward, loss or gradient is not finite.
            ConfigError: If a file cannot be learnt from.
        """
        check_rewards(rollouts)
        self._updates += 1
        known, unknown = self._from_file() if self.config.episodes else self._played(rollouts)
        metrics = {"pairs": float(len(known))}
        if unknown:
            metrics["held_out_accuracy"] = self.reward_model.accuracy(unknown)
        if known:
            metrics |= self.reward_model.learn(known, self.config.reward_epochs)
            metrics["accuracy"] = self.reward_model.accuracy(known)
        named = {f"reward_model/{name}": value for name, value in metrics.items()}
        return self.learner.update(self.rescored(rollouts)) | named

    def rescored(self, rollouts: Sequence[Rollout]) -> list[Rollout]:
        """Return the rollouts with the reward model's score as the reward of every joint answer.

        It is the same for all agents, or each agent's own once they were seen not to be paid alike.
        """
        asked: dict[tuple[int, AgentID | None], str] = {}
        for rollout in rollouts:
            for node in rollout.root.walk():
                for step in node.steps:
                    for paid in step.rewards if self._is_pay_apart else (None,):
                        asked[id(step), paid] = self._text(node, step, paid)
        scores = self.reward_model.scores(list(asked.values()))
        if self.config.normalize_rewards:
            scores = normalize(scores)
        score_of = dict(zip(asked, scores, strict=True))

        def score(_: Node, step: JointStep, agent: AgentID) -> float:
            return score_of[id(step), agent if self._is_pay_apart else None]

        return [with_rewards(rollout, score) for rollout in rollouts]

    def save(self, path: Path) -> None:
        """Write what the method writes, the reward model, and how many updates were made."""
        self.learner.save(path)
        self.reward_model.save(path / FOLDER)
        state = {
            "updates": self._updates,
            "seed": self._seed,
            "is_pay_apart": self._is_pay_apart,
        }
        (path / STATE_FILE).write_text(json.dumps(state) + "\n")

    def load(self, path: Path) -> None:
        """Restore what `save` wrote.

        Raises:
            CheckpointError: If it is missing, damaged, or of another team or model.
        """
        self.learner.load(path)
        self.reward_model.load(path / FOLDER)
        try:
            state = json.loads((path / STATE_FILE).read_text())
            self._updates, self._seed = state["updates"], state["seed"]
            self._is_pay_apart = bool(state.get("is_pay_apart", False))
        except (OSError, ValueError, LookupError, TypeError) as error:
            raise CheckpointError(f"{str(path)!r} is of no reward model: {error}") from None

    def _from_file(self) -> tuple[list[TextPair], list[TextPair]]:
        known, unknown = self.examples
        size = min(self.config.num_pairs, len(known))
        drawn = task_indices(len(known), size, self._updates, self._seed)
        return [known[i] for i in drawn], unknown

    def _played(self, rollouts: Sequence[Rollout]) -> tuple[list[TextPair], list[TextPair]]:
        if not self._is_pay_apart:
            self._is_pay_apart = not is_pay_shared(rollouts, gamma=self.config.gamma)
        pairs = list(self._pairs(rollouts))
        return pairs, pairs  # fresh ones have not been learnt from

    def _pairs(self, rollouts: Sequence[Rollout]) -> Iterator[TextPair]:
        config = self.config
        for pair in ranked_steps(
            rollouts, gamma=config.gamma, num_pairs=config.num_pairs, by_agent=self._is_pay_apart
        ):
            yield self._text_pair(pair)

    def _text_pair(self, pair: StepPair) -> TextPair:
        better, worse = (
            self._text(pair.node, step, pair.agent) for step in (pair.better, pair.worse)
        )
        return TextPair(better, worse, pair.gap)

    def _text(self, node: Node, step: JointStep, paid: AgentID | None) -> str:
        answers = {agent: node.completions[agent][k].text for agent, k in step.samples.items()}
        return joint_text(node.observations, answers, self.agents, paid)

    def _text_pair_of_turns(self, pair: TurnPair) -> TextPair:
        self._is_pay_apart |= pair.agent is not None
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
    **options: Any,  # noqa: ANN401 - checked against the fields of both configurations
) -> Marlhf:
    """Build MARLHF; options are the fields of `MarlhfConfig` and the options of its method.

    Raises:
        UnknownNameError: If an option is none of them.
        ConfigError: If a value has the wrong type or is outside its range.
        ModelNotFoundError: If a model cannot be loaded.
    """
    mine = {field.name for field in dataclasses.fields(MarlhfConfig)}
    own = {name: value for name, value in options.items() if name in mine}
    check_options(own, MarlhfConfig)
    config = MarlhfConfig(**own)
    rest = {name: value for name, value in options.items() if name not in mine}
    check_method_options(rest, config.method, mine)
    if not config.episodes and rest.get("group_size") == 1:
        check_choice(RolloutConfig(1))
    learner = FACTORIES[config.method](agents=agents, model=model, seed=seed, **rest, gamma=0.0)
    return Marlhf(learner, config, seed)
