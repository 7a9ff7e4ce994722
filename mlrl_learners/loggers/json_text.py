"""JSON of records and results, as files and the command line write it.

Arrays and scalars of NumPy become numbers; other values that JSON does not know are rejected, and
so are infinities and NaN, because JSON has neither.
"""

import json
import math
from collections.abc import Iterator, Mapping

from mlrl_envs.errors import ContractError
from mlrl_learners.errors import NumericsError

__all__ = ["json_text"]


def json_text(value: Mapping[str, object], source: str, *, indent: int | None = None) -> str:
    """Return a record as JSON in ASCII.

    Args:
        value: The record.
        source: What is written, for messages.
        indent: Spaces of a level; None for one line.

    Raises:
        ContractError: If it has a value that JSON does not know.
        NumericsError: If a number is not finite; the message names the places.
    """
    try:
        return json.dumps(value, allow_nan=False, default=_as_json, indent=indent)
    except TypeError as error:
        raise ContractError(f"{source}: {error}") from error
    except ValueError as error:
        names = sorted(_not_finite(value))
        if not names:
            raise
        raise NumericsError(f"{source}: not finite: {', '.join(names)}") from error


def _as_json(value: object) -> object:
    """Return the numbers of an array or a NumPy scalar, such as own environments put in infos."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"infos and metrics must be JSON values, got {value!r}"[:500])


def _not_finite(value: object, name: str = "") -> Iterator[str]:
    if isinstance(value, float) and not math.isfinite(value):
        yield name
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _not_finite(inner, f"{name}.{key}" if name else str(key))
    elif isinstance(value, list | tuple):
        for index, inner in enumerate(value):
            yield from _not_finite(inner, f"{name}[{index}]")
    elif hasattr(value, "tolist"):
        yield from _not_finite(value.tolist(), name)
