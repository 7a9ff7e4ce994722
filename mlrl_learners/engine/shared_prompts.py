"""Prompts of a batch that begin alike: which tokens are read once for several rows.

All prompts of a later turn often begin with the prompt of the turn before. The common beginning of
a group of prompts, its stem, is read once, then the rest of each row. The columns of the cache are
moved afterwards, so that it looks as if all rows had been read from the beginning.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

__all__ = ["SharedPrompts", "shared_prompts"]

MIN_STEM = 32  # tokens
MIN_SAVED = 0.25  # share of all columns; a second forward pass and copies of the cache cost some


@dataclass(frozen=True, slots=True)
class SharedPrompts:
    """B prompts of up to W tokens as G stems of up to P tokens and rests of up to R tokens.

    All tensors are padded on the left, as prompts are.

    Attributes:
        stem_ids: `[G, P]`.
        stem_mask: 1 for tokens and 0 for padding, `[G, P]`.
        stem_positions: `[G, P]`.
        stems: Stem of each row, `[B]`.
        rest_ids: `[B, R]`.
        mask: 1 for tokens and 0 for padding of stem and rest, `[B, P + R]`.
        rest_positions: `[B, R]`.
        columns: Column of stem and rest that each token of a prompt is in, `[B, W]`; any for
            padding.
    """

    stem_ids: Tensor
    stem_mask: Tensor
    stem_positions: Tensor
    stems: Tensor
    rest_ids: Tensor
    mask: Tensor
    rest_positions: Tensor
    columns: Tensor


def shared_prompts(ids: Tensor, padding_mask: Tensor | None) -> SharedPrompts | None:
    """Return how a batch of prompts is read with less work, or None if they share too little.

    Args:
        ids: Token ids, padded on the left, `[B, W]`.
        padding_mask: 1 for tokens and 0 for padding, `[B, W]`; None if there is no padding.
    """
    width = ids.shape[1]
    if len(ids) < 2 or width <= MIN_STEM:
        return None
    lengths = [width] * len(ids) if padding_mask is None else padding_mask.sum(1).tolist()
    prompts = [row[width - size :] for row, size in zip(ids.tolist(), lengths, strict=True)]
    groups = _groups(prompts)
    shared = _lay_out(prompts, groups, [_stem_size(prompts, group) for group in groups])
    num_read = shared.stem_ids.numel() + shared.rest_ids.numel()
    return shared if num_read <= (1 - MIN_SAVED) * ids.numel() else None


def _lay_out(
    prompts: Sequence[Sequence[int]], groups: Sequence[Sequence[int]], sizes: Sequence[int]
) -> SharedPrompts:
    """Divide prompts after the stems of their groups, which have these sizes."""
    stems = torch.zeros(len(prompts), dtype=torch.long)
    for number, group in enumerate(groups):
        stems[torch.tensor(group)] = number
    cuts = [sizes[number] for number in stems.tolist()]
    rests = [prompt[cut:] for prompt, cut in zip(prompts, cuts, strict=True)]
    stem_width, rest_width = max(sizes), max(map(len, rests))
    end = stem_width + rest_width
    stem_mask = _right_aligned([[1] * size for size in sizes], stem_width)
    rest_mask = _right_aligned([[1] * len(rest) for rest in rests], rest_width)
    positions = [range(cut, cut + len(rest)) for cut, rest in zip(cuts, rests, strict=True)]
    columns = [
        [*range(stem_width - cut, stem_width), *range(end - len(rest), end)]
        for cut, rest in zip(cuts, rests, strict=True)
    ]
    heads = [prompts[group[0]][:size] for group, size in zip(groups, sizes, strict=True)]
    return SharedPrompts(
        stem_ids=_right_aligned(heads, stem_width),
        stem_mask=stem_mask,
        stem_positions=_right_aligned([range(size) for size in sizes], stem_width),
        stems=stems,
        rest_ids=_right_aligned(rests, rest_width),
        mask=torch.cat([stem_mask[stems], rest_mask], 1),
        rest_positions=_right_aligned(positions, rest_width),
        columns=_right_aligned(columns, max(map(len, prompts))),
    )


def _groups(prompts: Sequence[Sequence[int]]) -> list[list[int]]:
    """Group row numbers of prompts of which neighbours, when sorted, share at least half."""
    groups: list[list[int]] = []
    for row in sorted(range(len(prompts)), key=lambda number: (prompts[number], number)):
        before = prompts[groups[-1][-1]] if groups else []
        common = _common(before, prompts[row])
        if common >= MIN_STEM and 2 * common >= len(prompts[row]):
            groups[-1].append(row)
        else:
            groups.append([row])
    return groups


def _stem_size(prompts: Sequence[Sequence[int]], group: Sequence[int]) -> int:
    """Return the tokens that begin all prompts of a group; each prompt keeps at least one."""
    first, last = prompts[group[0]], prompts[group[-1]]  # sorted: they differ the most
    shortest = min(len(prompts[row]) for row in group)
    return min(_common(first, last), shortest - 1)


def _common(one: Sequence[int], other: Sequence[int]) -> int:
    """Return the number of tokens that begin both."""
    pairs = zip(one, other, strict=False)
    return next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def _right_aligned(rows: Sequence[Sequence[int]], width: int) -> Tensor:
    """Return rows as a tensor, 0 before them."""
    return torch.tensor([[0] * (width - len(row)) + list(row) for row in rows])
