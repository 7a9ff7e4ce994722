"""Attention over prefix trees: each token attends to the tokens before it in its row.

Masked attention over whole trees computes the scores between all pairs of tokens and masks most of
them. Here the tokens are cut into blocks of neighbouring segments with one parent. A block attends
to the path from the root to the parent, whose keys are copied for it, and to itself under a mask.
Blocks about as long as their paths keep both the copies and the masked scores few.
"""

import contextlib
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from mlrl_learners.engine.prefix_trees import Indices, PrefixTrees

__all__ = ["TreeBlocks", "attend_in_trees", "can_attend_in_trees", "tree_blocks"]

NAME = "mlrl_trees"
# Options of some families' attention that are not implemented here.
UNKNOWN_OPTIONS = ("softcap", "s_aux", "position_bias", "sliding_window", "head_mask")
MIN_BLOCK = 64  # tokens; smaller blocks are merged where their paths are as short
MIN_FILLED = 0.5  # share of the scores of a batch of blocks that are not of padding


@dataclass(frozen=True, slots=True)
class BlockBatch:
    """R blocks of up to Q tokens with paths of up to A tokens, which attend together.

    Attributes:
        keys: Index of the tokens that each block attends to, `[R, A + Q]`; 0 for padding.
        mask: Which keys each token attends to, `[R, 1, Q, A + Q]`; None for causal attention.
        width: Q.
    """

    keys: Tensor
    mask: Tensor | None
    width: int


@dataclass(frozen=True, slots=True)
class TreeBlocks:
    """The S tokens of prefix trees, in C cells of blocks.

    Attributes:
        batches: Blocks of similar sizes.
        cells: Index of each cell's token, `[C]`; 0 for padding.
        is_cell: Whether a cell holds a token, `[C]`; padding gets no gradient.
        places: Index of each token's cell, `[S]`.
    """

    batches: Sequence[BlockBatch]
    cells: Tensor
    is_cell: Tensor
    places: Tensor

    @property
    def num_keys(self) -> int:
        """Number of keys of all blocks, including copies and padding."""
        return sum(batch.keys.numel() for batch in self.batches)

    def to(self, device: torch.device) -> "TreeBlocks":
        """Return the blocks on another device."""
        batches = [
            BlockBatch(
                batch.keys.to(device),
                None if batch.mask is None else batch.mask.to(device),
                batch.width,
            )
            for batch in self.batches
        ]
        return TreeBlocks(
            batches, self.cells.to(device), self.is_cell.to(device), self.places.to(device)
        )


def tree_blocks(trees: PrefixTrees) -> TreeBlocks:
    """Cut prefix trees into blocks."""
    reach = trees.reach()
    blocks = sorted(_cut(trees), key=lambda block: (-block.num_scores, block.start))
    batches: list[BlockBatch] = []
    cells: list[Indices] = []  # -1 for padding
    for group in _similar(blocks):
        tokens = _padded([np.arange(block.start, block.end) for block in group])
        batches.append(_batch(tokens, _padded([block.path for block in group]), reach))
        cells.append(tokens.flatten())
    whole = torch.from_numpy(np.concatenate(cells))
    places = torch.empty(len(reach), dtype=torch.long)
    places[whole[whole >= 0]] = torch.nonzero(whole >= 0).squeeze(-1)
    return TreeBlocks(batches, whole.clamp(min=0), whole >= 0, places)


@dataclass(frozen=True, slots=True)
class _Block:
    """Neighbouring tokens that attend to each other and to the tokens of one path.

    Attributes:
        start: Index of the first token.
        end: Index after the last one.
        path: Indices of the tokens that all of them attend to.
    """

    start: int
    end: int
    path: Indices

    @property
    def num_scores(self) -> int:
        """Number of attention scores, masked ones included."""
        size = self.end - self.start
        return size * (len(self.path) + size)


def _cut(trees: PrefixTrees) -> Iterator[_Block]:
    """Cut trees into blocks of whole subtrees, or of a segment whose subtrees are large."""
    children = trees.children()
    waiting = [-1]  # segments whose children are not in a block yet
    while waiting:
        parent = waiting.pop()
        path = trees.path(parent)
        most = max(len(path), MIN_BLOCK)
        start = end = trees.ends[parent] if parent >= 0 else 0
        for child in children[parent]:
            first, last = trees.starts[child], trees.subtree_ends[child]
            is_large = last - first > most
            if end > start and (is_large or last - start > most):
                yield _Block(start, end, path)
                start = first
            if is_large:
                yield _Block(first, trees.ends[child], path)
                waiting.append(child)
                start = last
            end = last
        if end > start:
            yield _Block(start, end, path)


def _similar(blocks: Sequence[_Block]) -> Iterator[list[_Block]]:
    """Group blocks, largest first, so that padding them to one size adds few scores."""
    group: list[_Block] = []
    width = longest = filled = 0
    for block in blocks:
        new = max(width, block.end - block.start), max(longest, len(block.path))
        padded = (len(group) + 1) * new[0] * sum(new)
        if group and filled + block.num_scores < MIN_FILLED * padded:
            yield group
            group, filled = [], 0
            new = block.end - block.start, len(block.path)
        group.append(block)
        filled += block.num_scores
        width, longest = new
    if group:
        yield group


def _padded(parts: Sequence[Indices]) -> Indices:
    """Return the parts as rows, -1 behind them."""
    rows = np.full((len(parts), max(map(len, parts))), -1)
    for row, part in zip(rows, parts, strict=True):
        row[: len(part)] = part
    return rows


def _batch(tokens: Indices, paths: Indices, reach: Indices) -> BlockBatch:
    """Build the keys and the mask of blocks: their tokens `[R, Q]` and paths `[R, A]`."""
    columns = np.arange(tokens.shape[1])
    keys = torch.from_numpy(np.concatenate([paths, tokens], 1)).clamp(min=0)
    last = tokens.max(1, keepdims=True)
    if not paths.size and bool(((tokens < 0) | (reach[tokens] > last)).all()):
        return BlockBatch(keys, None, len(columns))  # a segment each
    query, key = tokens[:, :, None], tokens[:, None]
    sees_own = (columns <= columns[:, None]) & (key >= 0) & (query < reach[key])
    # Padding attends to itself, because a row without any key would produce NaN.
    sees_own |= columns == columns[:, None]
    sees_path = np.broadcast_to(paths[:, None] >= 0, (*tokens.shape, paths.shape[1]))
    mask = torch.from_numpy(np.concatenate([sees_path, sees_own], 2))
    return BlockBatch(keys, mask[:, None], len(columns))


def can_attend_in_trees(decoder: Any) -> bool:  # noqa: ANN401 - transformers ships no types
    """Return whether the decoder's attention can be replaced for one forward pass.

    Gradient checkpointing calls attention again in the backward pass, after the replacement ended.
    """
    checkpoints = any(
        layer.training and getattr(layer, "gradient_checkpointing", False)
        for layer in decoder.modules()
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
    for batch, cells in zip(blocks.batches, in_cells.split(sizes), strict=True):
        output = _heads_attend(
            cells.view(-1, batch.width, *cells.shape[1:]).transpose(1, 2),
            _copied(key, batch.keys).transpose(1, 2),
            _copied(value, batch.keys).transpose(1, 2),
            num_groups,
            attn_mask=batch.mask,
            is_causal=batch.mask is None,
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
