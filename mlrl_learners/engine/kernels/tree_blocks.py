"""Blocks of prefix trees: which tokens attend to which keys together.

A block is a run of tokens below one segment. It attends to the path from the root to that segment,
whose keys are copied for it, and to itself under a mask. Blocks about as long as their paths keep
both the copies and the masked scores few.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from mlrl_learners.engine.prefix_trees import Indices, PrefixTrees

__all__ = ["BlockBatch", "TreeBlocks", "tree_blocks"]

MIN_BLOCK = 64  # tokens; smaller blocks are merged where their paths are as short
MIN_FILLED = 0.5  # share of the scores of a batch of blocks that are not of padding


@dataclass(frozen=True, slots=True)
class BlockBatch:
    """R blocks of up to Q tokens with paths of up to A tokens, which attend together.

    Attributes:
        keys: Index of the tokens that each block attends to, `[R, A + Q]`; any for padding.
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
    _masks: dict[torch.dtype, list[Tensor | None]] = field(default_factory=dict, repr=False)

    @property
    def num_keys(self) -> int:
        """Number of keys of all blocks, including copies and padding."""
        return sum(batch.keys.numel() for batch in self.batches)

    def additive_masks(self, dtype: torch.dtype) -> list[Tensor | None]:
        """Return what is added to the scores of each batch; None for causal attention.

        They are built once: each layer would convert a boolean mask and keep its own copy.
        """
        if dtype not in self._masks:
            self._masks[dtype] = [
                None
                if mask is None
                else torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill_(
                    ~mask, -torch.inf
                )
                for mask in (batch.mask for batch in self.batches)
            ]
        return self._masks[dtype]

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
    blocks = sorted(_cut(trees), key=_size_order)
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
    """Cut trees into blocks of neighbouring segments below one parent."""
    num_segments, segment = len(trees.starts), 0
    while segment < num_segments:
        parent, start = trees.parents[segment], trees.starts[segment]
        path = trees.path(parent)
        most = max(len(path), MIN_BLOCK)
        limit = trees.subtree_ends[parent] if parent >= 0 else len(trees.token_ids)
        end = trees.ends[segment]
        segment += 1
        while segment < num_segments and trees.ends[segment] <= min(limit, start + most):
            last = trees.subtree_ends[segment]
            if last > start + most and last - trees.starts[segment] <= most:
                break  # the whole subtree fits the next block
            end = trees.ends[segment]
            segment += 1
        yield _Block(start, end, path)


def _size_order(block: _Block) -> tuple[int, int]:
    """Sort by the magnitude of the path, then by the number of tokens; largest first."""
    return -int(math.log2(len(block.path) + 1)), block.start - block.end


def _similar(blocks: Sequence[_Block]) -> Iterator[list[_Block]]:
    """Group blocks of similar sizes, so that padding them to one size adds few scores."""
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
    keys = np.concatenate([paths, tokens], 1)
    # Padding reads different tokens: on a GPU the gradients of one token would be added in turn.
    spread = np.arange(keys.size).reshape(keys.shape) % len(reach)
    index = torch.from_numpy(np.where(keys < 0, spread, keys))
    last = tokens.max(1, keepdims=True)
    if not paths.size and bool(((tokens < 0) | (reach[tokens] > last)).all()):
        return BlockBatch(index, None, len(columns))  # a segment each
    query, key = tokens[:, :, None], tokens[:, None]
    sees_own = (columns <= columns[:, None]) & (key >= 0) & (query < reach[key])
    # Padding attends to itself, because a row without any key would produce NaN.
    sees_own |= columns == columns[:, None]
    sees_path = np.broadcast_to(paths[:, None] >= 0, (*tokens.shape, paths.shape[1]))
    mask = torch.from_numpy(np.concatenate([sees_path, sees_own], 2))
    return BlockBatch(index, mask[:, None], len(columns))
