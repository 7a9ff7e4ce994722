"""What families of models do differently, looked up or tried when a model is loaded."""

import warnings
from typing import Any

import torch
from torch import Tensor
from transformers.cache_utils import DynamicCache

from mlrl_learners.engine.cuda_graphs import GraphRecorder
from mlrl_learners.engine.dropout import without_dropout
from mlrl_learners.engine.growing_cache import grow_in_place, holds_keys
from mlrl_learners.engine.llama_reader import PlainLlama
from mlrl_learners.engine.logprobs import TokenRow, completion_logprobs
from mlrl_learners.engine.model_checks import FAMILY_ERRORS, check_head, tolerance_of
from mlrl_learners.engine.static_reader import StaticStep, is_plain, without_plans

__all__ = [
    "check_head",
    "decodes_statically",
    "keeps_cache",
    "packs_prompts",
    "reads_plainly",
    "recorder_of",
    "without_dropout",
]

CACHE_TOLERANCE = 0.01  # of the largest logit: a GPU may round to TF32; no mask differs by more


@torch.no_grad()
def keeps_cache(model: Any) -> bool:  # noqa: ANN401
    """Return whether a prompt that was read once can serve several rows by its keys and values.

    Tried on two rows, one of them padded on the left: each must go on as if it stood alone. Where
    that fails (state-space models) answers are sampled by a `Rereader`, which a warning says.
    """
    model.eval()
    device = next(model.parameters()).device
    ids, seen, positions = (part.to(device) for part in _two_rows())
    try:
        cache = DynamicCache(config=model.config)
        _read(model, ids, seen, positions, cache)
        works = holds_keys(cache, ids.shape[1]) and _goes_on(model, cache)
    except FAMILY_ERRORS:
        works = False
    if not works:
        warnings.warn(
            f"{model.config.model_type!r} models are sampled without a KV cache here: each token"
            " reads its whole sequence again, which is slow",
            RuntimeWarning,
            stacklevel=3,
        )
    return works


def _goes_on(model: Any, cache: DynamicCache) -> bool:  # noqa: ANN401
    """Return whether a cache of `_two_rows` predicts what rows that stand alone do."""
    device = next(model.parameters()).device
    ids, seen, positions = (part.to(device) for part in _two_rows())
    cache.batch_repeat_interleave(2)
    cache = grow_in_place(cache)
    cache.batch_select_indices(torch.tensor([1, 2], device=device))
    seen, after = torch.cat([seen, seen[:, -1:]], 1), positions[:, -1:] + 1
    ours = _read(model, ids[:, :1] + 2, seen, after, cache)
    if next(model.parameters()).dtype != torch.float32:
        return bool(ours.isfinite().all())  # experts are chosen otherwise when rounding differs
    rows = [[*ids[i, seen[i, :-1].bool()].tolist(), int(ids[i, 0]) + 2] for i in range(2)]
    for row, our in zip(rows, ours, strict=True):
        alone = model(input_ids=torch.tensor([row], device=device), use_cache=False).logits[0, -1]
        if not (our - alone).abs().max() <= CACHE_TOLERANCE * alone.abs().max():
            return False
    return True


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
    return bool(torch.allclose(packed, apart, atol=tolerance_of(model)))


def recorder_of(model: Any) -> GraphRecorder | None:  # noqa: ANN401
    """Return what records a model's decoding, or None where that cannot be or does not pay."""
    device = next(model.parameters()).device
    return GraphRecorder(device) if device.type == "cuda" and decodes_statically(model) else None


@torch.no_grad()
@without_plans()
def decodes_statically(model: Any) -> bool:  # noqa: ANN401
    """Return whether a `StaticStep` computes what the model does with a cache that grows.

    Tried on two short rows, one of them padded: not every family takes a mask from outside.
    """
    devices = {weight.device for weight in model.parameters()}
    if len(devices) > 1 or model.config._attn_implementation != "sdpa":  # noqa: SLF001
        return False
    model.eval()
    (device,) = devices
    ids, seen, positions = (part.to(device) for part in _two_rows())
    grows, stays = (DynamicCache(config=model.config) for _ in range(2))
    try:
        for cache in (grows, stays):
            _read(model, ids, seen, positions, cache)
        if not is_plain(stays):
            return False
        step = StaticStep(model, stays, seen.bool(), positions[:, -1] + 1, room=2)
        for number in (1, 2):
            seen = torch.cat([seen, seen[:, -1:]], 1)
            after = positions[:, -1:] + number
            theirs = _read(model, ids[:, number, None], seen, after, grows)
            difference = (step(ids[:, number]) - theirs).abs().max()
            if not difference <= tolerance_of(model) * theirs.abs().max():
                return False
    except FAMILY_ERRORS:
        return False
    return True


@torch.no_grad()
def reads_plainly(model: Any) -> bool:  # noqa: ANN401
    """Return whether `PlainLlama` computes what the model does, tried on the same two rows."""
    if not PlainLlama.fits(model):
        return False
    model.eval()
    grows = DynamicCache(config=model.config)
    ids, seen, positions = _two_rows()
    try:
        plain = PlainLlama(model, 2)
        cache = plain.cache()
        for number in range(3):
            theirs = _read(model, ids, seen, positions, grows)
            difference = (plain.read(ids, seen, positions, cache) - theirs).abs().max()
            if not difference <= tolerance_of(model) * theirs.abs().max():
                return False
            ids, positions = ids[:, :1] + number, positions[:, -1:] + 1
            seen = torch.cat([seen, seen[:, -1:]], 1)
    except (AttributeError, LookupError, RuntimeError, TypeError, ValueError):
        return False  # parts of another kind
    return True


def _two_rows() -> tuple[Tensor, Tensor, Tensor]:
    """Return ids, which of them are seen, and positions, `[2, 4]` each; one row is padded."""
    seen = torch.tensor([[0, 0, 1, 1], [1, 1, 1, 1]])
    return torch.tensor([[1, 1, 2, 3], [4, 5, 6, 2]]), seen, (seen.cumsum(-1) - 1).clamp(min=0)


def _read(model: Any, ids: Tensor, seen: Tensor, positions: Tensor, cache: DynamicCache) -> Tensor:  # noqa: ANN401
    """Read tokens, `[B, S]`, into a cache; return the logits after the last, `[B, V]`."""
    logits: Tensor = model(
        input_ids=ids,
        attention_mask=seen,
        position_ids=positions,
        past_key_values=cache,
        use_cache=True,
    ).logits[:, -1]
    return logits
