"""MAGRPO learners on a tiny model, and rollouts of one turn to learn from."""

from mlrl_learners.algorithms.magrpo import make_magrpo
from mlrl_learners.config.option_places import merge_options
from mlrl_learners.types import JointStep, Node, Rollout

AGENTS = ("left", "right")
SMALL = {"sampling": {"max_new_tokens": 8}, "compute": {"device": "cpu"}}


def make(**options):
    return make_magrpo(
        **merge_options({"agents": AGENTS, "model": "tiny-random", "seed": 0}, SMALL, options)
    )


def rollouts_of(learner, reward, tasks=("one", "a second task"), cross=False):
    """Play one turn; `reward` judges the two texts."""
    observations = [dict.fromkeys(learner.agents, task) for task in tasks]
    size = learner.config.group.size
    pairs = [(i, j) for i in range(size) for j in range(size) if cross or i == j]
    rollouts = []
    for task, observed, answers in zip(
        tasks, observations, learner.act(observations, num_samples=size), strict=True
    ):
        steps = []
        for pair in pairs:
            samples = dict(zip(learner.agents, pair, strict=True))
            value = reward(*(answers[agent][k] for agent, k in samples.items()))
            rewards = dict.fromkeys(learner.agents, value)
            steps.append(JointStep(samples, rewards, {}, {}, terminated=False, truncated=True))
        completions = {agent: tuple(group) for agent, group in answers.items()}
        rollouts.append(Rollout("t", task, AGENTS, Node(0, observed, completions, tuple(steps))))
    return rollouts


def letters(*completions):
    """Share of plain letters: something a random model can learn in seconds."""
    text = "".join(completion.text for completion in completions)
    return sum(c.isascii() and c.isalpha() for c in text) / max(1, len(text))
