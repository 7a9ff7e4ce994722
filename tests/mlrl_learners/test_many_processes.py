"""Real runs of several processes on one machine; what they share is tested in processes/."""

import pytest

from mlrl_learners.config.option_places import merge_options
from tests.mlrl_learners.launched_runs import CHOICES, GROUPS, assert_identical_runs, job, run

JOBS = [
    job("magrpo", **merge_options(GROUPS, {"optimizer": {"num_minibatches": 2}})),
    job(
        "magrpo",
        "magrpo-kl",
        **merge_options(
            GROUPS,
            {"penalty": {"kl_coef": 0.1, "kl_in": "reward"}, "team": {"share_weights": True}},
        ),
    ),
    job("ippo", **GROUPS),
    job(
        "ippo",
        "ippo-head",
        **merge_options(
            GROUPS, {"critic": {"kind": "value_head"}, "penalty": {"entropy_coef": 0.01}}
        ),
    ),
    job("mappo", **merge_options(GROUPS, {"optimizer": {"epochs": 1}})),
    job(
        "ippo",
        "ippo-tokens",
        **merge_options(
            GROUPS,
            {
                "critic": {"level": "token", "normalize": True},
                "penalty": {"kl_coef": 0.1, "kl_in": "token"},
            },
        ),
    ),
    job(
        "magrpo",
        "magrpo-tasks",
        **merge_options(
            GROUPS,
            {
                "group": {"size": 2, "rollouts": 2, "resample": 2, "joint_mode": "replay"},
                "credit": {"kind": "replay"},
                "baseline": {"group_by": "agent"},
            },
        ),
    ),
    job(
        "magrpo",
        "magrpo-corrected",
        **merge_options(
            GROUPS,
            {
                "importance": {"correction": "token_truncate"},
                "loss": {"kind": "token_mean", "surrogate": "cispo"},
                "penalty": {"kl_coef": 0.1, "kl_in": "reward"}
                | {"overlong": "soft", "overlong_penalty": 0.5, "overlong_buffer": 4},
                "credit": {"kind": "alignment"},
                "baseline": {"normalize_batch": True},
            },
        ),
    ),
    job(
        "mareinforce",
        "mareinforce-role",
        **merge_options(
            GROUPS,
            {
                "group": {"size": 1},
                "baseline": {"kind": "role_ema"},
                "importance": {"correction": "sequence_mask", "veto": 1e-4},
                "loss": {"kind": "grpo", "ratio_cap": 3.0},
                "optimizer": {"epochs": 2},
            },
        ),
    ),
    job("madpo", **CHOICES),
    job(
        "madpo",
        "madpo-simpo",
        **merge_options(
            CHOICES,
            {"loss": {"per_token": True, "target_margin": 1.0, "sft_coef": 0.5}},
        ),
    ),
    job("marlhf", **GROUPS),
    job("sft", **GROUPS),
    job("magrpo", "magrpo-lora", **merge_options(GROUPS, {"lora": {"rank": 2}})),
    job("magrpo", "magrpo-half", **merge_options(GROUPS, {"compute": {"dtype": "bfloat16"}})),
]


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("processes", "jobs"),
    [
        pytest.param(2, JOBS, marks=pytest.mark.long),
        pytest.param(3, JOBS, marks=pytest.mark.long),
        pytest.param(3, JOBS[::4], marks=pytest.mark.slow),
    ],
    ids=["2-all", "3-all", "3-some"],
)
def test_several_processes_give_the_bits_of_one(tmp_path, processes, jobs):
    for number in (1, processes):
        run(tmp_path / str(number), jobs, number)
    for each in jobs:
        assert_identical_runs(
            tmp_path / "1" / each["name"], tmp_path / str(processes) / each["name"]
        )


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    "processes",
    [
        pytest.param((2, 1), marks=pytest.mark.long),
        pytest.param((1, 3), marks=pytest.mark.slow),
    ],
)
def test_a_run_is_resumed_bit_by_bit_by_another_number_of_processes(tmp_path, processes):
    jobs = {
        iterations: [
            job("ippo", iterations=iterations, train=train, **GROUPS),
            job("madpo", iterations=iterations, train=train, **CHOICES),
        ]
        for iterations, train in ((2, {"eval_every": 2}), (4, {"eval_every": 2}))
    }
    run(tmp_path / "whole", jobs[4], 1)
    for iterations, number in zip((2, 4), processes, strict=True):
        run(tmp_path / "parts", jobs[iterations], number)
    for each in jobs[4]:
        assert_identical_runs(tmp_path / "whole" / each["name"], tmp_path / "parts" / each["name"])
