"""Micro-batches: the rows of one forward pass, within a number of tokens."""

from collections.abc import Iterator, Sequence
from typing import Literal

from mlrl_learners.engine.prefix_trees import RowOrder, prefix_trees
from mlrl_learners.engine.token_rows import TokenRow

__all__ = ["Packing", "micro_batches", "num_tokens", "prompt_groups"]

# What rows of a forward pass share: all tokens that begin several of them, equal prompts, nothing.
Packing = Literal["trees", "prompts", "rows"]

# A batch may end when it is half full, where the next batch has to read least again.
MIN_FULL = 0.5


def micro_batches(
    rows: Sequence[TokenRow], max_tokens: int, packing: Packing = "trees"
) -> Iterator[list[int]]:
    """Split row numbers into batches of at most `max_tokens` tokens each, padding included.

    Every row is in exactly one batch. A row longer than `max_tokens` is a batch of its own.

    Args:
        rows: Prompts and completions.
        max_tokens: Most tokens of a forward pass.
        packing: What the rows of a forward pass share.
    """
    if packing == "trees":
        yield from _tree_batches(rows, max_tokens)
        return
    groups = [[number] for number in range(len(rows))]
    if packing == "prompts":
        groups = prompt_groups(rows, max_tokens)
    widths = [_width(rows, group) for group in groups]
    batch: list[int] = []
    size = widest = 0
    for place in sorted(range(len(groups)), key=lambda i: (-widths[i], i)):
        if batch and (size + 1) * widest > max_tokens:
            yield batch
            batch, size = [], 0
        widest = widths[place] if not batch else widest
        batch, size = batch + groups[place], size + 1
    if batch:
        yield batch


def num_tokens(rows: Sequence[TokenRow], batch: Sequence[int], packing: Packing) -> int:
    """Return the tokens that a forward pass of some rows reads, without padding."""
    chosen = [rows[number] for number in batch]
    if packing == "trees":
        return len(prefix_trees(chosen).token_ids)
    groups = prompt_groups(chosen) if packing == "prompts" else [[n] for n in range(len(chosen))]
    return sum(_width(chosen, group) for group in groups)


def prompt_groups(rows: Sequence[TokenRow], max_tokens: int | None = None) -> list[list[int]]:
    """Group row numbers by prompt, in order; a group reads at most `max_tokens` tokens."""
    groups: list[list[int]] = []
    open_groups: dict[tuple[int, ...], list[int]] = {}
    widths: dict[tuple[int, ...], int] = {}
    for number, row in enumerate(rows):
        prompt = tuple(row.prompt_ids)
        width = widths.get(prompt, len(prompt)) + len(row.token_ids) - 1
        group = open_groups.get(prompt)
        if group is None or (max_tokens is not None and width > max_tokens):
            group = open_groups[prompt] = []
            groups.append(group)
            width = row.num_tokens
        group.append(number)
        widths[prompt] = width
    return groups


def _tree_batches(rows: Sequence[TokenRow], max_tokens: int) -> list[list[int]]:
    """Cut the sorted rows into batches, preferably where two rows share little; largest first."""
    order = RowOrder(rows)
    batches: list[tuple[int, list[int]]] = []
    first = 0
    while first < len(rows):
        sizes = [0]  # tokens of the batch before each of its rows, and of all of them
        for number, shared in order.shared(first):
            size = sizes[-1] + rows[number].num_tokens - shared
            if len(sizes) > 1 and size > max_tokens:
                break
            sizes.append(size)
        end = first + len(sizes) - 1
        if end < len(rows):
            ends = [first + i for i in range(1, len(sizes)) if sizes[i] >= MIN_FULL * sizes[-1]]
            new = [max(1, size - order.common[first]) for size in sizes]
            # The next batch reads again what its first row shares with the last of this one.
            end = min(reversed(ends), key=lambda place: order.common[place] / new[place - first])
        batches.append((sizes[end - first], order.numbers[first:end]))
        first = end
    return [numbers for _, numbers in sorted(batches, key=lambda batch: -batch[0])]


def _width(rows: Sequence[TokenRow], group: Sequence[int]) -> int:
    """Return the tokens of rows with one prompt, which is read once."""
    return len(rows[group[0]].prompt_ids) + sum(len(rows[i].token_ids) - 1 for i in group)
