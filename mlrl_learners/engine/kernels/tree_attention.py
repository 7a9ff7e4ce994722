"""Attention over prefix trees: each token attends to the tokens before it in its row.

Masked attention over whole trees computes the scores between all pairs of tokens and masks most of
them. Here `TreeBlocks` of neighbouring tokens attend to the keys of their path, which are copied
for them, and to themselves under a mask.
"""

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from mlrl_learners.engine.kernels.tree_blocks import TreeBlocks

__all__ = ["attend_in_trees", "can_attend_in_trees"]

NAME = "mlrl_trees"
# Options of some families' attention that are not implemented here.
UNKNOWN_OPTIONS = ("softcap", "s_aux", "position_bias", "sliding_window", "head_mask")


def can_attend_in_trees(decoder: Any) -> bool:  # noqa: ANN401 - transformers ships no types
    """Return whether the decoder's attention can be replaced for one forward pass.

    Gradient checkpointing calls attention again in the backward pass, after the replacement ended.
    """
    checkpoints = any(
        getattr(layer, "gradient_checkpointing", False) for layer in decoder.modules()
    )
    replaceable = bool(getattr(decoder, "_supports_attention_backend", False))
    return replaceable and not checkpoints and decoder.config._attn_implementation == "sdpa"  # noqa: SLF001


@contextlib.contextmanager
def attend_in_trees(decoder: Any, blocks: TreeBlocks) -> Iterator[None]:  # noqa: ANN401
    """Let the decoder read one sequence of trees inside the block, with position ids, unmasked."""
    from transformers import AttentionInterface

    AttentionInterface.register(NAME, _attend)
    config = decoder.config
    before = config._attn_implementation  # noqa: SLF001 - there is no public name for it
    token = _BLOCKS.set(blocks)
    config._attn_implementation = NAME  # noqa: SLF001
    try:
        yield
    finally:
        config._attn_implementation = before  # noqa: SLF001
        _BLOCKS.reset(token)


_BLOCKS: ContextVar[TreeBlocks] = ContextVar("blocks")


def _attend(
    module: nn.Module,
    query: Tensor,  # [1, heads, S, D]
    key: Tensor,  # [1, fewer heads, S, D]
    value: Tensor,
    attention_mask: Tensor | None,  # the trees define which tokens attend
    scaling: float | None = None,
    dropout: float = 0.0,  # noqa: ARG001 - policies have none
    **options: Any,  # noqa: ANN401 - of the model's family
) -> tuple[Tensor, None]:
    """Compute attention with the signature of attention functions in `transformers`."""
    if attention_mask is not None:  # Doge adds a learned bias to the mask
        raise ValueError("attention over prefix trees does not support a mask of the model's own")
    for name in UNKNOWN_OPTIONS:
        if options.get(name) is not None:
            raise ValueError(f"attention over prefix trees does not support {name}")
    num_groups = getattr(module, "num_key_value_groups", 1)
    if query.device.type != "cpu" or not torch.is_autocast_enabled("cpu"):
        return _attend_in_blocks(query, key, value, _BLOCKS.get(), num_groups, scaling), None
    # The backward pass in bfloat16 is two to four times slower on a CPU without AMX: inputs are
    # rounded as autocast rounds them, and the computation is in float32.
    dtype = torch.get_autocast_dtype("cpu")
    with torch.autocast("cpu", enabled=False):
        query, key, value = (states.to(dtype).float() for states in (query, key, value))
        attended = _attend_in_blocks(query, key, value, _BLOCKS.get(), num_groups, scaling)
    return attended.to(dtype), None


def _attend_in_blocks(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    blocks: TreeBlocks,
    num_groups: int,
    scaling: float | None,
) -> Tensor:
    """Return the attention output of each token, `[1, S, heads, D]`."""
    query, key, value = (states[0].transpose(0, 1) for states in (query, key, value))
    in_cells: Tensor = _Permute.apply(query, blocks.cells, blocks.places, None)  # type: ignore[no-untyped-call]
    outputs = []
    sizes = [len(batch.keys) * batch.width for batch in blocks.batches]
    masks = blocks.additive_masks(query.dtype)
    for batch, mask, cells in zip(blocks.batches, masks, in_cells.split(sizes), strict=True):
        output = _heads_attend(
            cells.view(-1, batch.width, *cells.shape[1:]).transpose(1, 2),
            _copied(key, batch.keys).transpose(1, 2),
            _copied(value, batch.keys).transpose(1, 2),
            num_groups,
            attn_mask=mask,
            is_causal=mask is None,
            scale=scaling,
        )
        outputs.append(output.transpose(1, 2).flatten(0, 1))
    tokens: Tensor = _Permute.apply(  # type: ignore[no-untyped-call]
        torch.cat(outputs), blocks.places, blocks.cells, blocks.is_cell
    )
    return tokens[None]


def _heads_attend(
    query: Tensor,  # [R, heads, Q, D]
    key: Tensor,  # [R, heads / groups, A + Q, D]
    value: Tensor,
    num_groups: int,
    **options: Any,  # noqa: ANN401 - of PyTorch's attention
) -> Tensor:
    """Compute grouped-query attention."""
    if query.device.type == "cpu":  # GPU kernels need repeated keys
        options["enable_gqa"] = num_groups > 1
    else:
        key, value = (states.repeat_interleave(num_groups, 1) for states in (key, value))
    return scaled_dot_product_attention(query, key, value, **options)


def _copied(states: Tensor, index: Tensor) -> Tensor:
    """Return the states `[S, heads, D]` of the tokens `[R, K]`, with copies."""
    if states.device.type == "cpu":  # four times as fast as indexing
        return states.index_select(0, index.flatten()).view(*index.shape, *states.shape[1:])
    return states[index]  # on a GPU its gradient is deterministic, that of `index_select` is not


class _Permute(torch.autograd.Function):
    """Gather of rows whose inverse is known, so that its backward pass is a gather, too."""

    @staticmethod
    def forward(
        ctx: Any,  # noqa: ANN401 - torch's
        rows: Tensor,
        index: Tensor,
        back: Tensor,
        is_row: Tensor | None,
    ) -> Tensor:
        ctx.save_for_backward(back, is_row)
        return rows.index_select(0, index)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None, None]:  # noqa: ANN401
        back, is_row = ctx.saved_tensors
        rows = gradient.index_select(0, back)
        return rows if is_row is None else rows.mul_(is_row[:, None, None]), None, None, None
