"""Model execution: everything that runs a causal language model, behind the class `Engine`.

Importing this package loads nothing heavy; its names are imported when they are first used.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mlrl_learners.engine.batching import micro_batches, num_tokens
    from mlrl_learners.engine.drawn_tokens import SampledTokens
    from mlrl_learners.engine.engine import Engine
    from mlrl_learners.engine.sampling import SamplingConfig
    from mlrl_learners.engine.selection import ExecutionMode, Precision
    from mlrl_learners.engine.token_rows import TokenRow

__all__ = [
    "Engine",
    "ExecutionMode",
    "Precision",
    "SampledTokens",
    "SamplingConfig",
    "TokenRow",
    "micro_batches",
    "num_tokens",
]

_MODULES = {
    "Engine": "engine",
    "ExecutionMode": "selection",
    "Precision": "selection",
    "SampledTokens": "drawn_tokens",
    "SamplingConfig": "sampling",
    "TokenRow": "token_rows",
    "micro_batches": "batching",
    "num_tokens": "batching",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - a class or a function
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
