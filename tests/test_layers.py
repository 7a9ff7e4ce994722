"""Imports point from higher to lower layers, and nothing heavy is imported before it is used."""

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.structure import Import, cycles, edges, read_modules

ROOT = Path(__file__).parent.parent

# The layers of both packages, lowest first. A part imports its own layer and those below it; the
# parts of one set never import each other.
LAYERS = {
    "mlrl_envs": (
        (
            "services",
            "types",
            "errors",
            "hosts",
            "references",
            "reference_actions",
            "spaces",
            "parsing",
        ),
        ("tasks", "sandbox"),
        ("config", "programs", "tools"),
        ({"datasets", "rewards", "feedback"},),
        ("shell",),
        ("workflows",),
        ("models",),
        ("envs", "games"),
        ("interop",),
        ("registration", "testing", "auditing"),
        ("naming",),
        ("mixtures",),
        ("serve",),
        ("",),  # mlrl_envs/__init__.py
    ),
    "mlrl_learners": (
        ("types", "errors", "seeding", "progress"),
        ("config", "processes", "functional", "figures", "loggers", "registry"),
        ("runs",),
        ("selfplay",),
        ("engine", "play"),
        ("policies",),
        ("actors", "algorithms"),
        ("evaluation", "interop", "cluster"),
        ("training",),
        ("testing", "bench", "report", "metric_modules"),
        ("monitor",),
        ("serving",),
        ("cli",),
        ("", "__main__"),
    ),
}
HEAVY = ("torch", "transformers", "datasets", "wandb", "peft", "accelerate")
# Parts of mlrl_learners that import torch and such when they are imported.
MODEL_PARTS = (
    "algorithms",
    "cluster",
    "engine",
    "functional",
    "policies",
    "serving",
    "testing",
    "loggers",
    "metric_modules",
)
PUBLIC_TO_LEARNERS = (
    "mlrl_envs",
    "mlrl_envs.config",
    "mlrl_envs.models",
    "mlrl_envs.errors",
    "mlrl_envs.games",
    "mlrl_envs.hosts",
    "mlrl_envs.mixtures",
    "mlrl_envs.naming",
    "mlrl_envs.references",
    "mlrl_envs.reference_actions",
    "mlrl_envs.sandbox",
    "mlrl_envs.serve",
    "mlrl_envs.types",
    "mlrl_envs.workflows",
)
MAX_REWARD_IMPORTS = 10  # between the subpackages of mlrl_envs.rewards


def breaches(root: Path) -> list[str]:
    """Return every import under `root` that breaks a rule."""
    return [
        f"{module.name} imports {each.name}: {rule}"
        for module in read_modules(root).values()
        for each in module.imports
        if each.when != "typing" and (rule := _broken_rule(module.name, each))
    ]


def _broken_rule(module: str, imported: Import) -> str:
    package, part = _split(module)
    top, other = _split(imported.name)
    if top == "benchmarks":
        return "nothing imports benchmarks"
    if top in HEAVY:
        return _heavy_rule(package, part, top, imported.when)
    if (package, top) == ("mlrl_envs", "mlrl_learners"):
        return "environments do not import learners"
    if (package, top) == ("mlrl_learners", "mlrl_envs") and not _is_public(imported.name):
        return f"learners import only {', '.join(PUBLIC_TO_LEARNERS)}"
    return _order_rule(package, part, other) if top == package else ""


def _order_rule(package: str, part: str, imported: str) -> str:
    if imported not in _parts(package):
        imported = ""  # an attribute of the package itself
    siblings = [entry for layer in LAYERS[package] for entry in layer if isinstance(entry, set)]
    if _layer(package, imported) > _layer(package, part):
        return f"{imported or package} is above {part}"
    if part != imported and any({part, imported} <= entry for entry in siblings):
        return "siblings never import each other"
    return ""


def _heavy_rule(package: str, part: str, top: str, when: str) -> str:
    if package == "mlrl_envs" and not (when == "use" and (top == "datasets" or part == "models")):
        return "environments load nothing heavy"
    if package == "mlrl_learners" and part not in MODEL_PARTS and when == "import":
        return f"{part or package} loads nothing heavy at import"
    return ""


def _is_public(name: str) -> bool:
    # `from mlrl_envs import make` arrives as mlrl_envs.make: a name inside a public module, unless
    # a file of that name exists.
    parent, _, leaf = name.rpartition(".")
    is_module = (ROOT / "mlrl_envs" / f"{leaf}.py").exists() or leaf in _parts("mlrl_envs")
    return name in PUBLIC_TO_LEARNERS or (
        parent in PUBLIC_TO_LEARNERS and not (parent == "mlrl_envs" and is_module)
    )


def _split(name: str) -> tuple[str, str]:
    """Return the package of a module and the part of it: a module or subpackage at its top."""
    package, part, *_ = [*name.split("."), ""]
    return package, part


def _parts(package: str) -> set[str]:
    entries = [entry for layer in LAYERS[package] for entry in layer]
    return {part for entry in entries for part in (entry if isinstance(entry, set) else {entry})}


def _layer(package: str, part: str) -> int:
    for number, layer in enumerate(LAYERS[package]):
        if any(part == entry or (isinstance(entry, set) and part in entry) for entry in layer):
            return number
    raise AssertionError(f"give {package}.{part} a layer in tests/test_layers.py")


LOADED = """
import sys
sys.path.insert(0, {root!r})
import mlrl_envs, mlrl_learners
heavy = [name for name in {heavy!r} if name in sys.modules]
sys.exit(", ".join(heavy))
"""


def heavy_modules(root: Path) -> str:
    """Import both packages in a fresh interpreter and return what heavy modules that loads."""
    code = LOADED.format(root=str(root), heavy=HEAVY)
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stderr.strip()


@pytest.fixture(scope="module")
def modules():
    return read_modules(ROOT)


def test_imports_point_one_way():
    assert breaches(ROOT) == []


def test_there_is_no_import_cycle(modules):
    assert cycles(edges(modules, typing=True)) == []


def test_every_module_at_the_top_is_in_the_layout(modules):
    for module in modules.values():
        package, part = _split(module.name)
        _layer(package, part)


def test_few_imports_go_between_the_subpackages_of_rewards(modules):
    folder = ROOT / "mlrl_envs/rewards"
    packages = {
        name: module.path.relative_to(folder).parts[0]
        for name, module in modules.items()
        if module.path.is_relative_to(folder) and module.path.parent != folder
    }
    crossing = [
        (importer, imported)
        for importer, targets in edges(modules).items()
        for imported in targets
        if importer in packages and packages.get(imported, packages[importer]) != packages[importer]
    ]
    assert len(crossing) <= MAX_REWARD_IMPORTS, crossing


def test_importing_both_packages_loads_nothing_heavy():
    assert heavy_modules(ROOT) == ""


BROKEN = {
    "mlrl_envs/types.py": ("from mlrl_envs.shell.env import X", "shell is above types"),
    "mlrl_envs/parsing/text.py": ("from mlrl_envs import rewards", "rewards is above parsing"),
    "mlrl_envs/rewards/math/score.py": ("from mlrl_envs.feedback import plain", "siblings never"),
    "mlrl_envs/datasets/x.py": ("from ..rewards.math import score", "siblings never"),
    "mlrl_envs/shell/env.py": ("from mlrl_envs.envs.story import X", "envs is above shell"),
    "mlrl_envs/shell/runner.py": ("def f():\n    from mlrl_envs import models", "models is above"),
    "mlrl_envs/rewards/x.py": ("from mlrl_envs.models import Endpoint", "models is above rewards"),
    "mlrl_envs/envs/story.py": ("import torch", "load nothing heavy"),
    "mlrl_envs/envs/code.py": ("def f():\n    import transformers", "load nothing heavy"),
    "mlrl_envs/datasets/y.py": ("import datasets", "load nothing heavy"),
    "mlrl_envs/models/scorers/x.py": ("import torch", "load nothing heavy"),
    "mlrl_envs/models/x.py": ("if True:\n    import transformers", "load nothing heavy"),
    "mlrl_envs/rewards/y.py": ("def f():\n    import torch", "load nothing heavy"),
    "mlrl_envs/shell/vector.py": ("def f():\n    import mlrl_learners", "do not import learners"),
    "mlrl_learners/training/loop.py": ("import torch.nn", "loads nothing heavy"),
    "mlrl_learners/cli/x.py": ("if True:\n    from torch import nn", "loads nothing heavy"),
    "mlrl_learners/play/rollout.py": ("from mlrl_envs.shell.env import X", "learners import only"),
    "mlrl_learners/policies/p.py": ("from mlrl_envs import parsing", "learners import only"),
    "mlrl_learners/engine/e.py": ("from mlrl_learners.policies import p", "policies is above"),
    "mlrl_learners/runs/r.py": ("from mlrl_learners.play.rollout import X", "play is above runs"),
    "mlrl_learners/evaluation/evaluate.py": ("import benchmarks.suites", "nothing imports"),
}
SOUND = {
    "mlrl_envs/types.py": "if TYPE_CHECKING:\n    from mlrl_envs.sandbox import Program",
    "mlrl_envs/datasets/z.py": "def f():\n    from datasets import load_dataset",
    "mlrl_envs/models/scorers/x.py": "def f():\n    import torch",
    "mlrl_envs/rewards/math/score.py": "from mlrl_envs.rewards.turn_gain import pay",
    "mlrl_envs/envs/code.py": "from mlrl_envs.shell.env import X\nfrom mlrl_envs.feedback import f",
    "mlrl_envs/__init__.py": "from mlrl_envs.envs import story",
    "mlrl_learners/training/loop.py": "def f():\n    import torch",
    "mlrl_learners/play/rollout.py": "import mlrl_envs\nfrom mlrl_envs.errors import InfraError",
    "mlrl_learners/evaluation/e.py": "from mlrl_envs import make\nfrom mlrl_envs.sandbox import p",
    "mlrl_learners/policies/p.py": "import torch",
    "mlrl_learners/algorithms/a.py": "from mlrl_learners.engine import Engine",
}


def _write(root: Path, name: str, source: str) -> None:
    file = root / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(source + "\n")


@pytest.mark.parametrize("name", BROKEN)
def test_broken_import_is_found(tmp_path, name):
    source, rule = BROKEN[name]
    _write(tmp_path, name, source)
    assert len(breaches(tmp_path)) == 1
    assert rule in breaches(tmp_path)[0]


@pytest.mark.parametrize("name", SOUND)
def test_sound_import_is_let_through(tmp_path, name):
    _write(tmp_path, name, SOUND[name])
    assert breaches(tmp_path) == []


def test_import_cycle_is_found(tmp_path):
    _write(tmp_path, "mlrl_envs/types.py", "from mlrl_envs import errors")
    _write(tmp_path, "mlrl_envs/errors.py", "from mlrl_envs.types import X")
    assert cycles(edges(read_modules(tmp_path))) == [{"mlrl_envs.types", "mlrl_envs.errors"}]


def test_heavy_import_is_found(tmp_path):
    _write(tmp_path, "mlrl_envs/__init__.py", "import wandb")
    _write(tmp_path, "mlrl_learners/__init__.py", "import transformers")
    _write(tmp_path, "wandb.py", "")
    _write(tmp_path, "transformers.py", "")
    assert heavy_modules(tmp_path) == "transformers, wandb"
