import pytest

from mlrl_learners.bench.suite import suite_of
from mlrl_learners.testing import ScriptedActor

ADDITION = "test/addition-v0"


class Source:
    """A scripted actor for every entry; it counts how often it was made and asked."""

    def __init__(self, name="scripted", answer="1"):
        self.name, self.answer, self.made, self.asked = name, answer, 0, 0

    def identity(self, seed):
        return {"name": self.name}

    def make(self, agents, *, tokens, seed):
        self.made += 1
        return ScriptedActor(self._say)

    def _say(self, agent, observation):
        self.asked += 1
        return self.answer

    def describe(self):
        return {"name": self.name, "way": "plain", "base": self.name}


@pytest.fixture
def source():
    return Source()


@pytest.fixture
def make_source():
    return Source


@pytest.fixture
def make_suite():
    """A suite of additions; task 0 is solved by 1 in the first turn."""

    def make(*, env=ADDITION, options=None, seeds=(0, 1), tasks=4, budget=None, split="train"):
        entry = {"env": env, "split": split, "tasks": tasks, "options": dict(options or {})}
        entries = [{**entry, "budget": dict(budget or {})}]
        mapping = {"name": "adding", "version": 0, "summary": "adds", "seeds": list(seeds)}
        return suite_of({**mapping, "entries": entries})

    return make
