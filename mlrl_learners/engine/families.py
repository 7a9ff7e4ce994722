"""Feature checks of a model: which execution paths give the same results as its own forward pass.

Families differ in more ways than their configurations tell, so each path is compared with the
reference on a few short rows when a model is loaded.
"""

from typing import Any

import torch
from torch import Tensor
from transformers.cache_utils import DynamicCache

from mlrl_learners.engine.growing_cache import holds_keys
from mlrl_learners.engine.llama_layers import LlamaLayers
from mlrl_learners.engine.llama_reader import LlamaReader
from mlrl_learners.engine.logprobs import completion_logprobs
from mlrl_learners.engine.model_checks import FAMILY_ERRORS, tolerance_of
from mlrl_learners.engine.module_reader import ModuleReader
from mlrl_learners.engine.reader import Reader
from mlrl_learners.engine.static_reader import (
    StaticReader,
    attends_to_all_columns,
    without_cudnn_attention,
)
from mlrl_learners.engine.token_rows import TokenRow

__all__ = ["keeps_cache", "matches_llama_reader", "matches_static_reader", "packs_prompts"]

LONG_PROMPT = 70  # tokens; such trees are cut into several blocks
CACHE_TOLERANCE = 0.01  # of the largest logit: above TF32's rounding, below a wrong mask's effect


@torch.no_grad()
def keeps_cache(model: Any) -> bool:  # noqa: ANN401 - transformers ships no types
    """Return whether the KV cache of a padded batch serves repeated and selected rows correctly.

    Compares with each row read alone. State-space models fail, as padding enters their state.
    """
    model.eval()
    ids, padding_mask, positions = _two_rows(model)
    reader = ModuleReader(model)
    try:
        cache = reader.cache()
        reader.read(ids, padding_mask, positions, cache)
        return holds_keys(cache, ids.shape[1]) and _continues(model, reader, cache)
    except FAMILY_ERRORS:
        return False


def _continues(model: Any, reader: ModuleReader, cache: DynamicCache) -> bool:  # noqa: ANN401
    """Return whether the next logits after a cache of `_two_rows` are those of rows read alone."""
    ids, padding_mask, positions = _two_rows(model)
    cache.batch_repeat_interleave(2)
    cache.batch_select_indices(torch.tensor([1, 2], device=ids.device))
    longer_mask = torch.cat([padding_mask, padding_mask[:, -1:]], 1)
    found = reader.read(ids[:, :1] + 2, longer_mask, positions[:, -1:] + 1, cache)
    if next(model.parameters()).dtype != torch.float32:
        return bool(found.isfinite().all())  # rounding may route tokens to other experts
    rows = [[*ids[i, padding_mask[i].bool()].tolist(), int(ids[i, 0]) + 2] for i in range(2)]
    for row, logits in zip(rows, found, strict=True):
        alone = model(input_ids=torch.tensor([row], device=ids.device), use_cache=False)
        expected = alone.logits[0, -1]
        if not (logits - expected).abs().max() <= CACHE_TOLERANCE * expected.abs().max():
            return False
    return True


def packs_prompts(model: Any) -> bool:  # noqa: ANN401
    """Return whether tokens read once for several rows give the same log-probabilities.

    Not every family takes position ids and an attention mask as input.
    """
    config = model.config
    kinds = getattr(config, "layer_types", None)
    windowed = getattr(config, "sliding_window", None) if kinds is None else None
    if windowed or any(kind != "full_attention" for kind in kinds or ()):
        return False  # windows count columns, which packing changes
    if config._attn_implementation != "sdpa":  # noqa: SLF001 - there is no public name for it
        return False
    rows = [
        TokenRow([*prompt, *added], answer)
        for prompt in ([1, 2, 3], [1 + number % 9 for number in range(LONG_PROMPT)])
        for added in ([], [6, 8, 2])
        for answer in ([4, 5], [9, 1, 3])
        if len(prompt) + 9 <= getattr(config, "max_position_embeddings", LONG_PROMPT + 9)
    ]
    model.eval()
    with torch.no_grad():
        try:
            packed, _ = completion_logprobs(model, rows, with_entropy=False)
        except ValueError:  # options that packed attention does not support
            return False
        apart, _ = completion_logprobs(model, rows, with_entropy=False, packed=False)
    return bool(torch.allclose(packed, apart, atol=tolerance_of(model)))


@torch.no_grad()
@without_cudnn_attention()
def matches_static_reader(model: Any) -> bool:  # noqa: ANN401
    """Return whether `StaticReader` gives the logits of `ModuleReader`."""
    devices = {weight.device for weight in model.parameters()}
    if len(devices) > 1 or model.config._attn_implementation != "sdpa":  # noqa: SLF001
        return False
    model.eval()
    reference = ModuleReader(model)
    cache = reference.cache()
    try:
        reference.read(*_two_rows(model), cache)
        return attends_to_all_columns(cache) and _same_logits(model, StaticReader(model, 2))
    except FAMILY_ERRORS:
        return False


@torch.no_grad()
@without_cudnn_attention()
def matches_llama_reader(model: Any) -> bool:  # noqa: ANN401
    """Return whether `LlamaLayers` fit a model and give the logits of `ModuleReader`.

    They are read by `LlamaReader` on a CPU, and by `StaticReader` on a GPU.
    """
    if not LlamaLayers.fits(model):
        return False
    model.eval()
    try:
        if next(model.parameters()).device.type == "cpu":
            return _same_logits(model, LlamaReader(model, 2))
        return _same_logits(model, StaticReader(model, 2, layers=LlamaLayers(model, 2)))
    except FAMILY_ERRORS:  # modules of other classes
        return False


def _same_logits(model: Any, reader: Reader[Any]) -> bool:  # noqa: ANN401
    """Compare a reader with `ModuleReader` on two prompts and two tokens after each."""
    ids, padding_mask, positions = _two_rows(model)
    reference = ModuleReader(model)
    expected_cache, cache = reference.cache(), reader.cache()
    for number in range(3):
        expected = reference.read(ids, padding_mask, positions, expected_cache)
        found = reader.read(ids, padding_mask, positions, cache)
        if not (found - expected).abs().max() <= tolerance_of(model) * expected.abs().max():
            return False
        ids, positions = ids[:, :1] + number, positions[:, -1:] + 1
        padding_mask = torch.cat([padding_mask, padding_mask[:, -1:]], 1)
    return True


def _two_rows(model: Any) -> tuple[Tensor, Tensor, Tensor]:  # noqa: ANN401
    """Return ids, padding mask and positions, `[2, 4]` each; the first row has padding."""
    device = next(model.parameters()).device
    padding_mask = torch.tensor([[0, 0, 1, 1], [1, 1, 1, 1]], device=device)
    ids = torch.tensor([[1, 1, 2, 3], [4, 5, 6, 2]], device=device)
    return ids, padding_mask, (padding_mask.cumsum(-1) - 1).clamp(min=0)
