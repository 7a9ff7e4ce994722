"""Network games: all nodes that act are answered as one batch, by one model in one call."""

import pytest

import mlrl_envs
import mlrl_learners
from mlrl_learners.play.rollout import collect_rollouts, play_episodes
from mlrl_learners.testing import ScriptedActor
from mlrl_learners.types import RolloutConfig

NODES = 12


@pytest.fixture
def make_envs():
    def make(count):
        return [
            mlrl_envs.make("mlrl/network-v0", split="sample", num_agents=NODES, rounds=2)
            for _ in range(count)
        ]

    return make


def options(count):
    tasks = [{"task_index": index} for index in range(count)]
    return {"task_options": tasks, "seeds": list(range(count))}


class Counting:
    """Answers like another actor, and keeps the number of agents of each joint observation."""

    def __init__(self, actor):
        self.actor, self.batches = actor, []

    def act(self, observations, *, num_samples=1, explore=True):
        self.batches.append([len(each) for each in observations])
        return self.actor.act(observations, num_samples=num_samples, explore=explore)


def test_all_nodes_of_all_games_are_asked_once_a_turn(make_envs):
    actor = Counting(ScriptedActor(lambda agent, text: "<move>1</move>"))
    envs = make_envs(3)
    episodes = play_episodes(envs, actor, **options(3))
    turns = max(len(episode.turns) for episode in episodes)
    assert len(actor.batches) == turns
    assert actor.batches[0] == [NODES] * 3


def test_a_rollout_asks_all_nodes_of_a_level_at_once(make_envs):
    actor = Counting(ScriptedActor(lambda agent, text: "<move>1</move>"))
    config = RolloutConfig(num_samples=2, branching="chain")
    collect_rollouts(make_envs(2), actor, config, **options(2))
    assert len(actor.batches) <= make_envs(1)[0].max_turns
    assert all(set(batch) == {NODES} for batch in actor.batches)


def test_one_model_answers_all_nodes_in_one_call(make_envs, monkeypatch):
    agents = make_envs(1)[0].possible_agents
    learner = mlrl_learners.make(
        "magrpo",
        agents=agents,
        model="tiny-random",
        team={"share_weights": True},
        sampling={"max_new_tokens": 2},
    )
    (policy,) = learner.policies.values()
    calls, complete = [], policy.complete

    def counted(prompts, *arguments, **named):
        calls.append(len(prompts))
        return complete(prompts, *arguments, **named)

    monkeypatch.setattr(policy, "complete", counted)
    episodes = play_episodes(make_envs(2), learner, **options(2))
    assert calls[0] == 2 * NODES
    assert len(calls) == max(len(episode.turns) for episode in episodes)
