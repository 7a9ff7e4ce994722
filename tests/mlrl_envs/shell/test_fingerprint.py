import copy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import mlrl_envs


def test_equal_environments_have_equal_fingerprints():
    env = mlrl_envs.make("mlrl/story-v1")
    env.reset(seed=0)
    assert mlrl_envs.fingerprint(env) == mlrl_envs.fingerprint(copy.deepcopy(env))
    assert set(mlrl_envs.fingerprint(env)) == {"data", "scorer"}


def test_other_tasks_change_the_data_hash_only():
    train = mlrl_envs.fingerprint(mlrl_envs.make("mlrl/story-v1"))
    held_out = mlrl_envs.fingerprint(mlrl_envs.make("mlrl/story-v1", split="eval"))
    assert train["data"] != held_out["data"]
    assert train["scorer"] == held_out["scorer"]


def test_a_strangers_environment_has_none():
    assert mlrl_envs.fingerprint(object()) == {}


SCORER = """
import sys
import mlrl_envs
print(mlrl_envs.fingerprint(mlrl_envs.make("mlrl/math-v2"))["scorer"])
print(mlrl_envs.fingerprint(mlrl_envs.make("mlrl/story-v1"))["scorer"])
"""


@pytest.fixture
def scorers(tmp_path):
    """Return a copy of the package, and what its scorers' hashes are."""
    root = Path(mlrl_envs.__file__).parent
    folder = tmp_path / "mlrl_envs"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(root, folder, ignore=ignored)

    def scorers():
        command = [sys.executable, "-c", SCORER]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        return done.stdout.split()

    return folder, scorers


def test_a_moved_file_and_an_edited_docstring_change_no_hash_but_a_constant_does(scorers):
    folder, hashes = scorers
    before = hashes()
    (folder / "rewards/math/equations.py").rename(folder / "rewards/moved.py")
    for path in folder.rglob("*.py"):
        text = path.read_text()
        path.write_text(text.replace("mlrl_envs.rewards.math.equations", "mlrl_envs.rewards.moved"))
    score = folder / "rewards/math/score.py"
    _, _, code = score.read_text().split('"""', maxsplit=2)
    score.write_text(f'"""Edited."""{code}')
    assert hashes() == before
    assert "0.6" in code
    score.write_text(f'"""Edited."""{code.replace("0.6", "0.7")}')
    after = hashes()
    assert after[0] != before[0]
    assert after[1] == before[1]  # another family's rules are as they were
