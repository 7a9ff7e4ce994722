"""Sampled tokens of a batch, with their log-probabilities and nuclei.

While tokens are drawn everything stays on the device, and nothing here waits for it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mlrl_learners.engine.sampling import Draw, NucleusBlock
from mlrl_learners.types import Nucleus

__all__ = ["DrawnTokens", "SampledTokens"]


@dataclass(frozen=True, slots=True)
class SampledTokens:
    """One answer as tokens; `ended` tells whether its last token is an end of sequence."""

    token_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    ended: bool
    nucleus: Nucleus | None = None


class DrawnTokens:
    """The answers of one batch, as far as they are written.

    Args:
        num_rows: Answers, R.
        max_tokens: Most tokens an answer may have.
        eos_ids: Ids that end an answer, `[E]`; their device is that of everything here.
    """

    def __init__(self, num_rows: int, max_tokens: int, eos_ids: Tensor) -> None:
        shape, device = (num_rows, max_tokens), eos_ids.device
        self._eos_ids = eos_ids
        self._tokens = torch.zeros(shape, dtype=torch.long, device=device)
        self._logprobs = torch.zeros(shape, device=device)
        self._log_masses = torch.zeros(shape, device=device)
        self._counts = torch.full((num_rows,), max_tokens, device=device)
        self._nuclei: list[tuple[int, NucleusBlock]] = []  # with the step they were drawn from at

    def add(self, step: int, rows: Tensor, ended: Tensor, draw: Draw) -> Tensor:
        """Write down one token a row.

        Args:
            step: How many tokens the rows have.
            rows: Which answers they are, `[B]`.
            ended: Which of them have ended before, `[B]`: their tokens do not count.
            draw: What was drawn.

        Returns:
            Which of them have ended now, `[B]`.
        """
        # Nothing here depends on how many rows have ended: reading that would wait for the GPU.
        self._tokens[rows, step] = draw.tokens.masked_fill(ended, 0)
        self._logprobs[rows, step] = draw.logprobs.masked_fill(ended, 0.0)
        if draw.log_masses is not None:
            self._log_masses[rows, step] = draw.log_masses
        self._nuclei += [(step, block._replace(rows=rows[block.rows])) for block in draw.nuclei]
        stops = (draw.tokens[:, None] == self._eos_ids).any(-1) & ~ended
        self._counts[rows] = self._counts[rows].masked_fill(stops, step + 1)
        return ended | stops

    def answers(self) -> list[SampledTokens]:
        """Return all answers, in order."""
        tokens, logprobs = self._tokens.tolist(), self._logprobs.tolist()
        last = self._tokens.gather(1, self._counts[:, None] - 1).squeeze(-1)
        ended = torch.isin(last, self._eos_ids).tolist()
        counts = self._counts.tolist()
        nuclei = self._nuclei_of_rows(counts) if self._nuclei else [None] * len(counts)
        return [
            SampledTokens(
                tuple(tokens[row][:count]), tuple(logprobs[row][:count]), ended[row], nuclei[row]
            )
            for row, count in enumerate(counts)
        ]

    def _nuclei_of_rows(self, counts: Sequence[int]) -> Sequence[Nucleus]:
        rows, steps, sizes, ids = self._entries()
        order = np.lexsort((steps, rows))
        starts, sizes = (np.cumsum(sizes) - sizes)[order], sizes[order]
        ends = np.cumsum(sizes)
        ids = ids[np.repeat(starts - (ends - sizes), sizes) + np.arange(len(ids))]
        log_masses = self._log_masses.cpu().numpy()
        found, first = [], 0
        for row, count in enumerate(counts):
            last = first + count
            start, end = ends[first] - sizes[first], ends[last - 1]
            # Copies: an answer must not keep the whole batch in memory.
            found.append(
                Nucleus(
                    ids[start:end].copy(), sizes[first:last].copy(), log_masses[row, :count].copy()
                )
            )
            first = last
        return found

    def _entries(self) -> tuple[NDArray[np.int32], ...]:
        """Return row, step and size of every token's nucleus, and the ids of all, in any order."""
        by_width: dict[int, list[tuple[int, NucleusBlock]]] = {}
        for step, block in self._nuclei:
            by_width.setdefault(block.candidates.shape[1], []).append((step, block))
        parts = [self._entries_of(blocks) for blocks in by_width.values()]
        return tuple(np.concatenate(part).astype(np.int32) for part in zip(*parts, strict=True))

    def _entries_of(self, blocks: Sequence[tuple[int, NucleusBlock]]) -> list[NDArray[np.int32]]:
        """Return what `_entries` does, of blocks that are as wide as one another."""
        rows = torch.cat([block.rows for _, block in blocks])
        steps = torch.cat([torch.full_like(block.rows, step) for step, block in blocks])
        sizes = torch.cat([block.sizes for _, block in blocks])
        candidates = torch.cat([block.candidates for _, block in blocks])
        sizes = sizes.masked_fill(steps >= self._counts[rows], 0)  # what ended rows drew
        columns = torch.arange(candidates.shape[1], device=sizes.device)
        ids = candidates[columns < sizes[:, None]]
        used = sizes > 0
        return [part.cpu().numpy() for part in (rows[used], steps[used], sizes[used], ids)]
