"""A tiny text task that any learner can be let loose on, and how to look at what it does."""

import math
from types import SimpleNamespace

import pytest
import torch
from pettingzoo import ParallelEnv

import mlrl_learners
from mlrl_learners.config.option_places import merge_options
from mlrl_learners.play.rollout import collect_rollouts


class Letters(ParallelEnv):
    """Agents are paid the share of plain letters in all they write: learnt in seconds.

    The turn limit cuts the episode; `solved_at` ends it by itself at that turn, and for an agent
    in `leaves` it is over before the others.
    """

    def __init__(
        self,
        agents=("left", "right"),
        max_turns=1,
        solved_at=None,
        reward=None,
        leaves=None,
        artificial_limit=False,
    ):
        self.metadata = {"name": "test/letters-v0", "artificial_limit": artificial_limit}
        self.possible_agents, self.agents = list(agents), []
        self.max_turns, self.solved_at, self.reward = max_turns, solved_at, reward or letters
        self.leaves = leaves or {}

    def reset(self, seed=None, options=None):
        self.agents, self.turn = list(self.possible_agents), 0
        self.task = (options or {}).get("task", "one")
        return self._observations(), {agent: {} for agent in self.agents}

    def step(self, actions):
        self.turn += 1
        agents = self.agents
        solved = self.turn == self.solved_at
        cut = not solved and self.turn == self.max_turns
        rewards = {agent: self.reward(actions, agent) for agent in agents}
        observations = self._observations()
        done = {agent: solved or self.leaves.get(agent) == self.turn for agent in agents}
        self.agents = [agent for agent in agents if not (done[agent] or cut)]
        truncations = dict.fromkeys(agents, cut)
        return observations, rewards, done, truncations, {agent: {} for agent in agents}

    def _observations(self):
        return dict.fromkeys(self.agents, f"{self.task}, turn {self.turn}")


def letters(actions, agent):
    """The share of plain letters in what all agents wrote: a team reward."""
    text = "".join(actions.values())
    return sum(c.isascii() and c.isalpha() for c in text) / max(1, len(text))


def play(learner, *, tasks=("one", "a second task"), seed=0, **options):
    """Return rollouts of the learner's own on the letters task."""
    envs = [Letters(learner.agents, **options) for _ in tasks]
    return collect_rollouts(
        envs,
        learner,
        learner.rollout,
        task_options=[{"task": task} for task in tasks],
        seeds=[seed + i for i in range(len(tasks))],
    ).rollouts


def mean_return(rollouts):
    """The mean reward of the first turn over agents and joint actions."""
    rewards = [v for r in rollouts for s in r.root.steps for v in s.rewards.values()]
    return sum(rewards) / len(rewards)


def gradients(learner, rollouts, monkeypatch):
    """Return what `update` would have stepped along, an optimizer each, and step nowhere."""
    return observed(learner, rollouts, monkeypatch)[0]


def observed(learner, rollouts, monkeypatch):
    """Return what `gradients` does, and the metrics."""
    found = []

    def record(self):
        found.append(
            torch.cat(
                [
                    (torch.zeros_like(p) if p.grad is None else p.grad).flatten().clone()
                    for p in self.parameters
                ]
            )
        )
        for parameter in self.parameters:
            parameter.grad = None
        return 1.0

    with monkeypatch.context() as patch:
        patch.setattr("mlrl_learners.policies.optimizer.PolicyOptimizer.step", record)
        metrics = learner.update(rollouts)
    return found, metrics


def gains(make, seeds, iterations, **options):
    """Train a learner a seed; return by how much its mean return grew."""
    found = []
    for seed in seeds:
        learner = make(seed)
        history = []
        for iteration in range(iterations):
            rollouts = play(learner, seed=iteration, **options)
            history.append(mean_return(rollouts))
            learner.update(rollouts)
        found.append(sum(history[-4:]) / 4 - sum(history[:4]) / 4)
    return found


def interval(values):
    """The 95% interval of a mean after Student, for three to six values."""
    t = {3: 4.303, 4: 3.182, 5: 2.776, 6: 2.571}[len(values)]
    mean = sum(values) / len(values)
    std = math.sqrt(sum((value - mean) ** 2 for value in values) / (len(values) - 1))
    return mean - t * std / math.sqrt(len(values)), mean + t * std / math.sqrt(len(values))


@pytest.fixture
def toy():
    """The letters task and what belongs to it."""
    return SimpleNamespace(
        env=Letters,
        play=play,
        gradients=gradients,
        gains=gains,
        interval=interval,
        letters=letters,
        observed=observed,
    )


def make_actor_critic(name="ippo", seed=0, agents=("left", "right"), **options):
    """Return a learner whose critics have opinions: they were given random heads."""
    small = {
        "model": "tiny-random",
        "sampling": {"max_new_tokens": 8},
        "compute": {"device": "cpu"},
    }
    learner = mlrl_learners.make(name, agents=agents, seed=seed, **merge_options(small, options))
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for critic in learner.critics.critics.values():
            noise = torch.randn(critic.head.weight.shape, generator=generator)
            critic.head.weight.copy_(0.3 * noise)
    return learner


@pytest.fixture
def make():
    """Make an actor-critic with opinions."""
    return make_actor_critic


@pytest.fixture(params=["separate", "value_head", "central"])
def kind(request):
    """Each kind of critic in turn."""
    return request.param
