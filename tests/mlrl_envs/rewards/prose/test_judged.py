import pytest

import mlrl_envs
from mlrl_envs.errors import InvalidArgumentError
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


@pytest.mark.parametrize("env_id", IDS)
def test_judged_needs_a_scorer(env_id):
    with pytest.raises(InvalidArgumentError, match="scorer"):
        mlrl_envs.make(env_id, split="sample", reward="judged")


@pytest.mark.parametrize("env_id", IDS)
def test_all_texts_of_a_step_are_one_batch(env_id):
    scorer = Scorer(1.0)
    env = mlrl_envs.make_vec(env_id, 3, split="sample", reward="judged", scorer=scorer)
    env.reset(seed=0)
    env.step([_actions(env.envs[0])] * 3)
    (batch,) = scorer.batches
    assert len(batch) == 6
    assert all(item.text and item.source and item.instruction for item in batch)
    assert all(len(item.others) == 1 for item in batch)


def test_without_a_scorer_every_text_scores_one():
    assert judge_texts([], [], lambda task: "", None) == []


@pytest.mark.parametrize("value", [0.0, 0.5, 1.0])
def test_the_score_multiplies_what_contrast_pays(value, honest_story):
    prompt, setup, story = honest_story

    def play(**options):
        env = mlrl_envs.make("mlrl/story-v1", prompts=[prompt], **options)
        env.reset(seed=0)
        return env.step({"setup": setup, "story": story})[1]["story"]

    judged = play(reward="judged", scorer=Scorer(value))
    assert judged == pytest.approx(play() * value**2)
