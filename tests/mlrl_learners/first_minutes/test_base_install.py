"""Stumbles 6, 9, 10 and 11: what a base install, without the packages of extras, does."""

import shutil
import subprocess
import sys

import pytest

EXTRAS = ("torch", "transformers", "scipy", "simpleeval", "tqdm", "jsonschema_rs", "argcomplete")


@pytest.fixture
def base_install(tmp_path):
    """Return a function that types a command where the packages of extras are missing."""

    def run(command):
        missing = f"import sys; sys.modules.update(dict.fromkeys({EXTRAS!r})); "
        program = f"{missing}from mlrl_learners.cli import main; sys.exit(main())"
        words = [sys.executable, "-c", program, *command.split()]
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout, done.stderr

    return run


def test_validate_goes_on_after_an_environment_that_needs_a_package(base_install):
    status, out, err = base_install("validate mlrl/tools-v1 mlrl/arxiv-v1 --split sample")
    assert (status, err.count("\n")) == (1, 1)
    assert err.startswith("mlrl: mlrl/tools-v1: the calculator needs")
    tools, arxiv = (line.split() for line in out.splitlines()[1:])
    assert tools == ["mlrl/tools-v1", "not", "checked"]
    assert arxiv[:3] == ["mlrl/arxiv-v1", "sample", "8"]


@pytest.mark.parametrize("env_id", ["mlrl/tldr-v1", "mlrl/arxiv-v1", "mlrl/tools-v1"])
def test_samples_of_texts_and_tools_are_played(env_id, base_install):
    status, out, _ = base_install(f"play {env_id} --env.split sample --actor random")
    assert status == 0
    assert "returns:" in out


def test_options_of_learners_that_need_torch_are_one_line(base_install):
    status, _, err = base_install("list magrpo")
    assert (status, err.count("\n")) == (2, 1)
    assert "learner 'magrpo' needs 'torch'" in err


def test_a_suite_asks_for_its_packages_before_it_plays(base_install, tmp_path):
    status, _, err = base_install("bench run --suite smoke --actor random --run-dir b")
    assert (status, err.count("\n")) == (1, 1)
    assert "benchmark statistics need the package 'scipy'" in err
    assert not (tmp_path / "b").exists()


def test_a_learner_without_torch_is_trained_by_its_file(base_install, tmp_path):
    assert base_install("init learner parrot")[0] == 0
    shutil.copy(tmp_path / "parrot" / "parrot.py", tmp_path)
    words = "--learner.name parrot.py:Parrot --train.iterations 2"
    status, out, err = base_install(f"train parrot/train.yaml --run-dir r {words}")
    assert status == 0, err
    assert out.startswith("2 iterations")
