"""Stages of a configuration: SFT, then RL, in one file and one folder."""

import copy
import json
import signal
import sys
from pathlib import Path

import pytest
import yaml

from mlrl_learners.algorithms.sft import Sft
from mlrl_learners.cli import main
from mlrl_learners.cli.stage_checks import check_stages
from mlrl_learners.config.run import load_config
from mlrl_learners.config.stages import stage_configs, stages_mapping
from mlrl_learners.config.yaml import dump_yaml, read_yaml
from mlrl_learners.errors import ConfigError, ModelNotFoundError, UnknownNameError

RAW = {
    "env": {"id": "mlrl/math-v2", "options": {"split": "sample", "max_turns": 1}},
    "learner": {
        "model": "tiny-random",
        "options": {"sampling": {"max_new_tokens": 4}, "group": {"size": 2}},
    },
    "train": {"iterations": 1, "tasks_per_iteration": 1},
    "stages": {
        "sft": {"learner": {"name": "sft"}},
        "rl": {
            "env": {"options": {"max_turns": 2}},
            "learner": {"name": "magrpo", "options": {"group": {"branching": "chain"}}},
        },
    },
}


OWN = """
from mlrl_learners.algorithms.magrpo import make_magrpo


def brief(task, actions):
    return 1.0
"""


@pytest.fixture
def source(tmp_path):
    """Return a file with two stages."""
    return _written(tmp_path / "run.yaml", RAW)


@pytest.fixture
def run_dir(tmp_path):
    return tmp_path / "runs"


def _written(path, raw):
    path.write_text(yaml.safe_dump(raw, sort_keys=False))
    return str(path)


def _iterations(run_dir):
    """Return the number of metrics lines of each stage."""
    files = {name: run_dir / name / "metrics.jsonl" for name in RAW["stages"]}
    return {n: len(f.read_text().splitlines()) if f.exists() else 0 for n, f in files.items()}


def test_a_stage_has_the_keys_of_the_file_and_its_own():
    sft, rl = stage_configs(RAW, ["--train.seed", "3"]).values()
    assert sft.learner.options == RAW["learner"]["options"]
    assert rl.learner.options["group"] == {"size": 2, "branching": "chain"}
    assert rl.env.options == {"split": "sample", "max_turns": 2}
    assert sft.train == rl.train
    assert sft.train.seed == 3


@pytest.mark.parametrize(
    ("stages", "message"),
    [
        ([], "must map names"),
        ({}, "must map names"),
        ({"../x": {}}, "letters, digits"),
        ({"a": 3}, "'a' must be a mapping"),
        ({"a": {}, "b": {"learner": {"model": "x"}}}, "'b' starts from the stage before"),
        ({"a": {"train": {"iterations": 0}}}, "at least 1, got 0"),
    ],
    ids=str,
)
def test_a_mistake_is_one_line_before_anything_is_played(stages, message):
    with pytest.raises(ConfigError, match=message):
        stage_configs({**RAW, "stages": stages})


def test_an_unknown_key_of_a_stage_is_named():
    with pytest.raises(UnknownNameError, match=r"did you mean 'train\.iterations'"):
        stage_configs({**RAW, "stages": {"a": {"train": {"iteration": 1}}}})


def test_the_code_of_stages_is_imported(tmp_path):
    code = tmp_path / "stage_code.py"
    code.write_text("")
    stage_configs({**RAW, "code": {"imports": [str(code)]}})
    assert "stage_code" in sys.modules


def test_stored_stages_are_read_back():
    stages = stage_configs(RAW, ["--train.iterations", "7"])
    assert stage_configs(stages_mapping(stages)) == stages


def test_stages_are_runs_that_start_from_the_one_before_and_go_on(source, run_dir, capsys):
    words = ["--run-dir", str(run_dir)]
    assert main(["train", source, *words]) == 0
    models = load_config(run_dir / "rl/config.yaml").learner.model
    assert set(models) == {"solver", "verifier"}
    assert all(str(run_dir / "sft/checkpoints/step_1") in path for path in models.values())
    before = (run_dir / "sft/metrics.jsonl").read_text()
    capsys.readouterr()
    assert main(["train", source, *words]) == 2
    assert "holds stages; pass --resume" in capsys.readouterr().err
    assert main(["train", *words, "--resume", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["iterations"] == 1
    assert (run_dir / "sft/metrics.jsonl").read_text() == before


def test_an_interrupted_run_goes_on_with_its_overrides(source, run_dir, capsys, monkeypatch):
    overrides = ["--train.iterations", "3", "--learner.optimizer.lr", "1e-2"]
    update = Sft.update
    with monkeypatch.context() as patch:
        patch.setattr(Sft, "update", _interrupted(update))
        assert main(["train", source, "--run-dir", str(run_dir), *overrides]) == 130
    assert _iterations(run_dir) == {"sft": 1, "rl": 0}
    printed = capsys.readouterr().err.splitlines()[-1]
    command = printed.removeprefix("to continue: mlrl ").split()
    assert main(command) == 0
    assert _iterations(run_dir) == {"sft": 3, "rl": 3}
    assert load_config(run_dir / "rl/config.yaml").learner.options["optimizer"] == {"lr": 1e-2}


def test_a_longer_run_goes_on_with_its_last_stage_alone(source, run_dir, capsys):
    words = ["train", "--run-dir", str(run_dir)]
    assert main([*words[:1], source, *words[1:]]) == 0
    assert main([*words, "--resume", "--train.iterations", "2"]) == 0
    assert _iterations(run_dir) == {"sft": 1, "rl": 2}
    assert main([*words, "--resume"]) == 0
    assert _iterations(run_dir) == {"sft": 1, "rl": 2}


def test_a_refused_resume_changes_nothing(source, run_dir, capsys):
    words = ["train", "--run-dir", str(run_dir), "--resume"]
    assert main(["train", source, "--run-dir", str(run_dir)]) == 0
    before = {path: path.read_bytes() for path in run_dir.rglob("*") if path.is_file()}
    assert main([*words, "--learner.group.size", "3"]) == 2
    assert "learner.options.group.size was 2, now 3" in capsys.readouterr().err
    assert {path: path.read_bytes() for path in run_dir.rglob("*") if path.is_file()} == before
    assert main(words) == 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rl.learner.options": {"group": {"siz": 2}}}, "stage 'rl': unknown option 'group.siz'"),
        (
            {"rl.learner.options": {"credit": {"kind": "difference"}}},
            "takes group.joint_mode cross",
        ),
        ({"rl.learner.name": "magrp"}, "stage 'rl': unknown learner 'magrp'"),
        ({"rl.learner.name": "grpo"}, "stage 'rl': grpo trains one agent, got 2"),
        ({"rl.learner.options": {"team": {"share_weights": True}}}, "'shared' need one model"),
        (
            {"rl.learner.options": {"optimizer": {"schedule": "linear", "warmup_steps": 9}}},
            "warmup",
        ),
        ({"rl.env.options": {"max_turn": 2}}, "stage 'rl': unknown option 'max_turn'"),
        ({"rl.train": {"epochs": 0.5, "eval_every": 1, "eval_options": {"x": 1}}}, "'x'"),
        ({"sft.learner.options": {"lora": {"rank": 2}}}, "stage 'sft': learner.options.lora.rank"),
        ({"sft.learner.options": {"team": {"frozen": ["solver"]}}}, "team.frozen is ['solver']"),
        ({"sft.learner.options": {"examples": {"episodes": "x.jsonl"}}}, "no file 'x.jsonl'"),
    ],
    ids=str,
)
def test_a_mistake_of_any_stage_is_reported_before_the_first(
    tmp_path, run_dir, capsys, changes, message
):
    raw = copy.deepcopy(RAW)
    for place, value in changes.items():
        *path, last = place.split(".")
        section = raw["stages"]
        for name in path:
            section = section.setdefault(name, {})
        section[last] = value
    source = _written(tmp_path / "wrong.yaml", raw)
    assert main(["train", source, "--run-dir", str(run_dir)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line
    assert not run_dir.exists()


def test_the_last_stage_may_train_adapters(run_dir):
    raw = copy.deepcopy(RAW)
    raw["stages"]["rl"]["learner"]["options"]["lora"] = {"rank": 2}
    check_stages(stage_configs(raw), run_dir)


def _with_sections(**sections):
    """Return the two stages with other sections in the second."""
    return {**RAW, "stages": {"sft": {}, "rl": sections}}


def _using(folder):
    """Return the sections of a stage that learns from episodes and plays against a checkpoint."""
    examples = {"episodes": f"{folder}/shown.jsonl"}
    opponent = f"pipeline:{folder}/checkpoints/step_1"
    return {
        "learner": {"name": "sft", "options": {"examples": examples}},
        "opponents": {"agents": {"solver": opponent}},
    }


@pytest.mark.parametrize("given", ["runs", "absolute"])
@pytest.mark.parametrize("used", ["runs", "absolute"])
def test_a_stage_may_use_what_an_earlier_one_writes(tmp_path, monkeypatch, given, used):
    monkeypatch.chdir(tmp_path)
    given, used = (tmp_path / "runs" if each == "absolute" else each for each in (given, used))
    check_stages(stage_configs(_with_sections(**_using(f"{used}/sft"))), Path(given))


@pytest.mark.parametrize("folder", ["runs/rl", "runs/sft2", "other/sft"])
@pytest.mark.parametrize("section", ["learner", "opponents"])
def test_what_no_earlier_stage_writes_must_be_there(tmp_path, monkeypatch, folder, section):
    monkeypatch.chdir(tmp_path)
    raw = _with_sections(**{section: _using(folder)[section]})
    with pytest.raises((ConfigError, ModelNotFoundError), match=folder):
        check_stages(stage_configs(raw), Path("runs"))


def test_a_stage_plays_against_the_one_before(tmp_path, run_dir):
    raw = _with_sections(opponents={"agents": {"solver": str(run_dir / "sft")}})
    assert main(["train", _written(tmp_path / "run.yaml", raw), "--run-dir", str(run_dir)]) == 0
    assert _iterations(run_dir) == {"sft": 1, "rl": 1}


def test_stages_that_stored_relative_paths_go_on(tmp_path, run_dir, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("own.py").write_text(OWN)
    Path("team.yaml").write_text("shape: critic\nonly: [solver]\n")
    options = {**RAW["env"]["options"], "reward": "own.py:brief", "workflow": "team.yaml"}
    name = "own.py:make_magrpo"
    paths = {
        "env": {**RAW["env"], "options": options},
        "learner": {**RAW["learner"], "name": name},
        "code": {"imports": ["own.py"]},
    }
    raw = {**RAW, **paths, "stages": {"sft": {}, "rl": {}}}
    words = ["train", _written(tmp_path / "run.yaml", raw), "--run-dir", str(run_dir)]
    assert main(words) == 0
    for stored in run_dir.glob("*/config.yaml"):
        values = read_yaml(stored)
        values["env"]["options"] = options
        values["learner"]["name"] = name
        values["code"] = paths["code"]
        stored.write_text(dump_yaml(values))
    assert main([*words, "--resume", "--train.iterations", "2"]) == 0
    assert _iterations(run_dir) == {"sft": 1, "rl": 2}


def test_stages_in_another_order_are_refused(source, run_dir, tmp_path, capsys):
    assert main(["train", source, "--run-dir", str(run_dir)]) == 0
    renamed = {"warm": RAW["stages"]["sft"], "rl": RAW["stages"]["rl"]}
    other = _written(tmp_path / "other.yaml", {**RAW, "stages": renamed})
    assert main(["train", other, "--run-dir", str(run_dir), "--resume"]) == 2
    assert "has started the stages sft, rl; the first of those given" in capsys.readouterr().err


def _interrupted(update):
    def interrupted(learner, rollouts):
        signal.raise_signal(signal.SIGINT)
        return update(learner, rollouts)

    return interrupted
