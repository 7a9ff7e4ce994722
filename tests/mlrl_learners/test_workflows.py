"""Workflows from training to the page: every node is an agent to learners and tools."""

import json

import pytest
import yaml

import mlrl_envs
import mlrl_learners
from mlrl_learners.bench.rescore import rescore
from mlrl_learners.cli import main
from mlrl_learners.config.run import load_config
from mlrl_learners.config.stored import with_absolute_paths
from mlrl_learners.evaluation.evaluate import evaluate
from mlrl_learners.interop.export import export
from mlrl_learners.registry import BUILT_IN
from mlrl_learners.report import write_report
from mlrl_learners.runs.records import episode_record
from mlrl_learners.testing import ScriptedActor
from mlrl_learners.training.loop import train

OPTIONS = {
    "split": "sample",
    "max_turns": 1,
    "workflow": {"shape": "critic", "only": ["solver"]},
}
NODES = ["solver_writer", "solver_critic", "solver_reviser", "verifier"]
FAST = ("magrpo", "mappo")
TEAMS = [
    pytest.param(spec.name, marks=() if spec.name in FAST else pytest.mark.slow)
    for spec in BUILT_IN
    if spec.max_agents != 1 and spec.name != "sft"
]


def options_of(name):
    known = {"sampling": {"max_new_tokens": 4}, "compute": {"device": "cpu"}, "group": {"size": 2}}
    if name == "marlhf":
        return {**known, "preferences": {"num_pairs": 1}}
    if name == "madpo":  # pairs need the futures of all answers where agents take turns
        return {**known, "group": {"size": 2, "branching": "tree"}}
    return known


@pytest.mark.parametrize("name", TEAMS)
def test_every_node_is_an_agent_to_a_learner(name, tmp_path):
    learner = mlrl_learners.make(name, agents=NODES, model="tiny-random", **options_of(name))
    result = train(
        env_id="mlrl/math-v2",
        env_options=OPTIONS,
        learner=learner,
        iterations=1,
        run_dir=tmp_path,
        tasks_per_iteration=2,
        progress=False,
    )
    assert all(f"{node}/tokens_per_second" in result.metrics for node in NODES)


def config(path, **train_options):
    """Write the configuration of a small run of a workflow."""
    raw = {
        "env": {"id": "mlrl/math-v2", "options": {**OPTIONS, "workflow": GRAPH}},
        "learner": {
            "name": "magrpo",
            "model": "tiny-random",
            "options": {"group": {"size": 2}, "sampling": {"max_new_tokens": 4}},
        },
        "train": {"tasks_per_iteration": 1, "eval_tasks": 1, **train_options},
    }
    path.write_text(yaml.safe_dump(raw, sort_keys=False))
    return str(path)


GRAPH = {
    "nodes": {
        "solver": {"reads": ["verifier"]},
        "verifier": {"role": "You are the critic, and you also play."},
    },
    "steps": ["verifier", {"repeat": 2, "steps": ["solver"], "until": {"solver": "DONE"}}],
}


def test_a_run_of_a_graph_is_trained_resumed_evaluated_and_shown(tmp_path, capsys):
    run_dir = tmp_path / "run"
    words = ["--run-dir", str(run_dir)]
    source = config(tmp_path / "run.yaml", iterations=1, eval_every=1)
    assert main(["train", source, *words]) == 0
    assert main(["train", *words, "--resume", "--train.iterations", "2"]) == 0
    assert len((run_dir / "metrics.jsonl").read_text().splitlines()) == 2
    page = write_report(run_dir).read_text()
    assert "Workflow: solver reads verifier" in page
    assert main(["evaluate", "mlrl/math-v2", "--actor", str(run_dir), "--tasks", "1",
                 "--env.workflow", json.dumps(GRAPH), "--env.max_turns", "1"]) == 0  # fmt: skip
    capsys.readouterr()
    assert export(run_dir, tmp_path / "out.jsonl")


def test_episodes_are_rescored_with_the_graph_that_played_them():
    actor = ScriptedActor(lambda agent, text: f"{agent}\nAnswer: {len(text)}")
    result = evaluate(
        env_id="mlrl/math-v2", actor=actor, env_options=OPTIONS, split="sample", tasks=2
    )
    records = [json.loads(json.dumps(episode_record(each))) for each in result.episodes]
    options = {**OPTIONS, "split": "sample"}
    assert rescore("mlrl/math-v2", options, records)[1] == []
    assert len(records[0]["turns"]) == 4
    assert "workflow" in records[0]["turns"][-1]["diagnostics"]["solver_writer"]


@pytest.mark.parametrize("word", ["critic", '{"shape": "critic", "only": ["solver"]}'])
def test_play_draws_the_graph_and_then_the_episode(word, capsys):
    assert main(["play", "mlrl/math-v2", "--workflow", word, "--actor", "random"]) == 0
    said = capsys.readouterr().out
    assert "solver_reviser <- solver_writer, solver_critic => solver" in said
    assert "solver_critic reads" in said


def test_a_workflow_of_a_file_is_played_and_kept_in_the_configuration_of_a_run(tmp_path, capsys):
    file = tmp_path / "team.yaml"
    file.write_text(yaml.safe_dump(GRAPH, sort_keys=False))
    assert main(["play", "mlrl/math-v2", "--workflow", str(file), "--actor", "random"]) == 0
    assert "verifier reads" in capsys.readouterr().out
    source = config(tmp_path / "run.yaml", iterations=1)
    found = with_absolute_paths(load_config(source, ["--env.workflow", str(file)]))
    assert found.env.options["workflow"] == GRAPH


@pytest.mark.parametrize("change", ["moved", "edited"])
def test_collected_episodes_are_rescored_with_the_graph_of_their_time(
    change, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "team.yaml"
    file.write_text(yaml.safe_dump(GRAPH, sort_keys=False))
    words = ["--env.split", "sample", "--env.workflow", "team.yaml", "--tasks", "1"]
    assert main(["collect", "mlrl/math-v2", "--actor", "random", "--out", "w.jsonl", *words]) == 0
    if change == "edited":
        file.write_text("shape: debate\n")
    else:
        file.unlink()
        monkeypatch.chdir(tmp_path.parent)
    assert main(["rescore", str(tmp_path / "w.jsonl")]) == 0
    assert "1 episodes, every score as it was" in capsys.readouterr().out


def test_crossplay_keeps_the_graph_of_a_file(tmp_path, capsys):
    file = tmp_path / "team.yaml"
    file.write_text("shape: critic\nonly: [player_0]\n")
    words = ["--actors", "random", "single:random", "--tasks", "1", "--env.workflow", str(file)]
    folder = ["--run-dir", str(tmp_path / "run"), "--seeds", "0", "--json"]
    assert main(["bench", "crossplay", "mlrl/matrix-v0", *words, *folder]) == 0
    (entry,) = json.loads(capsys.readouterr().out)["suite"]["entries"]
    assert entry["options"]["workflow"] == {"shape": "critic", "only": ["player_0"]}


def test_a_misspelt_workflow_is_one_line(capsys):
    assert main(["play", "mlrl/math-v2", "--workflow", "debat"]) == 2
    assert "did you mean 'debate'" in capsys.readouterr().err


def test_list_names_the_workflows(capsys):
    assert main(["list", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["workflows"]
    assert {row["name"] for row in rows} == set(mlrl_envs.workflows.SHAPES)
    assert all(row["summary"].endswith(".") for row in rows)
