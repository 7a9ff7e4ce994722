"""Imports point one way, and nothing heavy is imported before it is used."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

# Parts of mlrl_envs, lowest first; a part imports what is below it, and its own kind.
# Those in one set never import each other.
LAYERS = (
    ("types", "errors", "syntax"),
    ("tasks",),
    (
        "config",
        "spaces",
        "arguments",
        "infos",
        "parsing",
        "answers",
        "assembly",
        "assignment",
        "methods",
        "splice",
        "endpoint",
        "usage",
        "repacking",
        "transcript",
        "runner",
        "sandbox",
        "tools",
    ),
    ({"datasets", "rewards", "feedback"},),
    ("base", "fingerprint", "stepping", "vector", "aec", "testing"),
    ("envs",),
    ("registration", "serve"),
    ("",),  # mlrl_envs/__init__.py
)
HEAVY = ("torch", "transformers", "datasets", "wandb", "peft", "accelerate")
PUBLIC_TO_LEARNERS = ("mlrl_envs", "mlrl_envs.endpoint", "mlrl_envs.errors", "mlrl_envs.sandbox")


def breaches(root: Path) -> list[str]:
    """Return every import under `root` that breaks a rule."""
    found = []
    for file in sorted([*root.glob("mlrl_envs/**/*.py"), *root.glob("mlrl_learners/**/*.py")]):
        module = ".".join(file.relative_to(root).with_suffix("").parts).removesuffix(".__init__")
        for name, moment in _imports(ast.parse(file.read_text()), module, file):
            # algorithms/, policies/ and such may be heavy: they are loaded when they are used.
            is_part = file.parent.parent == root / "mlrl_learners"
            when = "use" if is_part and moment == "import" else moment
            if when != "typing" and (rule := _broken_rule(module, name, when)):
                found.append(f"{module} imports {name}: {rule}")
    return found


def _broken_rule(module: str, name: str, when: str) -> str:
    package = module.split(".", maxsplit=1)[0]
    top = name.split(".", maxsplit=1)[0]
    if top == "benchmarks":
        return "benchmarks is imported by nobody"
    if module.startswith("mlrl_learners.templates."):
        return ""  # other people's packages, not yet theirs
    if package == "mlrl_envs":
        return _broken_rule_of_envs(module, name, when)
    if top == "mlrl_envs" and not _is_public(name):
        return f"learners see only {', '.join(PUBLIC_TO_LEARNERS)}"
    if top in HEAVY and when == "import":
        return "top-level modules of mlrl_learners load nothing heavy"
    return ""


def _broken_rule_of_envs(module: str, name: str, when: str) -> str:
    top = name.split(".", maxsplit=1)[0]
    if top == "mlrl_learners":
        return "environments know nothing of learners"
    if top in HEAVY and not (top == "datasets" and when == "use"):
        return "environments load nothing heavy"
    if top != "mlrl_envs":
        return ""
    importer, imported = _part(module), _part(name)
    if importer == imported:
        return ""
    if _layer(imported) > _layer(importer):
        return f"{imported or 'mlrl_envs'} is above {importer}"
    siblings = next(part for parts in LAYERS for part in parts if isinstance(part, set))
    return "siblings never import each other" if {importer, imported} <= siblings else ""


def _is_public(name: str) -> bool:
    # `from mlrl_envs.errors import X` arrives as mlrl_envs.errors.X, `from mlrl_envs import make`
    # as mlrl_envs.make: a public module, or a name inside one.
    parent, _, leaf = name.rpartition(".")
    is_module = (ROOT / "mlrl_envs" / f"{leaf}.py").exists() or leaf in ("envs", "rewards")
    return name in PUBLIC_TO_LEARNERS or (
        parent in PUBLIC_TO_LEARNERS and not (parent == "mlrl_envs" and is_module)
    )


def _part(name: str) -> str:
    return [*name.split("."), ""][1]


def _layer(part: str) -> int:
    for number, parts in enumerate(LAYERS):
        if any(part == entry or (isinstance(entry, set) and part in entry) for entry in parts):
            return number
    raise AssertionError(f"give mlrl_envs.{part} a layer in tests/test_house.py")


def _imports(tree: ast.Module, module: str, file: Path) -> Iterator[tuple[str, str]]:
    """Yield each imported name, and whether it is for `import`, for `typing`, or on first `use`."""
    yield from _walk(tree, module, file, "import")


def _walk(node: ast.AST, module: str, file: Path, when: str) -> Iterator[tuple[str, str]]:
    for child in ast.iter_child_nodes(node):
        inner = when
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            inner = "use"
        elif isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            inner = "typing"
        if isinstance(child, ast.Import):
            yield from ((alias.name, when) for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            base = _absolute(child, module, file)
            yield from ((_imported(base, alias.name, file), when) for alias in child.names)
        yield from _walk(child, module, file, inner)


def _absolute(node: ast.ImportFrom, module: str, file: Path) -> str:
    if not node.level:
        return node.module or ""
    package = module.split(".") if file.name == "__init__.py" else module.split(".")[:-1]
    return ".".join([*package[: len(package) - node.level + 1], *filter(None, [node.module])])


def _imported(base: str, name: str, file: Path) -> str:
    # Inside our packages `from mlrl_envs import base` names a module, elsewhere an attribute.
    if base.split(".", maxsplit=1)[0] in ("mlrl_envs", "mlrl_learners"):
        return f"{base}.{name}" if base.count(".") < 2 else base
    return base


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


def test_imports_point_one_way():
    assert breaches(ROOT) == []


def test_importing_both_packages_loads_nothing_heavy():
    assert heavy_modules(ROOT) == ""


BROKEN = {
    "mlrl_envs/types.py": ("from mlrl_envs.base import X", "base is above types"),
    "mlrl_envs/parsing.py": ("from mlrl_envs import rewards", "rewards is above parsing"),
    "mlrl_envs/rewards/code.py": ("from mlrl_envs.feedback import plain", "siblings never"),
    "mlrl_envs/datasets/x.py": ("from ..rewards.code import score", "siblings never"),
    "mlrl_envs/base.py": ("from mlrl_envs.envs.story import X", "envs is above base"),
    "mlrl_envs/envs/story.py": ("import torch", "load nothing heavy"),
    "mlrl_envs/envs/code.py": ("def f():\n    import transformers", "load nothing heavy"),
    "mlrl_envs/datasets/y.py": ("import datasets", "load nothing heavy"),
    "mlrl_envs/vector.py": ("def f():\n    import mlrl_learners", "know nothing of learners"),
    "mlrl_learners/train.py": ("import torch.nn", "load nothing heavy"),
    "mlrl_learners/cli.py": ("if True:\n    from torch import nn", "load nothing heavy"),
    "mlrl_learners/rollout.py": ("from mlrl_envs.base import X", "learners see only"),
    "mlrl_learners/policies/p.py": ("from mlrl_envs import parsing", "learners see only"),
    "mlrl_learners/evaluate.py": ("import benchmarks.suites", "imported by nobody"),
}
SOUND = {
    "mlrl_envs/types.py": "if TYPE_CHECKING:\n    from mlrl_envs.sandbox import Program",
    "mlrl_envs/datasets/z.py": "def f():\n    from datasets import load_dataset",
    "mlrl_envs/rewards/code.py": "from mlrl_envs.rewards.shaping import pay",
    "mlrl_envs/envs/code.py": "from mlrl_envs.base import X\nfrom mlrl_envs.feedback import f",
    "mlrl_envs/__init__.py": "from mlrl_envs.envs import story",
    "mlrl_learners/train.py": "def f():\n    import torch",
    "mlrl_learners/rollout.py": "import mlrl_envs\nfrom mlrl_envs.errors import InfraError",
    "mlrl_learners/evaluate.py": "from mlrl_envs import make\nfrom mlrl_envs.sandbox import probe",
    "mlrl_learners/policies/p.py": "import torch",
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


def test_heavy_import_is_found(tmp_path):
    _write(tmp_path, "mlrl_envs/__init__.py", "import wandb")
    _write(tmp_path, "mlrl_learners/__init__.py", "import transformers")
    _write(tmp_path, "wandb.py", "")
    _write(tmp_path, "transformers.py", "")
    assert heavy_modules(tmp_path) == "transformers, wandb"
