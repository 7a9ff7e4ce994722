"""Imports point one way, and nothing heavy is imported before it is used."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import mlrl_envs

ROOT = Path(__file__).parent.parent
LAYERS = (
    {"errors"},
    {"types"},
    {"spaces", "parsing", "sandbox"},
    {"assembly"},
    {"usage"},
    {"datasets", "rewards", "feedback"},
    {"config", "transcript"},
    {"base"},
    {"stepping", "aec"},
    {"vector"},
    {"envs"},
    {"registration", "testing"},
    {"__init__"},
)
HEAVY = ("torch", "transformers", "datasets", "wandb")
NEVER_IN_ENVS = ("torch", "transformers", "mlrl_learners", "benchmarks")
TORCH_FOLDERS = ("algorithms", "functional", "policies")
PUBLIC_MODULES = ("mlrl_envs", "mlrl_envs.errors", "mlrl_envs.sandbox")


def imports(source: str, *, lazy: bool = True) -> Iterator[tuple[str, list[str]]]:
    """Yield modules and the names taken from them; what is for type checkers only is left out."""
    todo: list[ast.AST] = [ast.parse(source)]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Import):
            yield from ((alias.name, []) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module, [alias.name for alias in node.names]
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            todo += node.orelse
        elif lazy or not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            todo += ast.iter_child_nodes(node)


def layer(unit: str) -> int:
    return next((n for n, units in enumerate(LAYERS) if unit in units), -1)


def env_violations(root: Path) -> Iterator[str]:
    for file in sorted((root / "mlrl_envs").rglob("*.py")):
        path = file.relative_to(root)
        unit = path.parts[1].removesuffix(".py")
        if layer(unit) < 0:
            yield f"{path}: give {unit} a place in LAYERS"
        for module, names in imports(file.read_text("utf-8")):
            top = module.split(".")[0]
            if top in NEVER_IN_ENVS:
                yield f"{path}: imports {module}"
            if top != "mlrl_envs":
                continue
            targets = module.split(".")[1:2] or [name for name in names if layer(name) >= 0]
            for target in targets:
                if target != unit and layer(target) >= layer(unit):
                    yield f"{path}: {unit} imports {target}, which is not below it"
        for module, _ in imports(file.read_text("utf-8"), lazy=False):
            if module.split(".")[0] in HEAVY:
                yield f"{path}: imports {module} at import time"


def learner_violations(root: Path) -> Iterator[str]:
    for file in sorted((root / "mlrl_learners").rglob("*.py")):
        path = file.relative_to(root)
        for module, names in imports(file.read_text("utf-8")):
            top = module.split(".")[0]
            if top == "benchmarks":
                yield f"{path}: imports {module}"
            if top == "mlrl_envs" and module not in PUBLIC_MODULES:
                yield f"{path}: imports {module}, which is not public"
            hidden = set(names) - set(mlrl_envs.__all__) if module == "mlrl_envs" else set()
            if hidden:
                yield f"{path}: takes {', '.join(sorted(hidden))} from mlrl_envs, not public"
        if path.parts[1] in TORCH_FOLDERS:
            continue
        for module, _ in imports(file.read_text("utf-8"), lazy=False):
            if module.split(".")[0] in HEAVY:
                yield f"{path}: imports {module} at import time"


def test_environments_import_only_what_is_below_them():
    assert list(env_violations(ROOT)) == []


def test_learners_import_public_names_of_environments_and_torch_only_in_their_folders():
    assert list(learner_violations(ROOT)) == []


@pytest.mark.parametrize(
    ("path", "line", "found"),
    [
        ("mlrl_envs/types.py", "from mlrl_envs.base import TextParallelEnv", "not below"),
        ("mlrl_envs/rewards/a.py", "from mlrl_envs.datasets import x", "not below"),
        ("mlrl_envs/envs/a.py", "from mlrl_envs import registration", "not below"),
        ("mlrl_envs/base.py", "import torch.nn", "imports torch.nn"),
        ("mlrl_envs/base.py", "def f():\n    import mlrl_learners", "imports mlrl_learners"),
        ("mlrl_envs/datasets/a.py", "import datasets", "at import time"),
        ("mlrl_envs/novelty.py", "", "LAYERS"),
        ("mlrl_learners/train.py", "import torch", "at import time"),
        ("mlrl_learners/train.py", "from mlrl_envs.base import step_many", "not public"),
        ("mlrl_learners/train.py", "from mlrl_envs import _secret", "not public"),
        ("mlrl_learners/cli/a.py", "import benchmarks.demo", "imports benchmarks"),
    ],
)
def test_a_broken_rule_is_found(path, line, found, tmp_path):
    file = tmp_path / path
    file.parent.mkdir(parents=True)
    file.write_text(line)
    violations = [*env_violations(tmp_path), *learner_violations(tmp_path)]
    assert any(found in violation for violation in violations)


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("mlrl_envs/base.py", "from mlrl_envs.types import Task"),
        ("mlrl_envs/datasets/a.py", "def f():\n    import datasets"),
        ("mlrl_envs/types.py", "if TYPE_CHECKING:\n    from mlrl_envs.sandbox import Sandbox"),
        ("mlrl_learners/train.py", "def f():\n    import torch"),
        ("mlrl_learners/policies/a.py", "import torch"),
        ("mlrl_learners/train.py", "from mlrl_envs.sandbox import probe"),
    ],
)
def test_what_is_allowed_is_not_reported(path, line, tmp_path):
    file = tmp_path / path
    file.parent.mkdir(parents=True)
    file.write_text(line)
    assert [*env_violations(tmp_path), *learner_violations(tmp_path)] == []


@pytest.mark.parametrize("package", ["mlrl_envs", "mlrl_learners", "mlrl_learners.cli"])
def test_importing_loads_nothing_heavy(package):
    assert loaded(f"import {package}") == "[]"


def test_a_heavy_import_would_be_noticed():
    assert "wandb" in loaded("import types, sys; sys.modules['wandb'] = types")


def loaded(statement: str) -> str:
    script = f"import sys\n{statement}\nprint([m for m in {HEAVY} if m in sys.modules])"
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT
    )
    return result.stdout.strip()
