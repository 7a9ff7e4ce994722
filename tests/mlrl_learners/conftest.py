import contextlib
import json

import pytest
import torch
from pettingzoo import ParallelEnv

import mlrl_envs
import mlrl_learners
from mlrl_envs.errors import InfraError, InvalidArgumentError
from mlrl_learners.policies import ChatFormat, Policy, SamplingConfig, tiny_model
from mlrl_learners.policies.adapters import AdapterConfig
from mlrl_learners.seeding import CallSeeds
from mlrl_learners.testing import ScriptedActor

ENV_ID = "test/addition-v0"
BROKEN_TASK = 3


class Addition(ParallelEnv):
    """Two agents each add one to the task's number; two turns unless solved at once."""

    reward_range = (0.0, 1.0)

    def __init__(self, *, split="train", num_tasks=4, broken=False, wrong=False):
        self.possible_agents = ["left", "right"]
        self.agents = []
        self.split, self.num_tasks, self.broken = split, num_tasks, broken
        self.wrong = wrong  # task 2 has a wrong reference
        self.metadata = {"name": ENV_ID}

    def reset(self, seed=None, options=None):
        self.seed, self.turn = seed or 0, 0
        self.task = self._choose(options or {})
        self.agents = list(self.possible_agents)
        return self._observations(), self._infos()

    def step(self, actions):
        if self.broken and self.task == BROKEN_TASK:
            raise InfraError("no worker")
        self.turn += 1
        rewards = {a: float(text == str(self.task + 1)) for a, text in actions.items()}
        solved = all(rewards.values())
        over = solved or self.turn == 2
        infos = {a: {"components": {"tests": r}, "solved": solved} for a, r in rewards.items()}
        observations = self._observations()
        if over:
            self.agents = []
        ends = dict.fromkeys(actions, over)
        return observations, rewards, ends, ends, infos

    def reference_actions(self):
        answer = "?" if self.wrong and self.task == 2 else str(self.task + 1)
        return dict.fromkeys(self.possible_agents, answer)

    def _choose(self, options):
        if "task_id" in options:
            return int(options["task_id"].split("/")[1])
        return options.get("task_index", self.seed % self.num_tasks)

    def _observations(self):
        return dict.fromkeys(self.possible_agents, str(self.task))

    def _infos(self):
        return {a: {"task_id": f"{self.split}/{self.task}"} for a in self.possible_agents}


@pytest.fixture
def addition_env():
    """Register the fake environment and return its id."""
    with contextlib.suppress(InvalidArgumentError):
        mlrl_envs.register(ENV_ID, Addition)
    return ENV_ID


class Student(ScriptedActor):
    """Answers with the number it read until it was taught; then with the next one."""

    def __init__(self, agents, patience=1):
        super().__init__(self._answer)
        self.agents, self.patience, self.lessons = agents, patience, 0

    def update(self, rollouts):
        self.lessons += 1
        return {"student/lessons": float(self.lessons)}

    def save(self, path):
        (path / "student.json").write_text(json.dumps(self.lessons))

    def load(self, path):
        self.lessons = json.loads((path / "student.json").read_text())

    def _answer(self, agent, text):
        return str(int(text) + (self.lessons >= self.patience))


@pytest.fixture
def student(monkeypatch):
    """Register the fake learner and return its name."""
    registered = mlrl_learners.registry._registered
    monkeypatch.setattr(mlrl_learners.registry, "_registered", dict(registered))
    mlrl_learners.register("student", Student, summary="learns to add")
    return "student"


def stir(policy, seed=0):
    """Give an adapter something to say."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in policy.parameters():
            weight.copy_(0.3 * torch.randn(weight.shape, generator=generator))


def make_policies(names=("a", "b"), *, family="llama", seed=0, stirred=True, **options):
    """Return a base alone and policies with adapters on it; they end now and then."""
    model, tokenizer = tiny_model(seed, family=family)
    head = torch.nn.Linear(model.config.hidden_size, len(tokenizer))
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        head.weight.copy_(torch.randn(head.weight.shape, generator=generator) * 0.4)
        head.bias.zero_()
        head.bias[tokenizer.eos_token_id] = 4.0
    model.lm_head = head
    config = {name: options.pop(name) for name in ("rank", "alpha", "targets") if name in options}
    base = Policy(model, tokenizer, **options)
    base.freeze(AdapterConfig(**{"rank": 3, "alpha": 3, **config}), "tiny")
    policies = [base.with_adapter(name, seed) for name in names]
    for number, policy in enumerate(policies if stirred else ()):
        stir(policy, number + 1)
    return base, *policies


@pytest.fixture(scope="session", name="make_policies")
def _make_policies():
    return make_policies


@pytest.fixture(scope="session", name="stir")
def _stir():
    return stir


TEXTS = ["hi", "a much longer prompt that needs padding", "mid one"]


def sample(policy, *, seed=0, num_samples=3, length=40, **options):
    """Answer prompts of three lengths."""
    prompts = [ChatFormat(tiny_model()[1]).encode(text) for text in TEXTS]
    sampling = SamplingConfig(max_new_tokens=length, temperature=0.7, top_p=0.95)
    seeds = seeds_of(prompts, seed)
    return policy.complete(prompts, num_samples, sampling, seeds=seeds, **options)


def seeds_of(prompts, seed):
    """Seed of each prompt; None decodes greedily."""
    return None if seed is None else CallSeeds(seed).next(len(prompts))


def compare(ours, theirs, tolerance=1e-4):
    """Check that answers are the same; return their lengths."""
    ours, theirs = ([c for group in side for c in group] for side in (ours, theirs))
    assert [c.token_ids for c in ours] == [c.token_ids for c in theirs]
    for mine, other in zip(ours, theirs, strict=True):
        assert mine.logprobs == pytest.approx(other.logprobs, abs=tolerance)
    return [len(c.token_ids) for c in ours]


@pytest.fixture(scope="session", name="sample")
def _sample():
    return sample


@pytest.fixture(scope="session", name="compare")
def _compare():
    return compare
