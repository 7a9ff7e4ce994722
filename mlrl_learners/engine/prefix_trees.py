"""Prefix trees of rows, so that a forward pass computes tokens that rows share once.

All answers to a prompt share it, and the prompt of a later turn often begins with that of the turn
before. Rows are sorted, so that each shares most with the row before it, and become the paths of
trees. A path branches at the end of a prompt, or at a multiple of `BRANCH_TOKENS` from the
beginning: chance agreements of a few tokens would make many short segments.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from mlrl_learners.engine.token_rows import TokenRow

__all__ = ["BRANCH_TOKENS", "PrefixTrees", "RowOrder", "prefix_trees"]

BRANCH_TOKENS = 32

Indices = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class PrefixTrees:
    """Trees of N segments in one sequence of S tokens.

    A segment is a run of tokens in which no path branches. Segments are in depth-first order: the
    tokens of a subtree follow each other.

    Attributes:
        token_ids: `[S]`.
        positions: For each token, the number of tokens before it in its row, `[S]`.
        starts: Index of each segment's first token, `[N]`.
        ends: Index after each segment's last token, `[N]`.
        subtree_ends: Index after the last token of each segment's descendants, `[N]`.
        parents: Index of each segment's parent, `[N]`; -1 for the root of a tree.
        sources: For each row, the indices of the tokens whose states predict its completion.
    """

    token_ids: Indices
    positions: Indices
    starts: Sequence[int]
    ends: Sequence[int]
    subtree_ends: Sequence[int]
    parents: Sequence[int]
    sources: Sequence[Indices]

    def path(self, segment: int) -> Indices:
        """Return the indices of the tokens from the root to the end of a segment; -1 has none."""
        parts = []
        while segment >= 0:
            parts.append(np.arange(self.starts[segment], self.ends[segment]))
            segment = self.parents[segment]
        return np.concatenate(parts[::-1]) if parts else np.empty(0, np.int64)

    def reach(self) -> Indices:
        """Return the index after the last token that attends to each token, `[S]`.

        A token attends to the tokens up to itself that reach beyond it: those before it in its row.
        """
        return np.repeat(self.subtree_ends, np.subtract(self.ends, self.starts))

    def mask(self) -> NDArray[np.bool_]:
        """Return which tokens (columns) each token (rows) attends to, `[S, S]`."""
        tokens = np.arange(len(self.token_ids))
        return np.tril(tokens[:, None] < self.reach()[None])


class RowOrder:
    """Rows in lexicographic order, and what each shares with the row before it.

    Attributes:
        tokens: Tokens of each row, by row number.
        numbers: Row numbers in this order.
        common: For each row in this order, the tokens that begin both it and the row before it.
    """

    def __init__(self, rows: Sequence[TokenRow]) -> None:
        self.tokens = [np.array(row.tokens()) for row in rows]
        # Big-endian bytes sort as the numbers do, and faster than tuples of them.
        keys = [tokens.astype(">u4").tobytes() for tokens in self.tokens]
        self.numbers = sorted(range(len(rows)), key=keys.__getitem__)
        arrays = [self.tokens[number] for number in self.numbers]
        self.common = [0, *map(_common, arrays, arrays[1:])]
        self._prompts = [len(rows[number].prompt_ids) for number in self.numbers]
        self._lengths = list(map(len, arrays))

    def shared(self, first: int = 0) -> Iterator[tuple[int, int]]:
        """Yield row number and shared tokens of each row from the place `first` of the order on.

        Shared tokens are those that a forward pass of these rows computed for earlier ones.
        """
        branches: list[int] = []
        for place in range(first, len(self.numbers)):
            shared = self._branch(place, branches) if place > first else 0
            while branches and branches[-1] > shared:
                branches.pop()
            if shared and (not branches or branches[-1] < shared):
                branches.append(shared)
            yield self.numbers[place], shared

    def _branch(self, place: int, branches: Sequence[int]) -> int:
        """Return after how many tokens the row leaves the path of the row before it."""
        common = self.common[place]
        if common == self._lengths[place] == self._lengths[place - 1]:
            return common
        ends = (*branches, self._prompts[place - 1], self._prompts[place])
        nearest = max((end for end in ends if end <= common), default=0)
        block = common // BRANCH_TOKENS * BRANCH_TOKENS
        return block if block - nearest >= BRANCH_TOKENS else nearest


def prefix_trees(rows: Sequence[TokenRow]) -> PrefixTrees:
    """Build the prefix trees of rows."""
    order = RowOrder(rows)
    roots: list[_Node] = []
    path: list[_Node] = []  # of the row before
    for number, shared in order.shared():
        while path and path[-1].first >= shared:
            path.pop()
        if path and path[-1].last > shared:
            path[-1].split(shared)
        if shared == rows[number].num_tokens:
            path[-1].rows.append(number)
            continue
        node = _Node(shared, rows[number].num_tokens, [number])
        (path[-1].children if path else roots).append(node)
        path.append(node)
    return _lay_out(rows, order.tokens, roots)


@dataclass(slots=True)
class _Node:
    """Segment of a tree that is still built.

    Attributes:
        first: Number of tokens before the segment in its rows.
        last: The same after the segment.
        rows: Numbers of the rows that end with the segment.
        children: Segments that follow it.
    """

    first: int
    last: int
    rows: list[int]
    children: list["_Node"] = field(default_factory=list)

    def split(self, place: int) -> None:
        """Move the tokens from `place` on to a child."""
        self.children = [_Node(place, self.last, self.rows, self.children)]
        self.last, self.rows = place, []

    def a_row(self) -> int:
        """Return the number of a row that the segment is part of."""
        node = self
        while not node.rows:
            node = node.children[0]
        return node.rows[0]


def _lay_out(
    rows: Sequence[TokenRow], row_tokens: Sequence[Indices], roots: Sequence[_Node]
) -> PrefixTrees:
    tokens: list[Indices] = []
    positions: list[Indices] = []
    starts: list[int] = []
    ends: list[int] = []
    parents: list[int] = []
    sources = [np.empty(0, np.int64)] * len(rows)
    end = 0
    waiting = [(root, -1, np.empty(0, np.int64)) for root in reversed(roots)]
    while waiting:
        node, parent, before = waiting.pop()
        start, end = end, end + node.last - node.first
        tokens.append(row_tokens[node.a_row()][node.first : node.last])
        positions.append(np.arange(node.first, node.last))
        path = np.concatenate([before, np.arange(start, end)])
        for number in node.rows:
            sources[number] = path[len(rows[number].prompt_ids) - 1 :]
        waiting += [(child, len(starts), path) for child in reversed(node.children)]
        starts.append(start)
        ends.append(end)
        parents.append(parent)
    subtree_ends = list(ends)
    for segment in range(len(parents) - 1, -1, -1):
        if parents[segment] >= 0:
            parent = parents[segment]
            subtree_ends[parent] = max(subtree_ends[parent], subtree_ends[segment])
    whole = np.concatenate(tokens), np.concatenate(positions)
    return PrefixTrees(*whole, starts, ends, subtree_ends, parents, sources)


def _common(one: Indices, other: Indices) -> int:
    """Return the number of tokens that begin both."""
    length = min(len(one), len(other))
    differs = one[:length] != other[:length]
    return int(differs.argmax()) if differs.any() else length
