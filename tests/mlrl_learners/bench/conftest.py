import pytest

from mlrl_learners.bench.suite import suite_of
from mlrl_learners.testing import ScriptedActor

ADDITION = "test/addition-v0"
ENTRIES = [
    {"env": "mlrl/story-v1", "split": "sample", "tasks": 2, "show_prompts": True},
    {"env": "mlrl/math-v2", "split": "sample", "tasks": 2, "show_prompts": True},
]
TWO_ENVIRONMENTS = {
    "name": "mine",
    "version": 0,
    "summary": "two",
    "seeds": [0],
    "entries": ENTRIES,
}


class Source:
    """A scripted actor for every entry; it counts how often it was made and asked."""

    def __init__(self, name="scripted", answer="1"):
        self.name, self.answer, self.made, self.asked = name, answer, 0, 0

    def identity(self, seed, env_id):
        return {"name": self.name}

    def make(self, agents, *, env_id, tokens, seed):
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
def two_environments():
    return TWO_ENVIRONMENTS


@pytest.fixture
def make_suite():
    """A suite of additions; task 0 is solved by 1 in the first turn."""

    def make(*, env=ADDITION, options=None, seeds=(0, 1), tasks=4, budget=None, split="train"):
        entry = {"env": env, "split": split, "tasks": tasks, "options": dict(options or {})}
        entries = [{**entry, "budget": dict(budget or {})}]
        mapping = {"name": "adding", "version": 0, "summary": "adds", "seeds": list(seeds)}
        return suite_of({**mapping, "entries": entries})

    return make


@pytest.fixture
def quick(monkeypatch):
    """Intervals of few draws: that they follow is checked, not how wide they are."""
    statistics = pytest.importorskip("mlrl_learners.figures.comparisons")
    monkeypatch.setattr(statistics, "RESAMPLES", 9)


@pytest.fixture
def add_result(make_source, tmp_path):
    """Play a suite, two environments if none is given, and keep its result in a folder of all."""
    from mlrl_learners.bench.results import write_result
    from mlrl_learners.bench.suite_run import RunSettings, play_suite

    settings = RunSettings()

    def add(name, answer="1", suite=TWO_ENVIRONMENTS, make=None, **actor):
        source = make_source(name, answer)
        source.make = make or source.make
        slug = "".join(c if c.isalnum() else "-" for c in name)
        played = play_suite(suite_of(suite), source, tmp_path / "runs" / slug, settings)
        path = tmp_path / "results" / suite["name"] / f"{slug}.json"
        write_result(path, suite_of(suite), {**source.describe(), **actor}, played, settings)
        return path

    return add
