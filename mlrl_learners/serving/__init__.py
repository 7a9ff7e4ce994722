"""Policy servers: trained runs and models behind an OpenAI-compatible HTTP API.

Requires the extras `mlrl[learners,serve]`. `mlrl serve policy` or `serve_policy` starts a server.
The page "Servers" of the documentation lists the fields of requests and responses.
"""

import importlib
from typing import TYPE_CHECKING, Any

from mlrl_learners.serving.settings import PolicyServerConfig

if TYPE_CHECKING:
    from mlrl_learners.serving.server import serve_policy

__all__ = ["PolicyServerConfig", "serve_policy"]


def __getattr__(name: str) -> Any:  # noqa: ANN401  a function
    if name != "serve_policy":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return importlib.import_module(f"{__name__}.server").serve_policy
