import dataclasses
import itertools
from typing import ClassVar

import pytest
from pettingzoo import ParallelEnv

import mlrl_envs
from mlrl_envs.errors import InfraError
from mlrl_learners.functional.returns import joint_returns, rollout_groups
from mlrl_learners.play.rollout import collect_rollouts, play_episodes
from mlrl_learners.training.metrics import count_tokens, rollout_metrics
from mlrl_learners.types import Completion, FailedEpisode, RolloutConfig


class Counter:
    """Answers with the number it read plus 0, 1, 2, ... over its samples."""

    def act(self, observations, *, num_samples=1, explore=True):
        return [
            {
                agent: [Completion(str(int(text) + i)) for i in range(num_samples)]
                for agent, text in observation.items()
            }
            for observation in observations
        ]


class Tokens(Counter):
    """Answers like `Counter`, each with a token."""

    def act(self, observations, *, num_samples=1, explore=True):
        answers = super().act(observations, num_samples=num_samples, explore=explore)
        return [
            {
                a: [dataclasses.replace(c, token_ids=(1,)) for c in group]
                for a, group in each.items()
            }
            for each in answers
        ]


@pytest.fixture
def collect(addition_env):
    def collect(config, num_tasks=2, **env_options):
        envs = [mlrl_envs.make(addition_env, **env_options) for _ in range(num_tasks)]
        return collect_rollouts(
            envs,
            Counter(),
            config,
            env_id=addition_env,
            task_options=[{"task_index": 2 + i} for i in range(num_tasks)],
            seeds=list(range(num_tasks)),
        )

    return collect


def test_aligned_play_pairs_the_jth_answers(collect):
    rollout = collect(RolloutConfig(num_samples=3)).rollouts[0]
    assert [step.samples for step in rollout.root.steps] == [
        {"left": j, "right": j} for j in range(3)
    ]


def test_cross_play_tries_every_combination(collect):
    rollout = collect(RolloutConfig(num_samples=3, joint_mode="cross")).rollouts[0]
    pairs = [(step.samples["left"], step.samples["right"]) for step in rollout.root.steps]
    assert pairs == list(itertools.product(range(3), repeat=2))


def test_a_tree_goes_on_from_every_joint_action_that_did_not_end(collect):
    rollout = collect(RolloutConfig(num_samples=3)).rollouts[0]
    assert [step.child is not None for step in rollout.root.steps] == [True, False, True]
    assert [step.terminated for step in rollout.root.steps] == [False, True, False]


def test_a_chain_goes_on_from_one(collect):
    config = RolloutConfig(num_samples=4, branching="chain")
    for rollout in collect(config).rollouts:
        assert sum(step.child is not None for step in rollout.root.steps) == 1


def test_a_chain_draws_its_branch_from_the_seed(collect):
    config = RolloutConfig(num_samples=4, branching="chain")
    assert collect(config) == collect(config)


def test_only_joint_actions_that_nobody_follows_keep_what_would_be_read_next(collect):
    rollout = collect(RolloutConfig(num_samples=3, branching="chain")).rollouts[0]
    for step in rollout.root.steps:
        cut = step.child is None and not step.terminated
        assert dict(step.next_observations) == ({"left": "2", "right": "2"} if cut else {})
    assert sum(bool(step.next_observations) for step in rollout.root.steps) > 0


def test_rewards_are_those_of_the_joint_action_that_was_played(collect):
    rollout = collect(RolloutConfig(num_samples=3, joint_mode="cross")).rollouts[0]
    for step in rollout.root.steps:
        assert step.rewards == {agent: float(k == 1) for agent, k in step.samples.items()}


def test_rollouts_keep_the_order_and_ids_of_the_tasks(collect):
    assert [r.task_id for r in collect(RolloutConfig(2)).rollouts] == ["train/2", "train/3"]


def test_an_episode_that_infrastructure_broke_is_set_apart_and_spoils_no_other(collect):
    batch = collect(RolloutConfig(num_samples=2), broken=True)
    assert [rollout.task_id for rollout in batch.rollouts] == ["train/2"]
    (failure,) = batch.failures
    assert (failure.task_id, failure.error, failure.message) == (
        "train/3",
        "InfraError",
        "no worker",
    )


def test_an_episode_is_one_line_to_its_end(addition_env):
    envs = [mlrl_envs.make(addition_env) for _ in range(2)]
    options = [{"task_index": 0}, {"task_index": 1}]
    episodes = play_episodes(envs, Counter(), task_options=options, seeds=[0, 1])
    assert [len(episode.turns) for episode in episodes] == [2, 2]
    assert [episode.returns for episode in episodes] == [{"left": 0.0, "right": 0.0}] * 2
    assert not any(episode.solved for episode in episodes)


def test_infrastructure_never_becomes_a_reward_in_an_episode(addition_env):
    env = mlrl_envs.make(addition_env, broken=True)
    with pytest.raises(InfraError):
        play_episodes([env], Counter(), task_options=[{"task_index": 3}], seeds=[0])


class Leaving(ParallelEnv):
    """Three turns; the agent `left` is done after one, and is still told something."""

    metadata: ClassVar = {"name": "test/leaving-v0"}
    possible_agents: ClassVar = ["left", "right"]

    def reset(self, seed=None, options=None):
        self.turn, self.agents = 0, list(self.possible_agents)
        return dict.fromkeys(self.agents, "0"), {agent: {} for agent in self.agents}

    def step(self, actions):
        assert sorted(actions) == sorted(self.agents)  # nobody answers for who has left
        self.turn += 1
        asked, over = self.agents, self.turn == 3
        rewards = {agent: float(actions[agent]) for agent in asked}
        ended = {agent: agent == "left" for agent in asked}
        cut = {agent: over and agent == "right" for agent in asked}
        self.agents = [] if over else ["right"]
        told = dict.fromkeys(asked, str(self.turn))
        return told, rewards, ended, cut, {agent: {} for agent in asked}


@pytest.mark.parametrize("branching", ["tree", "chain"])
def test_agents_may_leave_before_the_others(branching):
    config = RolloutConfig(num_samples=2, branching=branching)
    (rollout,) = collect_rollouts(
        [Leaving()], Counter(), config, task_options=[{}], seeds=[0]
    ).rollouts
    assert {tuple(node.completions) for node in rollout.root.walk() if node.turn} == {("right",)}
    leaves = [step for node in rollout.root.walk() for step in node.steps if node.turn == 2]
    assert {(step.terminated, step.truncated) for step in leaves} == {(False, True)}
    unwalked = [s for s in rollout.root.steps if s.child is None]
    assert all(set(step.next_observations) == {"right"} for step in unwalked)
    assert joint_returns(rollout.root, "left", 1.0) == [0.0, 1.0]
    groups = list(rollout_groups([rollout], 1.0))
    assert [g.turn for g in groups if g.agent == "left"] == [0]


def test_an_episode_goes_on_for_those_who_stay():
    (episode,) = play_episodes([Leaving()], Counter(), task_options=[{}], seeds=[0])
    assert [sorted(turn.completions) for turn in episode.turns] == [
        ["left", "right"], ["right"], ["right"]
    ]  # fmt: skip
    assert episode.returns == {"left": 0.0, "right": 3.0}


class Waiting(ParallelEnv):
    """Two turns; the agent `right` is first asked in the second."""

    metadata: ClassVar = {"name": "test/waiting-v0"}
    possible_agents: ClassVar = ["left", "right"]

    def reset(self, seed=None, options=None):
        self.turn, self.agents = 0, ["left"]
        return {"left": "0"}, {"left": {}}

    def step(self, actions):
        self.turn += 1
        asked, over = self.agents, self.turn == 2
        rewards = {agent: float(actions[agent]) for agent in asked}
        self.agents = [] if over else ["right"]
        told = dict.fromkeys([*asked, *self.agents], "2")
        ended, cut = (dict.fromkeys(told, over), dict.fromkeys(told, False))
        return told, rewards, ended, cut, {agent: {} for agent in told}


def test_who_is_first_asked_later_is_one_of_the_agents_from_the_start():
    config = RolloutConfig(num_samples=2)
    batch = collect_rollouts([Waiting()], Tokens(), config, task_options=[{}], seeds=[0])
    assert batch.rollouts[0].agents == ("left", "right")
    assert count_tokens(batch.rollouts) == {"left": 2, "right": 4}
    # left earns 0 or 1, right 2 or 3 after either
    assert rollout_metrics(batch.rollouts)["train/return"] == pytest.approx((0.5 + 2.5) / 2)
    (episode,) = play_episodes([Waiting()], Counter(), task_options=[{}], seeds=[0])
    assert episode.returns == {"left": 0.0, "right": 2.0}


def test_tokens_are_counted_whoever_a_rollout_says_its_agents_are():
    config = RolloutConfig(num_samples=2)
    (rollout,) = collect_rollouts(
        [Waiting()], Tokens(), config, task_options=[{}], seeds=[0]
    ).rollouts
    assert count_tokens([dataclasses.replace(rollout, agents=("left",))]) == {"left": 2, "right": 4}


def test_a_task_that_cannot_be_opened_is_set_apart_and_spoils_no_other(addition_env):
    envs = [mlrl_envs.make(addition_env) for _ in range(2)]

    def fail(**_):
        raise InfraError("no worker")

    envs[0].reset = fail
    options = [{"task_index": 2}, {"task_index": 3}]

    def collect(count):
        return collect_rollouts(
            envs[:count], Counter(), RolloutConfig(2), env_id="e",
            task_options=options[:count], seeds=[7, 8][:count],
        )  # fmt: skip

    batch = collect(2)
    assert [rollout.task_id for rollout in batch.rollouts] == ["train/3"]
    assert batch.failures == (FailedEpisode("e", "2", 7, "InfraError", "no worker"),)
    assert collect(1).rollouts == ()
