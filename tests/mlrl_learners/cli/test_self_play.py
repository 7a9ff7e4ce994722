import json

import pytest

from mlrl_learners.cli import main

KUHN = ["mlrl/kuhn-v0", "--split", "sample", "--tasks", "4"]
TRAIN = [
    "--env.id", "mlrl/kuhn-v0", "--env.options", "{split: sample}",
    "--learner.team.share_weights", "true", "--learner.sampling.max_new_tokens", "3",
    "--train.iterations", "2", "--train.tasks_per_iteration", "2",
]  # fmt: skip


def error_of(words, capsys, status=2):
    assert main(words) == status
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1, lines
    return lines[0]


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["--opponents.agents.player_2", "latest"], "unknown agent 'player_2'"),
        (["--opponents.agents.player_1", "script:nush"], "unknown script 'nush'; did you mean"),
        (["--opponents.agents.player_1", "script:"], "write script:NAME"),
        (["--opponents.agents.player_1", "nash"], "unknown opponent 'nash'; did you mean 'script:"),
        (["--opponents.agents.player_1", "snapshot"], "did you mean 'snapshots'?"),
        (["--opponents.agents.player_1", "runs/none"], "no run, snapshot or model at 'runs/none'"),
        (["--opponents.agents.player_1", "runs/a/snapshots/step_9"], "no run, snapshot or model"),
        (["--opponents.agents.player_1", "endpoint:m"], "write endpoint:MODEL@URL"),
        (
            ["--opponents.agents", "{player_0: latest, player_1: latest}"],
            "opponents play every agent, player_0, player_1",
        ),
        (["--opponents.keep_snapshots", "0"], "keep_snapshots must be at least 1, got 0"),
        (["--opponents.draw", "best"], "opponents.draw"),
        (["--opponents.agents.player_1", "{latest: -1}"], "must be a weight above 0, got -1"),
        (["--opponents.agent.player_1", "latest"], "unknown key 'opponents.agent"),
        (
            ["--opponents.agents.player_1", "latest", "--opponents.balance_seats", "false",
             "--learner.team.frozen", "[player_0]"],
            "the learner plays only player_0, which is frozen",
        ),
    ],
)  # fmt: skip
def test_bad_opponents_are_one_line_before_anything_is_written(
    overrides, message, tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr("mlrl_learners.cli.train.make_learner", lambda _: pytest.fail("loaded"))
    run_dir = tmp_path / "run"
    assert message in error_of(
        ["train", "tiny", "--run-dir", str(run_dir), *TRAIN, *overrides], capsys
    )
    assert not run_dir.exists()


def test_an_opponent_without_a_checkpoint_is_one_line(tmp_path, capsys):
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "config.yaml").write_text("env: {id: mlrl/kuhn-v0}\n")
    words = ["--opponents.agents.player_1", str(tmp_path / "other")]
    told = error_of(["train", "tiny", "--run-dir", str(tmp_path / "run"), *TRAIN, *words], capsys)
    assert "has no checkpoint yet" in told


def test_scripts_are_evaluated_against_scripts(capsys):
    words = [*KUHN, "--actor", "script:nash", "--samples", "2"]
    assert main(["evaluate", *words, "--opponents.agents.player_1", "script:random", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    seats = [each["opponents"] for each in found["episodes"]]
    assert all(set(seat.values()) == {"script:random"} for seat in seats)
    of_tasks = [{*one, *two} for one, two in zip(seats[::2], seats[1::2], strict=True)]
    assert of_tasks == [{"player_0", "player_1"}] * 4  # each task is played in both seats
    returns = [
        value
        for each in found["episodes"]
        for agent, value in each["returns"].items()
        if agent not in each["opponents"]
    ]
    assert found["mean_return"] == pytest.approx(sum(returns) / len(returns))


def test_the_table_of_an_evaluation_names_the_opponents(capsys):
    words = [*KUHN, "--actor", "script:nash", "--opponents.agents.player_1", "script:random"]
    assert main(["evaluate", *words]) == 0
    assert "against script:random" in capsys.readouterr().out


def test_past_weights_take_a_run(capsys):
    words = [*KUHN, "--actor", "script:nash", "--opponents.agents.player_1", "snapshots"]
    assert "takes a run directory" in error_of(["evaluate", *words], capsys)


def test_a_run_plays_against_its_snapshots_scripts_and_other_runs(tmp_path, capsys):
    run, other = str(tmp_path / "run"), str(tmp_path / "other")
    opponents = ["--opponents.agents", "{player_1: {snapshots: 1, 'script:nash': 1}}"]
    pool = ["--opponents.snapshot_every", "1"]
    assert main(["train", "tiny", "--run-dir", run, *TRAIN, *opponents, *pool]) == 0
    assert main(["evaluate", run, *KUHN[1:], "--json"]) == 0
    out = capsys.readouterr().out
    found = json.loads(out[out.index("{\n") :])
    names = {name for each in found["episodes"] for name in each["opponents"].values()}
    assert names <= {"snapshots:0", "snapshots:1", "snapshots:2", "script:nash"}
    snapshot = f"{run}/snapshots/step_1"
    rival = ["--opponents.agents.player_1", f"{{{snapshot!r}: 1, {run!r}: 1}}"]
    assert main(["train", "tiny", "--run-dir", other, *TRAIN, *rival]) == 0
    cross = ["bench", "crossplay", "mlrl/kuhn-v0", "--tasks", "2", "--tokens", "3"]
    folder = ["--run-dir", str(tmp_path / "cross"), "--out", str(tmp_path / "out.json")]
    actors = ["--actors", run, snapshot, "script:random"]
    capsys.readouterr()
    assert main([*cross, *actors, *folder, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["actors"] == ["run", "step_1", "script:random"]
    assert all(value is not None for value in result["nash_conv"].values())
    assert json.loads((tmp_path / "out.json").read_text()) == result


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["mlrl/kuhn-v0", "--actors", "script:nash"], "at least 2 actors, got 1"),
        (["mlrl/kuhn-v0", "--actors", "script:nash", "script:nash"], "appears twice"),
        (["mlrl/kuhn-v0", "--actors", "script:nash", "script:no"], "unknown script 'no'"),
        (["mlrl/koon-v0", "--actors", "script:nash", "random"], "unknown environment"),
        (["mlrl/story-v1", "--actors", "script:nash", "random"], "has no scripted players"),
        (["mlrl/kuhn-v0", "--actors", "random", "reference", "--tasks", "0"], "at least 1"),
        (
            [
                "mlrl/humaneval-v1",
                "--split",
                "sample",
                "--env.num_aux",
                "0",
                "--actors",
                "random",
                "reference",
            ],
            "takes at least 2 agents",
        ),
    ],
)
def test_bad_crossplay_is_one_line_before_anything_is_played(words, message, tmp_path, capsys):
    folder = tmp_path / "cross"
    assert message in error_of(["bench", "crossplay", *words, "--run-dir", str(folder)], capsys)
    assert not folder.exists()
