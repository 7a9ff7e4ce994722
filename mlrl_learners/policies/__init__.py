"""Policies: models with tokenizers, their prompts, adapters, critics and optimizers.

Importing this package needs transformers; its names are imported when they are first used.
"""

import importlib
from typing import TYPE_CHECKING, Any

from transformers.utils import logging

if TYPE_CHECKING:
    from mlrl_learners.engine import SamplingConfig
    from mlrl_learners.policies.adapters import AdapterConfig
    from mlrl_learners.policies.chat import ChatFormat
    from mlrl_learners.policies.critic import Critic
    from mlrl_learners.policies.loading import ModelSource, load_model
    from mlrl_learners.policies.optimizer import PolicyOptimizer
    from mlrl_learners.policies.policy import Policy
    from mlrl_learners.policies.schedule import OptimizerConfig
    from mlrl_learners.policies.states import restore
    from mlrl_learners.policies.stop_texts import StopTexts
    from mlrl_learners.policies.tiny import tiny_model

logging.disable_progress_bar()  # one bar per weight file would interrupt a run's own bar

__all__ = [
    "AdapterConfig",
    "ChatFormat",
    "Critic",
    "ModelSource",
    "OptimizerConfig",
    "Policy",
    "PolicyOptimizer",
    "SamplingConfig",
    "StopTexts",
    "load_model",
    "restore",
    "tiny_model",
]

_MODULES = {
    "AdapterConfig": "policies.adapters",
    "ChatFormat": "policies.chat",
    "Critic": "policies.critic",
    "ModelSource": "policies.loading",
    "OptimizerConfig": "policies.schedule",
    "Policy": "policies.policy",
    "PolicyOptimizer": "policies.optimizer",
    "SamplingConfig": "engine",
    "StopTexts": "policies.stop_texts",
    "load_model": "policies.loading",
    "restore": "policies.states",
    "tiny_model": "policies.tiny",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - a class or a function
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"mlrl_learners.{_MODULES[name]}"), name)
