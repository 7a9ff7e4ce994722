"""`mlrl init`: write a template package with an environment or a learner."""

import argparse
import importlib.util
import keyword
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import mlrl_envs
from mlrl_learners.errors import ConfigError, RunDirError
from mlrl_learners.registry import registry

__all__ = ["KINDS", "SECTIONS", "add_arguments", "run", "write_package"]

SECTIONS: tuple[str, ...] = ()
KINDS = ("env", "learner")
TEMPLATES = Path(__file__).parent.parent / "templates"

_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
_RESERVED = ("mlrl", "mlrl_envs", "mlrl_learners", "test", "tests")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("kind", choices=KINDS, help="what the package provides")
    parser.add_argument("name", help="name of the package; must be importable")
    parser.add_argument("--out", type=Path, help="folder to write; default: NAME")


def run(arguments: argparse.Namespace, _overrides: Sequence[str]) -> int:
    """Write the package and print the next commands."""
    folder = arguments.out or Path(arguments.name)
    for path in write_package(arguments.kind, arguments.name, folder):
        print(path)
    print(f"next: pip install -e {folder} && python -m pytest {folder}", file=sys.stderr)
    return 0


def write_package(kind: str, name: str, folder: Path) -> list[Path]:
    """Write a package that can be installed, is found by mlrl, and passes its own tests.

    Args:
        kind: One of `KINDS`.
        name: Name of the module; also the name of the learner, or part of the environment id.
        folder: Folder to write; it must be empty or not exist.

    Returns:
        The written files, sorted.

    Raises:
        ConfigError: If the name is not a valid module name, or is taken.
        RunDirError: If the folder is not empty, or cannot be written.
    """
    _check_name(kind, name)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise RunDirError(f"{str(folder)!r} is there already; choose another --out")
    words = _words(kind, name)
    written = []
    try:
        for source in sorted((TEMPLATES / kind).rglob("*")):
            if source.is_file() and "__pycache__" not in source.parts:
                relative = source.relative_to(TEMPLATES / kind)
                target = folder / _renamed(str(relative), words)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(_renamed(source.read_text("utf-8"), words), "utf-8")
                written.append(target)
    except OSError as error:
        raise RunDirError(f"cannot write {str(folder)!r}: {error}") from error
    return written


def _check_name(kind: str, name: str) -> None:
    if not _is_name(name):
        words = re.sub("[^a-z0-9]+", "_", name.lower()).strip("_")
        suggestion = words if _is_name(words) else f"my_{words or kind}"
        raise ConfigError(f"a name must be lower-case words joined by _, such as {suggestion!r}")
    is_taken = (
        name in registry if kind == "learner" else f"me/{_dashed(name)}-v0" in mlrl_envs.registry
    )
    if is_taken or name in _RESERVED or _is_module(name):
        raise ConfigError(f"the name {name!r} is taken; choose another, such as 'my_{name}'")


def _is_module(name: str) -> bool:
    """Return whether a module of this name exists; a folder without modules does not count."""
    spec = importlib.util.find_spec(name)
    return name in sys.stdlib_module_names or (spec is not None and spec.origin is not None)


def _is_name(text: str) -> bool:
    return _NAME.fullmatch(text) is not None and not keyword.iskeyword(text)


def _words(kind: str, name: str) -> Mapping[str, str]:
    """Return the replacements of the template name in its three spellings.

    A template is a complete package named `my_env` or `my_learner`.
    """
    own = f"my_{kind}"
    return {own: name, _dashed(own): _dashed(name), _camel(own): _camel(name)}


def _renamed(text: str, words: Mapping[str, str]) -> str:
    return re.sub("|".join(words), lambda match: words[match[0]], text)


def _dashed(name: str) -> str:
    return name.replace("_", "-")


def _camel(name: str) -> str:
    return "".join(word.capitalize() for word in name.split("_"))
