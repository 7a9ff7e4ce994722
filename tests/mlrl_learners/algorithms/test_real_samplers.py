"""A real vLLM or SGLang server that samples, with the weights of the trainer.

Start the server as docs/cluster.md says, and set

- `MLRL_SAMPLER`: `vllm` or `sglang`
- `MLRL_SAMPLER_URL`: its address, such as `http://127.0.0.1:8000/v1`
- `MLRL_SAMPLER_MODEL`: the model, which is trained here as well
- `MLRL_SAMPLER_FOLDER`: a folder that the server sees under the same path
"""

import os

import pytest

import mlrl_learners
from mlrl_learners.play.rollout import collect_rollouts
from mlrl_learners.types import RolloutConfig
from tests.mlrl_learners.conftest import Addition

NAMES = ("MLRL_SAMPLER", "MLRL_SAMPLER_URL", "MLRL_SAMPLER_MODEL", "MLRL_SAMPLER_FOLDER")
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.slow,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(
        not all(name in os.environ for name in NAMES), reason=f"set {', '.join(NAMES)}"
    ),
]


def test_a_real_server_samples_from_the_weights_of_the_last_update():
    program, url, model, folder = (os.environ[name] for name in NAMES)
    learner = mlrl_learners.make(
        "magrpo",
        model=model,
        agents=["left", "right"],
        team={"share_weights": True},
        sampling={"max_new_tokens": 16, "temperature": 1.0, "top_p": 1.0},
        sampler={"endpoint": url, "model": model, "update": program, "weights_folder": folder},
        importance={"correction": "token_truncate"},
        optimizer={"lr": 1e-4},
        seed=0,
    )
    for number in range(3):
        found = collect_rollouts(
            [Addition() for _ in range(8)],
            learner,
            RolloutConfig(num_samples=4, branching="chain"),
            task_options=[{"task_index": 0}] * 8,
            seeds=list(range(8 * number, 8 * number + 8)),
        )
        assert len(found.rollouts) == 8
        metrics = learner.update(found.rollouts)
        (divergence,) = [metrics[name] for name in metrics if name.endswith("/kl_sampler")]
        assert divergence < 0.05  # rounding; of old weights it would grow with every update
