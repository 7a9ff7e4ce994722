"""A run whose checkpoints hold adapters is used like any other."""

import json

import pytest

from mlrl_learners.cli import main

TINY = [
    "--learner.model", "tiny-random", "--learner.lora.rank", "3",
    "--learner.sampling.max_new_tokens", "8",
    "--learner.group.size", "3", "--learner.optimizer.lr", "0.01",
    "--learner.compute.device", "cpu",
    "--env.split", "sample", "--env.reward", "grounded", "--train.tasks_per_iteration", "1",
    "--train.eval_every", "0", "--train.keep_checkpoints", "1",
]  # fmt: skip


def train(run_dir, iterations, *words):
    asked = ["--run-dir", str(run_dir), "--train.iterations", str(iterations)]
    return main(["train", "story-lora", *asked, *TINY, *words])


def learnt(run_dir):
    """Everything that the last checkpoint holds of the learner, by file."""
    (folder,) = (run_dir / "checkpoints").iterdir()
    files = (path for path in (folder / "learner").rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "a"
    assert train(folder, 2, "--learner.options.team.frozen", "[setup]") == 0
    return folder


def test_a_checkpoint_holds_adapters_and_no_base(run_dir):
    names = {name for name in learnt(run_dir) if "optimizer" not in name}
    assert names == {
        "learner/generator.pt",
        "learner/setup/base.json",
        "learner/story/adapter_config.json",
        "learner/story/adapter_model.safetensors",
        "learner/story/base.json",
        "learner/team.json",
    }


def test_a_resumed_run_ends_with_the_same_bytes(tmp_path):
    assert train(tmp_path / "whole", 3) == 0
    assert train(tmp_path / "parts", 1) == 0
    assert train(tmp_path / "parts", 3, "--resume") == 0
    assert learnt(tmp_path / "whole") == learnt(tmp_path / "parts")


def test_it_is_evaluated_and_plays_for_others(run_dir, tmp_path, capsys):
    few = ["--split", "sample", "--tasks", "1", "--json"]
    assert main(["evaluate", str(run_dir), *few]) == 0
    assert "mean_return" in json.loads(capsys.readouterr().out)
    out = tmp_path / "episodes.jsonl"
    words = ["collect", "mlrl/story-v1", "--actor", str(run_dir), "--out", str(out)]
    assert main([*words, "--env.split", "sample", "--tasks", "1"]) == 0
    assert len(out.read_text().splitlines()) == 1


def test_another_learner_starts_from_its_adapter(run_dir, tmp_path):
    (checkpoint,) = (run_dir / "checkpoints").iterdir()
    start = str(checkpoint / "learner" / "story")
    assert train(tmp_path / "next", 1, "--learner.model", start) == 0
    base = json.loads(learnt(tmp_path / "next")["learner/story/base.json"])
    assert base["source"] == start


def test_all_weights_of_its_adapter_merged_are_trained_and_play(run_dir, tmp_path, capsys):
    (checkpoint,) = (run_dir / "checkpoints").iterdir()
    start = str(checkpoint / "learner" / "story")
    assert train(tmp_path / "next", 1, "--learner.model", start, "--learner.lora.rank", "0") == 0
    assert "learner/story/model.safetensors" in learnt(tmp_path / "next")
    capsys.readouterr()
    words = ["evaluate", "mlrl/story-v1", "--actor", start, "--split", "sample", "--tasks", "1"]
    assert main([*words, "--learner.sampling.max_new_tokens", "8", "--json"]) == 0
    assert "mean_return" in json.loads(capsys.readouterr().out)
