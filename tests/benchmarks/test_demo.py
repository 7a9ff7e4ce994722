import json

import pytest

from benchmarks.demo import DemoConfig, main, print_figures

TINY = DemoConfig(
    model="tiny-random",
    reward="grounded",
    iterations=2,
    tasks_per_iteration=1,
    group_size=2,
    max_new_tokens=8,
    eval_every=1,
    eval_samples=1,
    code_tasks=1,
    code_tokens=8,
    least_ratio=0.0,
)


def held_out(*means: float) -> list[dict]:
    return [
        {"iteration": i, "mean_return": mean, "interval": [mean, mean], "seed": 0}
        for i, mean in enumerate(means)
    ]


@pytest.mark.parametrize(
    ("means", "risen"),
    [((0.2, 0.1, 0.31), True), ((0.2, 0.9, 0.29), False), ((0.0, 0.1), True), ((0.0, 0.0), False)],
)
def test_only_the_first_and_last_held_out_return_decide(means, risen):
    assert print_figures(held_out(*means), DemoConfig()) is risen


@pytest.mark.slow
def test_the_demo_trains_plays_code_and_writes_a_report(tmp_path):
    run_dir = tmp_path / "run"
    assert main(["--run-dir", str(run_dir)], TINY) == 0
    lines = (run_dir / "evaluations.jsonl").read_text().splitlines()
    played = [(row["env_id"], row["iteration"]) for row in map(json.loads, lines)]
    stories = [("mlrl/story-v1", i) for i in (0, 1, 2)]
    assert played == [*stories, ("mlrl/humaneval-v1", 2)]
    report = (run_dir / "report.html").read_text()
    assert "mlrl/humaneval-v1" in report
    assert "before training" in report


@pytest.mark.slow
def test_resuming_a_finished_demo_plays_the_code_once_more_and_keeps_one_line(tmp_path):
    run_dir = tmp_path / "run"
    main(["--run-dir", str(run_dir)], TINY)
    before = (run_dir / "metrics.jsonl").read_text()
    assert main(["--run-dir", str(run_dir), "--resume"], TINY) == 0
    assert (run_dir / "metrics.jsonl").read_text() == before
    assert (run_dir / "evaluations.jsonl").read_text().count('"mlrl/humaneval-v1"') == 1


@pytest.mark.slow
def test_a_folder_that_holds_a_run_is_refused_without_resume(tmp_path):
    run_dir = tmp_path / "run"
    main(["--run-dir", str(run_dir)], TINY)
    assert main(["--run-dir", str(run_dir)], TINY) == 2
