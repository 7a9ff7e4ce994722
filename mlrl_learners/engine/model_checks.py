"""Checks of a model when it is loaded; a model that cannot be trained here is refused.

Every refusal is a `ConfigError` of one line that names the family. The checks read a few tokens.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from mlrl_learners.engine.dropout import use_evaluation_mode
from mlrl_learners.engine.logprobs import completion_logprobs, logprobs_and_states
from mlrl_learners.engine.token_rows import TokenRow
from mlrl_learners.errors import ConfigError

__all__ = [
    "FAMILY_ERRORS",
    "NEEDED",
    "check_head",
    "check_is_causal",
    "check_type",
    "enable_checkpointing",
    "tolerance_of",
]

# Families raise different errors for input they do not support.
FAMILY_ERRORS = (
    AssertionError,
    AttributeError,
    LookupError,
    RuntimeError,
    TypeError,
    ValueError,
)
NEEDED = "a causal (decoder-only) language model is needed, such as Llama, Qwen or GPT-2"


def tolerance_of(model: nn.Module) -> float:
    """Return the largest difference between numbers that rounding alone explains."""
    weight = next(model.parameters())
    is_half = torch.is_autocast_enabled(weight.device.type) or weight.dtype != torch.float32
    return 0.05 if is_half else 1e-4


def check_type(config: Any) -> None:  # noqa: ANN401 - transformers ships no types
    """Refuse encoder-decoder models by their configuration, before weights are read.

    Raises:
        ConfigError: If the configuration is that of an encoder-decoder model.
    """
    if getattr(config, "is_encoder_decoder", False):
        raise ConfigError(f"{config.model_type!r} is an encoder-decoder model; {NEEDED}")


@torch.no_grad()
def check_is_causal(model: Any) -> None:  # noqa: ANN401
    """Check that the state of a token does not depend on later tokens.

    Training and `UncachedReader` pad on the right and pass no mask.

    Raises:
        ConfigError: If it does, if the model has no head or no decoder that can be called alone,
            or if evaluation changes its weights (RWKV rescales them).
    """
    check_type(model.config)
    family = model.config.model_type
    if not callable(getattr(model, "get_output_embeddings", None)) or (
        model.get_output_embeddings() is None
    ):
        raise ConfigError(
            f"{family!r}: {type(model).__name__} has no language-model head; {NEEDED}"
        )
    model.eval()
    before = _versions(model)
    states = _try(model, lambda: _state_before(model, [3, 4, 5, 6]))
    others = _try(model, lambda: _state_before(model, [7, 1, 2, 6]))
    if not (states - others).norm() <= tolerance_of(model) * states.norm():
        raise ConfigError(f"{family!r} models let a token see what comes after it; {NEEDED}")
    if before != _versions(model):
        raise ConfigError(
            f"{family!r} models change their weights when they are evaluated, which training and"
            " saving cannot follow (rwkv: set rescale_every to 0 in its configuration)"
        )


@torch.no_grad()
def check_head(model: Any) -> None:  # noqa: ANN401
    """Compare the engine's log-probabilities with those of the model's own forward pass.

    Raises:
        ConfigError: If they differ: the family transforms its logits in an unknown way.
    """
    model.eval()
    found = _logprobs(model, [TokenRow([1], [2, 3])])
    ids = torch.tensor([[1, 2]], device=found.device)
    logits = _try(model, lambda: model(input_ids=ids, use_cache=False).logits[0])
    scores = torch.log_softmax(logits.float(), -1)
    expected = scores[[0, 1], [2, 3]].to(found.device)
    if not torch.allclose(found, expected, atol=tolerance_of(model)):
        family = model.config.model_type
        raise ConfigError(
            f"the family {family!r} changes its logits in a way this package does not implement"
        )


def enable_checkpointing(model: Any) -> None:  # noqa: ANN401
    """Enable gradient checkpointing, and check that the training mode draws no random numbers.

    Two forward passes in training's mode must agree with each other and with evaluation mode. The
    global random state is restored.

    Raises:
        ConfigError: If the family cannot checkpoint, or has dropout that cannot be turned off.
    """
    family = model.config.model_type
    try:
        model.gradient_checkpointing_enable({"use_reentrant": False})
    except FAMILY_ERRORS:
        raise ConfigError(
            f"{family!r} models do not support gradient_checkpointing; set it to false"
        ) from None
    rows = [
        TokenRow([1, 2, 3, 4, 5, 6, 7], [1, 3, 5, 7, 2, 4, 6]),
        TokenRow([7, 6, 5], [4, 3, 2, 1]),
    ]
    model.eval()
    with torch.no_grad(), torch.random.fork_rng(_cuda_devices(model)):
        evaluated = _try(model, lambda: _logprobs(model, rows))
        use_evaluation_mode(model, checkpointing=True)
        # If the first pass draws random numbers, the second starts from another random state.
        trained = [_try(model, lambda: _logprobs(model, rows)) for _ in range(2)]
    model.eval()
    pairs = [(trained[0], trained[1]), (trained[0], evaluated), (trained[1], evaluated)]
    if not all(torch.allclose(*pair, atol=tolerance_of(model)) for pair in pairs):
        raise ConfigError(
            f"{family!r} models draw random numbers in training mode (dropout that cannot be turned"
            " off here): what is trained would not be what was sampled; set gradient_checkpointing"
            " to false"
        )


def _logprobs(model: nn.Module, rows: list[TokenRow]) -> Tensor:
    """Return the log-probabilities of all completion tokens, `[T]`."""
    return completion_logprobs(model, rows, with_entropy=False, packed=False)[0]


def _state_before(model: nn.Module, token_ids: list[int]) -> Tensor:
    """Return the decoder's state at the end of a prompt that `token_ids` follow, `[1, H]`."""
    return logprobs_and_states(model, [TokenRow([1, 2], token_ids)], packed=False)[2]


def _try(model: Any, read: Callable[[], Tensor]) -> Tensor:  # noqa: ANN401
    """Return `read()`; turn errors other than lack of memory into a `ConfigError` of one line."""
    try:
        return read()
    except torch.OutOfMemoryError:
        raise
    except FAMILY_ERRORS as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise ConfigError(
            f"{model.config.model_type!r} models cannot be read as causal language models: {reason}"
        ) from error


def _versions(model: nn.Module) -> list[int]:
    """Return the number of in-place changes of each weight."""
    return [weight._version for weight in model.parameters()]  # noqa: SLF001 - nothing public does


def _cuda_devices(model: nn.Module) -> list[torch.device]:
    devices = {weight.device for weight in model.parameters()}
    return [device for device in devices if device.type == "cuda"]
