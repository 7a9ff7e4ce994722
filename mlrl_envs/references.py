"""References to objects in modules and in Python files: `module:name` and `file.py:name`.

Command lines, configurations and `mlrl_envs.make` take them, so that a script needs no package. A
file is imported once, under its stem if no other module has that name; its folder is appended to
`sys.path`, so that it can import files beside it.
"""

import hashlib
import importlib
import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from mlrl_envs.errors import InvalidArgumentError, MlrlError, unknown_name

__all__ = ["absolute", "import_module", "import_reference", "is_reference", "reference_to", "same"]

_REFERENCE = re.compile(r"(?P<module>[^:]+\.py|[A-Za-z_][\w.]*):(?P<name>[A-Za-z_]\w*)")


def is_reference(word: str) -> bool:
    """Return whether a word has the form `module:name` or `file.py:name`."""
    return _REFERENCE.fullmatch(word) is not None


def import_reference(reference: str) -> Any:  # noqa: ANN401  any object can be named
    """Import the object that `module:name` or `file.py:name` refers to.

    Raises:
        UnknownNameError: If the module has no such name; the message suggests the nearest one.
        InvalidArgumentError: If the module or file is not found, or cannot be imported.
    """
    place, _, name = reference.rpartition(":")
    module = import_module(place)
    if not hasattr(module, name):
        names = [each for each in vars(module) if not each.startswith("_")]
        raise unknown_name(f"name in {place}:", name, names)
    return getattr(module, name)


def import_module(place: str) -> ModuleType:
    """Import a module by its dotted name, or a Python file by its path.

    Raises:
        InvalidArgumentError: If it is not found, or its code raises an error.
    """
    try:
        return _import_file(Path(place)) if place.endswith(".py") else _import_name(place)
    except MlrlError:
        raise
    except Exception as error:
        raise InvalidArgumentError(
            f"{place} cannot be imported: {type(error).__name__}: {error}"
        ) from error


def absolute(reference: str) -> str:
    """Return a reference, or a path of a file, with the path made absolute if the file exists."""
    place, colon, name = reference.partition(".py:")
    path = Path(f"{place}.py" if colon else reference)
    if path.suffix != ".py" or not path.is_file():
        return reference
    return f"{path.resolve()}{':' * bool(colon)}{name}"


def reference_to(value: Any) -> str:  # noqa: ANN401  a class or a function
    """Return `module:name`, or `file.py:name` for what a script defines."""
    module = getattr(value, "__module__", None) or type(value).__module__
    name = getattr(value, "__qualname__", type(value).__qualname__)
    file = getattr(sys.modules.get(module), "__file__", None)
    is_script = module == "__main__" or getattr(sys.modules.get(module), "_is_script", False)
    return f"{Path(file).resolve() if file and is_script else module}:{name}"


def same(one: object, other: object) -> bool:
    """Return whether two factories are equal, where one may be the reference to the other."""
    if one == other:
        return True
    names = [each if isinstance(each, str) else _name_of(each) for each in (one, other)]
    return names[0] == names[1] and any(isinstance(each, str) for each in (one, other))


def _name_of(value: Any) -> str:  # noqa: ANN401  a class or a function
    return f"{getattr(value, '__module__', '')}:{getattr(value, '__qualname__', '')}"


def _import_name(place: str) -> ModuleType:
    here = str(Path.cwd())
    if here not in sys.path and "" not in sys.path:  # `mlrl` is started without it
        sys.path.append(here)
    try:
        return importlib.import_module(place)
    except ModuleNotFoundError as error:
        if error.name != place.partition(".")[0] and error.name != place:
            raise
        file = "" if not Path(f"{place}.py").is_file() else f"; did you mean {f'{place}.py'!r}?"
        raise InvalidArgumentError(f"there is no module {place!r}{file}") from error


def _import_file(path: Path) -> ModuleType:
    path = path.expanduser().resolve()
    if not path.is_file():
        beside = [str(each) for each in path.parent.glob("*.py")]
        raise unknown_name("file", str(path), beside)
    for name in (path.stem, f"{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"):
        known = sys.modules.get(name)
        if known is not None and getattr(known, "__file__", None) == str(path):
            return known
        if known is None and (name != path.stem or _is_free(name, path)):
            return _load(name, path)
    raise InvalidArgumentError(f"{path} cannot be imported under the name {path.stem!r}")


def _is_free(name: str, path: Path) -> bool:
    """Return whether no other module would be imported by a name."""
    try:
        found = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return False
    return found is None or found.origin == str(path)


def _load(name: str, path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise InvalidArgumentError(f"{path} is not a Python file")
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))
    module = importlib.util.module_from_spec(spec)
    module.__dict__["_is_script"] = True
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
