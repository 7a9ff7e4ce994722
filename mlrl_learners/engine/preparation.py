"""Preparation of a model for execution, on a copy that shares the caller's weights."""

import copy
from typing import Any

from mlrl_learners.engine.dropout import without_dropout
from mlrl_learners.engine.model_checks import check_head, check_is_causal
from mlrl_learners.engine.onednn_layers import use_onednn_layers
from mlrl_learners.engine.recomputing_layers import use_recomputing_layers

__all__ = ["prepare", "share_weights"]


def share_weights(model: Any) -> Any:  # noqa: ANN401 - transformers ships no types
    """Return a copy of a model's modules, hooks and configuration with the same parameters.

    Parameters and buffers are the same objects, so training either model trains both, and the copy
    takes no memory worth counting. Classes, modes, hooks and attributes are independent.
    """
    shared = [*model.parameters(), *model.buffers()]
    return copy.deepcopy(model, {id(tensor): tensor for tensor in shared})


def prepare(model: Any) -> Any:  # noqa: ANN401
    """Return a copy of a model, with shared weights, that is ready to be sampled and trained.

    Dropout is off, linear layers on a CPU run on oneDNN, norms and gated layers recompute.

    Raises:
        ConfigError: If it is no causal language model that this package can train.
    """
    prepared = share_weights(model)
    check_is_causal(prepared)
    without_dropout(prepared)
    use_onednn_layers(prepared)
    use_recomputing_layers(prepared)
    check_head(prepared)
    return prepared
