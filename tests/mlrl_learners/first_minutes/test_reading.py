"""Stumbles 14, 19 and 24: damaged checkpoints, other models, reports of evaluations and suites."""

import pytest

from mlrl_learners.errors import CheckpointError, RunDirError
from mlrl_learners.training.checkpoint import latest_checkpoint, read_checkpoint, write_checkpoint

SAYS_YES = "me.py:Guess --actor me.py:says_yes"


def test_a_file_of_episodes_is_reported(here, type_in):
    assert type_in(f"evaluate {SAYS_YES} --tasks 3 --episodes ep.jsonl")[0] == 0
    assert type_in("report ep.jsonl") == (0, "ep.html\n", "")
    page = (here / "ep.html").read_text()
    assert "me.py:Guess" in page
    assert "mean return me.py:Guess" in page
    assert "say yes" in page


def test_the_folder_of_a_suite_is_reported(here, type_in):
    (here / "mine.yaml").write_text(
        "name: mine\nversion: 0\nsummary: x\nseeds: [0]\nbudget: {turns: null}\n"
        "entries: [{env: 'me.py:Guess', tasks: 2}]\n"
    )
    words = "--suite mine.yaml --actor me.py:says_yes --run-dir b"
    assert type_in(f"bench run {words}")[0] == 0
    assert type_in("report b")[0] == 0
    assert "say yes" in (here / "b" / "report.html").read_text()


def test_the_monitor_shows_a_suite_and_names_the_command_for_a_file(here, type_in):
    pages = pytest.importorskip("mlrl_learners.monitor.pages.curves", reason="needs starlette")
    from mlrl_learners.monitor.library import MonitoredRun

    (here / "mine.yaml").write_text(
        "name: mine\nversion: 0\nsummary: x\nseeds: [0]\nbudget: {turns: null}\n"
        "entries: [{env: 'me.py:Guess', tasks: 2}]\n"
    )
    words = "--suite mine.yaml --actor me.py:says_yes --run-dir b"
    assert type_in(f"bench run {words}")[0] == 0
    assert pages.run_state(MonitoredRun.at("b", here / "b")) == "evaluated"
    status, _, err = type_in("monitor mine.yaml")
    assert (status, err.count("\n")) == (2, 1)
    assert "mlrl report reads files" in err


TINY = "train tiny --run-dir r --train.tasks_per_iteration 1"


@pytest.mark.slow
def test_a_run_with_damaged_weights_is_one_line_and_the_checkpoint_before_plays(here, type_in):
    pytest.importorskip("torch")
    assert type_in(f"{TINY} --train.iterations 2")[0] == 0
    for path in (here / "r/checkpoints/step_2").glob("**/model.safetensors"):
        path.write_bytes(path.read_bytes()[:100])
    for command in (
        "train --run-dir r --resume --train.iterations 3",
        "evaluate r --tasks 1",
    ):
        status, _, err = type_in(command)
        assert status == 2
        assert "cannot be loaded, it may be damaged" in err.splitlines()[-1]
        assert "Traceback" not in err
    assert type_in("evaluate r --checkpoint 1 --tasks 1")[0] == 0


@pytest.mark.slow
def test_a_disk_that_is_full_ends_a_run_with_one_line(here, type_in, monkeypatch):
    pytest.importorskip("torch")
    from mlrl_learners.algorithms.team import Team

    save = Team.save

    def fill(team, path):
        if "step_2" in str(path):
            raise OSError(28, "No space left on device")
        save(team, path)

    monkeypatch.setattr(Team, "save", fill)
    status, _, err = type_in(f"{TINY} --train.iterations 2")
    assert status == 1
    assert "cannot write the checkpoint" in err.splitlines()[-1]
    assert "Traceback" not in err
    assert [path.name for path in (here / "r/checkpoints").iterdir()] == ["step_1"]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*sampled without a KV cache:RuntimeWarning")
def test_a_state_space_model_trains_and_its_adapters_are_one_line(here, type_in):
    transformers = pytest.importorskip("transformers")
    from mlrl_learners.policies.tiny import tiny_model

    tokenizer = tiny_model()[1]
    config = transformers.MambaConfig(
        vocab_size=len(tokenizer), hidden_size=32, state_size=4, num_hidden_layers=1,
        eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id,
    )  # fmt: skip
    transformers.MambaForCausalLM(config).save_pretrained(here / "mamba")
    tokenizer.save_pretrained(here / "mamba")
    words = f"{TINY} --train.iterations 1 --train.eval_every 0 --learner.model mamba"
    words += " --learner.sampling.max_new_tokens 4"
    assert type_in(words)[0] == 0
    status, _, err = type_in(words.replace("-dir r", "-dir s") + " --learner.lora.rank 2")
    assert status == 2
    assert "lora.targets do not fit" in err.splitlines()[-1]
    assert not (here / "s").exists()


def test_a_file_without_episodes_is_one_line(here, type_in):
    status, _, err = type_in("report me.py")
    assert (status, err.count("\n")) == (2, 1)
    assert "holds no episodes" in err


class SafetensorError(Exception):
    """Stands for that of safetensors, which has no common base with others."""

    __module__ = "safetensors_rust"


class Weights:
    def __init__(self, error=None):
        self.error = error

    def save(self, path):
        (path / "weights").write_text("1")
        if self.error:
            raise self.error

    load = save


ERRORS = [SafetensorError("Error while deserializing header"), OSError(28, "No space left")]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_a_full_disk_leaves_the_checkpoint_before(error, tmp_path):
    write_checkpoint(tmp_path, 1, Weights(), {}, keep=1)
    with pytest.raises(RunDirError, match="cannot write the checkpoint"):
        write_checkpoint(tmp_path, 2, Weights(error), {}, keep=1)
    assert latest_checkpoint(tmp_path).name == "step_1"


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_a_damaged_checkpoint_is_one_line(error, tmp_path):
    path = write_checkpoint(tmp_path, 1, Weights(), {}, keep=1)
    with pytest.raises(CheckpointError, match="cannot be loaded, it may be damaged") as caught:
        read_checkpoint(path, Weights(error))
    assert "\n" not in str(caught.value)
