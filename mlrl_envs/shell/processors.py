"""Processors of rewards: `scale`, `shift`, `clamp`, `sigmoid`, `identity`, and chains of them.

A chain is a list of names and of mappings with one name and its arguments, such as
`[{"scale": 2}, {"clamp": [0, 1]}, "sigmoid"]`. Processors are monotone, so that the range of a
reward follows from that of what goes in.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

from mlrl_envs.config import check_number
from mlrl_envs.errors import InvalidArgumentError, unknown_name

__all__ = ["PROCESSORS", "Chain", "as_chain", "process", "process_range"]

PROCESSORS: dict[str, tuple[int, Callable[..., float]]] = {
    "scale": (1, lambda value, factor: value * factor),
    "shift": (1, lambda value, amount: value + amount),
    "clamp": (2, lambda value, low, high: min(max(value, low), high)),
    "sigmoid": (0, lambda value: 0.5 * (1.0 + math.tanh(value / 2.0))),
    "identity": (0, lambda value: value),
}
"""Number of arguments, and the function of a reward and these arguments."""

Chain = tuple[tuple[str, tuple[float, ...]], ...]
"""Names with arguments, in the order in which they are applied."""


def as_chain(value: object) -> Chain:
    """Return a checked chain from a name, a mapping, or a list of both.

    Raises:
        UnknownNameError: If there is no such processor.
        InvalidArgumentError: If the arguments are not as many finite numbers as it takes, or the
            bounds of `clamp` are not in order.
    """
    items = value if isinstance(value, list | tuple) else [value]
    return tuple(_step(item) for item in items)


def process(chain: Chain, reward: float) -> float:
    """Return a reward after all processors."""
    for name, arguments in chain:
        reward = PROCESSORS[name][1](reward, *arguments)
    return reward


def process_range(chain: Chain, bounds: tuple[float, float]) -> tuple[float, float]:
    """Return lowest and highest reward after all processors."""
    ends = [process(chain, end) for end in bounds]
    return min(ends), max(ends)


def _step(item: object) -> tuple[str, tuple[float, ...]]:
    if isinstance(item, dict) and len(item) == 1:
        ((name, given),) = item.items()
        given = () if given is None else given  # `sigmoid:` in YAML
    elif isinstance(item, str):
        name, given = item, ()
    else:
        raise InvalidArgumentError(
            f"a processor is a name or a mapping of one, several are a list such as "
            f"[sigmoid, {{scale: 2}}], got {item!r}"
        )
    if name not in PROCESSORS:
        raise unknown_name("processor", name, PROCESSORS)
    arguments = tuple(given) if isinstance(given, list | tuple) else (given,)
    return name, _checked(name, arguments)


def _checked(name: str, arguments: Sequence[Any]) -> tuple[float, ...]:
    count = PROCESSORS[name][0]
    if len(arguments) != count:
        numbers = f"{count} number{'' if count == 1 else 's'}"
        raise InvalidArgumentError(f"{name} takes {numbers}, got {list(arguments)}")
    for each in arguments:
        check_number(name, each)
    if name == "clamp" and arguments[0] > arguments[1]:
        raise InvalidArgumentError(f"clamp takes low and high, got {list(arguments)}")
    return tuple(float(each) for each in arguments)
