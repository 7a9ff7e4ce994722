"""Contract of the learner, and a higher return after training."""

import mlrl_learners
from my_learner import MyLearner

AGENTS = ["setup", "story"]
SETUP = "A fox waits in the snow beside a river for the old ferryman."
STORY = (
    "The fox waited in the snow until the old ferryman came. He carried it over the dark river, "
    "and in the morning only two lines of tracks were left on the white bank."
)
GAME = {
    "env_id": "mlrl/story-v1",
    "env_options": {"prompts": ["Tell of a fox, a ferryman and the snow:"]},
}


def test_it_keeps_the_contract():
    mlrl_learners.check_learner(lambda: MyLearner(AGENTS))


def test_it_is_found_by_its_name():
    assert isinstance(mlrl_learners.make("my_learner", agents=AGENTS), MyLearner)


def test_it_earns_more_after_training(tmp_path):
    learner = MyLearner(AGENTS, replies=["yes", SETUP, STORY])
    before = mlrl_learners.evaluate(actor=learner, split=None, explore=False, **GAME)
    mlrl_learners.train(learner=learner, iterations=20, run_dir=tmp_path, progress=False, **GAME)
    after = mlrl_learners.evaluate(actor=learner, split=None, explore=False, **GAME)
    assert after.mean_return > before.mean_return + 0.5
