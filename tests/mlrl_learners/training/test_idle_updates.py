import warnings

import pytest

import mlrl_learners
from mlrl_learners.training.idle_updates import PATIENCE, IdleUpdates

IDLE = {"left/truncated_rate": 0.0, "left/zero_variance_rate": 1.0}


def seen(*updates):
    idle = IdleUpdates()
    for metrics in updates:
        idle.see(metrics)


def test_a_run_is_warned_once_of_updates_without_a_gradient(recwarn):
    seen(*[IDLE] * (3 * PATIENCE))
    (warning,) = recwarn
    assert "the last 5 updates had no gradient" in str(warning.message)


def test_a_norm_of_0_is_no_gradient():
    with pytest.warns(RuntimeWarning, match="no gradient"):
        seen(*[IDLE | {"left/grad_norm": 0.0}] * PATIENCE)


@pytest.mark.parametrize(
    "updates",
    [
        [IDLE] * (PATIENCE - 1),
        [*[IDLE] * (PATIENCE - 1), IDLE | {"left/grad_norm": 0.1}, *[IDLE] * (PATIENCE - 1)],
        [{"loss": 0.5}] * (2 * PATIENCE),
    ],
)
def test_a_few_idle_updates_and_metrics_of_other_learners_warn_of_nothing(updates):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        seen(*updates)


def test_one_answer_an_update_does_not_train_a_normalised_advantage_and_says_so(tmp_path):
    learner = mlrl_learners.make(
        "ippo",
        agents=("setup", "story"),
        model="tiny-random",
        group={"size": 1},
        sampling={"max_new_tokens": 1},
    )
    with pytest.warns(RuntimeWarning, match="no gradient"):
        mlrl_learners.train(
            env_id="mlrl/story-v1",
            env_options={"split": "sample"},
            learner=learner,
            iterations=PATIENCE,
            tasks_per_iteration=1,
            checkpoint_every=PATIENCE,
            run_dir=tmp_path / "run",
            progress=False,
        )
