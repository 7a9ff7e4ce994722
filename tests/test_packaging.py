"""Packages as they are published: files, metadata, types for users, and the release files."""

import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
import yaml

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
WORKFLOWS = ROOT / ".github" / "workflows"

TYPED = """
from collections.abc import Mapping, Sequence
from pathlib import Path

import mlrl_envs
import mlrl_learners
from mlrl_learners.types import Actor, AgentID, Completion, Learner, Rollout


class Mine:
    def act(
        self,
        observations: Sequence[Mapping[AgentID, str]],
        *,
        num_samples: int = 1,
        explore: bool = True,
    ) -> list[Mapping[AgentID, list[Completion]]]:
        return [{a: [Completion("x")] * num_samples for a in each} for each in observations]

    def update(self, rollouts: Sequence[Rollout]) -> Mapping[str, float]:
        return {}

    def save(self, path: Path) -> None: ...

    def load(self, path: Path) -> None: ...


learner: Learner = Mine()
actor: Actor = learner
env: mlrl_envs.TextEnv = mlrl_envs.make("mlrl/story-v1")
result = mlrl_learners.evaluate(env="mlrl/story-v1", actor=actor)
reveal_type(result.mean_return)
mlrl_learners.evaluate(env=3, actor=actor)
mlrl_envs.make(3)
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The source distribution, and the wheel that is built from it."""
    pytest.importorskip("hatchling", reason="needs pip install 'mlrl[dev]'")
    folder = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "hatchling", "build", "-d", str(folder), "-t"]
    subprocess.run([*build, "sdist"], cwd=ROOT, check=True, capture_output=True)
    (sdist,) = folder.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    source = folder / sdist.name.removesuffix(".tar.gz")
    subprocess.run([*build, "wheel"], cwd=source, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    return sdist, wheel


@pytest.mark.slow
def test_the_wheel_holds_every_file_of_both_packages(built):
    names = set(zipfile.ZipFile(built[1]).namelist())
    tracked = subprocess.run(
        ["git", "ls-files", "mlrl_envs", "mlrl_learners"],  # noqa: S607
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split()
    assert set(tracked) <= names
    suites = {f"mlrl_learners/bench/suites/{p.name}" for p in ROOT.glob("benchmarks/suites/*.yaml")}
    assert suites <= names
    audits = {f"mlrl_learners/report/audits/{p.name}" for p in ROOT.glob("benchmarks/audits/*")}
    assert audits <= names
    assert {name.split("/")[0] for name in names} == {
        "mlrl_envs",
        "mlrl_learners",
        f"mlrl-{PROJECT['version']}.dist-info",
    }


@pytest.mark.slow
def test_a_typed_program_is_checked_against_the_installed_packages(built, tmp_path):
    subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "venv")], check=True
    )
    (site,) = (tmp_path / "venv").glob("lib/python*/site-packages")
    zipfile.ZipFile(built[1]).extractall(site)  # noqa: S202 - our own
    (tmp_path / "mine.py").write_text(TYPED)
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache")]
    python = ["--python-executable", str(tmp_path / "venv" / "bin" / "python"), "mine.py"]
    printed = subprocess.run(
        [*command, *python], cwd=tmp_path, capture_output=True, text=True, check=False
    ).stdout
    assert 'Revealed type is "float"' in printed.replace("builtins.float", "float")
    assert 'Argument "env" to "evaluate" has incompatible type "int"' in printed
    assert 'Argument 1 to "make" has incompatible type "int"' in printed
    assert "Found 2 errors" in printed


def test_ci_runs_every_version_of_python_that_is_promised():
    promised = [c.rpartition(" ")[2] for c in PROJECT["classifiers"] if "Python :: 3." in c]
    for file in ("ci.yml", "release.yml"):
        found = re.findall(r"python: \[(.*)\]", (WORKFLOWS / file).read_text())
        assert found == [", ".join(f'"{version}"' for version in promised)]


def test_ci_installs_every_extra():
    jobs = yaml.safe_load((WORKFLOWS / "ci.yml").read_text())["jobs"]
    extras = jobs["install"]["strategy"]["matrix"]["extra"]
    assert set(extras) == {"", *PROJECT["optional-dependencies"]} - {"all", "dev", "docs"}


def test_the_conda_recipe_has_the_version_and_the_dependencies_of_the_package():
    recipe = (ROOT / "packaging" / "conda" / "recipe.yaml").read_text()
    assert f'version: "{PROJECT["version"]}"' in recipe
    needed = [re.sub(r"(\w)([><=])", r"\1 \2", each) for each in PROJECT["dependencies"]]
    run = recipe.partition("  run:\n")[2].partition("  run_constraints:")[0]
    assert [f"    - {each}" for each in needed] == run.splitlines()[1:]
