import pickle
from dataclasses import dataclass

import pytest

import mlrl_envs
from mlrl_envs.envs.options import FamilyConfig
from mlrl_envs.errors import InfraError, InvalidArgumentError, ScorerError, UnknownNameError
from mlrl_envs.models.scorers import (
    SCORER_KINDS,
    CachedScorer,
    CheckedScorer,
    TextToScore,
    as_scorer,
)
from mlrl_envs.models.scorers.base import MAX_CACHED, ScoreCache


@dataclass(frozen=True)
class ByLength(CachedScorer):
    """Scores a text by its length."""

    full: int = 100
    max_chars: int = 1000

    def compute(self, batch):
        return [min(1.0, len(each.text) / self.full) for each in batch]


class Plain:
    fingerprint = "plain"

    def score_many(self, batch):
        return [0.5 for _ in batch]


class NoFingerprint:
    def score_many(self, batch):
        return [0.5 for _ in batch]


class Returns:
    fingerprint = "returns"

    def __init__(self, scores):
        self.scores = scores

    def score_many(self, batch):
        return self.scores


HERE = Plain()


def make_by_length(full=100):
    return ByLength(full)


@dataclass(frozen=True)
class JudgedConfig(FamilyConfig):
    REWARDS = ("grounded", "paper", "judged")


@pytest.fixture
def by_length(monkeypatch):
    monkeypatch.setitem(SCORER_KINDS, "length", ByLength)
    monkeypatch.setattr("mlrl_envs.models.scorers.import_object", lambda name: OBJECTS[name])


OBJECTS = {"here:make": make_by_length, "here:object": HERE, "here:number": 3}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("length", ByLength()),
        ({"kind": "length", "full": 7}, ByLength(7)),
        ("here:make", ByLength()),
        ({"kind": "here:make", "full": 7}, ByLength(7)),
        ("here:object", CheckedScorer(HERE)),
        (HERE, CheckedScorer(HERE)),
        (CheckedScorer(HERE), CheckedScorer(HERE)),
        (ByLength(3), ByLength(3)),
    ],
)
def test_scorer_is_an_object_a_name_a_mapping_or_a_reference(by_length, value, expected):
    assert as_scorer(value) == expected


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        ("lenght", UnknownNameError, "did you mean 'length'"),
        ({"kind": "length", "ful": 7}, UnknownNameError, "did you mean 'full'"),
        ({"full": 7}, InvalidArgumentError, "needs a kind"),
        (7, InvalidArgumentError, "score_many"),
        (Plain, InvalidArgumentError, "score_many"),
        ("here:number", InvalidArgumentError, "score_many"),
        ({"kind": "here:object", "full": 1}, InvalidArgumentError, "takes no options"),
        ({"kind": "here:make", "ful": 1}, InvalidArgumentError, "here:make.*'ful'"),
        (NoFingerprint(), InvalidArgumentError, "fingerprint of scorer .* must be a str"),
    ],
)
def test_other_values_are_refused_with_the_fix(by_length, value, error, message):
    with pytest.raises(error, match=message):
        as_scorer(value)


@pytest.mark.parametrize("reference", ["no.such.module:scorer", ".relative:scorer", ":", "json:"])
def test_reference_that_cannot_be_imported_is_refused(reference):
    with pytest.raises(InvalidArgumentError, match="cannot be imported"):
        as_scorer(reference)


@pytest.mark.parametrize(
    "scores", [[], [0.5, 0.5], [float("nan")], [None], ["good"], [1.5], [-0.1]], ids=repr
)
def test_a_scorer_of_a_third_party_without_one_number_a_text_is_an_infra_error(scores):
    env = mlrl_envs.make(
        "mlrl/story-v1", split="sample", reward="judged", scorer=Returns(scores * 2)
    )
    env.reset(seed=0)
    with pytest.raises(InfraError, match=r"Returns (returned|computed)"):
        env.step(dict.fromkeys(env.agents, "It is a fine day."))


def test_judged_reward_without_a_scorer_is_refused():
    with pytest.raises(InvalidArgumentError, match="reward 'judged' needs a text scorer"):
        JudgedConfig(reward="judged")


def test_scorer_without_the_judged_reward_is_refused():
    with pytest.raises(InvalidArgumentError, match="reward 'judged' only"):
        JudgedConfig(scorer=HERE)
    with pytest.raises(InvalidArgumentError, match="reward 'judged' only"):
        mlrl_envs.make("mlrl/math-v2", scorer=HERE)


def test_config_holds_the_scorer_as_an_object(by_length):
    config = JudgedConfig(reward="judged", scorer={"kind": "length", "full": 7})
    assert config.scorer == ByLength(7)
    assert pickle.loads(pickle.dumps(config)) == config


def test_fingerprint_of_an_environment_covers_the_scorer(monkeypatch):
    env = mlrl_envs.make("mlrl/math-v2")
    without = mlrl_envs.fingerprint(env)["scorer"]
    found = {without}
    for scorer in (ByLength(7), ByLength(8), HERE):
        object.__setattr__(env.family.config, "scorer", scorer)
        assert mlrl_envs.fingerprint(env) == mlrl_envs.fingerprint(env)
        found.add(mlrl_envs.fingerprint(env)["scorer"])
    assert len(found) == 4


def test_fingerprint_follows_options_and_version(monkeypatch):
    assert ByLength(7).fingerprint == ByLength(7).fingerprint != ByLength(8).fingerprint
    before = ByLength().fingerprint
    monkeypatch.setattr(ByLength, "VERSION", 2)
    assert ByLength().fingerprint != before


def test_long_text_is_cut_and_any_text_has_a_score():
    scorer = ByLength(full=10_000, max_chars=1000)
    long, odd = scorer.score_many([TextToScore("x" * 9000), TextToScore("\ud800\x00")])
    assert 0.1 <= long < 0.2
    assert odd > 0


def test_cache_is_bounded_and_drops_the_oldest():
    cache = ScoreCache(max_size=2)
    for number in range(3):
        cache.put(number, number / 10)
        cache.get(0)
    assert [cache.get(number) for number in range(3)] == [0.0, None, 0.2]
    assert len(cache) == 2 < MAX_CACHED


@dataclass(frozen=True)
class Fails(CachedScorer):
    """Fails as a model does that runs out of memory."""

    max_chars: int = 1000

    def compute(self, batch):
        raise ScorerError("out of memory")


def test_the_weakest_score_counts(by_length):
    scorer = as_scorer({"kind": "weakest", "scorers": [{"kind": "length", "full": 4}, HERE]})
    texts = [TextToScore("a"), TextToScore("abcd")]
    assert scorer.score_many(texts) == [0.25, 0.5]
    assert as_scorer(scorer) is scorer
    assert pickle.loads(pickle.dumps(as_scorer(ByLength(3)))) == ByLength(3)


def test_the_weakest_has_the_fingerprints_of_all(by_length):
    def weakest(*scorers):
        return as_scorer({"kind": "weakest", "scorers": list(scorers)}).fingerprint

    assert weakest("length", HERE) == weakest(ByLength(), HERE)
    assert len({weakest("length"), weakest("length", HERE), weakest(ByLength(3), HERE)}) == 3


def test_a_failure_of_one_scorer_is_one_of_the_weakest():
    with pytest.raises(InfraError, match="out of memory"):
        as_scorer({"kind": "weakest", "scorers": [HERE, Fails()]}).score_many([TextToScore("a")])


@pytest.mark.parametrize("scorers", [[], "likelihood", None])
def test_the_weakest_needs_a_list_of_scorers(scorers):
    with pytest.raises(InvalidArgumentError, match="list of scorers"):
        as_scorer({"kind": "weakest", "scorers": scorers})
