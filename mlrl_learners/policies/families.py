"""What families of models do differently, looked up or tried when a model is loaded."""

from typing import Any

import torch
from torch import nn

from mlrl_learners.errors import ConfigError
from mlrl_learners.functional.logprobs import TokenRow, completion_logprobs

__all__ = ["check_head", "eos_ids", "packs_prompts", "without_dropout"]


def eos_ids(model: Any, tokenizer: Any) -> tuple[int, ...]:  # noqa: ANN401
    """Collect every id that ends an answer: chat models often have more than one."""
    ids = {tokenizer.eos_token_id, model.config.eos_token_id}
    if getattr(model, "generation_config", None) is not None:
        stated = model.generation_config.eos_token_id
        ids |= set(stated) if isinstance(stated, list) else {stated}
    return tuple(sorted(int(number) for number in ids if isinstance(number, int)))


def check_head(model: Any) -> None:  # noqa: ANN401
    """Compare our logits with the model's own.

    Raises:
        ConfigError: If they differ: the family does something to its logits that we know not of.
    """
    row = TokenRow([1], [2, 3])
    model.eval()
    with torch.no_grad():
        ours, _ = completion_logprobs(model, [row], with_entropy=False, packed=False)
        ids = torch.tensor([[1, 2]], device=ours.device)
        scores = torch.log_softmax(model(input_ids=ids).logits[0].float(), -1)
    theirs = scores[[0, 1], [2, 3]].to(ours.device)
    if not torch.allclose(ours, theirs, atol=_tolerance(model)):
        family = model.config.model_type
        raise ConfigError(
            f"models of the family {family!r} alter their logits in a way that is not known here"
        )


def packs_prompts(model: Any) -> bool:  # noqa: ANN401
    """Return whether a prompt can be read once for several completions to the same effect.

    Tried on two short rows: not every family takes positions and attention from outside.
    """
    config = model.config
    kinds = getattr(config, "layer_types", None)
    windowed = getattr(config, "sliding_window", None) if kinds is None else None
    if windowed or any(kind != "full_attention" for kind in kinds or ()):
        return False  # these layers look at distances in the sequence as it is laid out
    if config._attn_implementation != "sdpa":  # noqa: SLF001 - there is no public name for it
        return False
    rows = [TokenRow([1, 2, 3], [4, 5]), TokenRow([1, 2, 3], [6, 7])]
    model.eval()
    with torch.no_grad():
        try:
            packed, _ = completion_logprobs(model, rows, with_entropy=False)
        except ValueError:  # its attention does more than ours knows of
            return False
        apart, _ = completion_logprobs(model, rows, with_entropy=False, packed=False)
    return bool(torch.allclose(packed, apart, atol=_tolerance(model)))


def _tolerance(model: nn.Module) -> float:
    return 1e-4 if next(model.parameters()).dtype == torch.float32 else 0.05


def without_dropout(model: nn.Module) -> None:
    """Switch dropout off for good: the policy that is trained must be the one that was sampled."""
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
        if isinstance(getattr(module, "attention_dropout", None), float):
            module.attention_dropout = 0.0  # type: ignore[assignment]
