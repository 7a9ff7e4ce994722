"""Sampled tokens of a batch, with their log-probabilities and nuclei.

During sampling all tensors stay on the device, and nothing here waits for it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mlrl_learners.engine.sampling import Draw, NucleusBlock
from mlrl_learners.errors import NumericsError
from mlrl_learners.types import Nucleus

__all__ = ["DrawnTokens", "EndOfText", "SampledTokens"]


class EndOfText(Protocol):
    """Recognises answers that their text ends."""

    num_tokens: int
    """Number of last tokens that must be read."""

    def found(self, tails: Sequence[Sequence[int]]) -> list[bool]:
        """Return of the last tokens of several answers whether their text ends each answer."""


@dataclass(frozen=True, slots=True)
class SampledTokens:
    """One sampled answer.

    Attributes:
        token_ids: Its tokens, including the end-of-sequence token if it was sampled.
        logprobs: Log-probability of each token under the distribution it was drawn from.
        ended: Whether the last token is an end-of-sequence token, or completes a text that ends it.
        nucleus: Token ids that each token was drawn from; None for the whole vocabulary.
    """

    token_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    ended: bool
    nucleus: Nucleus | None = None


class DrawnTokens:
    """Collects the answers of one batch.

    Args:
        num_rows: Number of answers, R.
        max_tokens: Most tokens of an answer.
        eos_ids: Ids that end an answer, `[E]`, on the device of all tensors here.
    """

    def __init__(self, num_rows: int, max_tokens: int, eos_ids: Tensor) -> None:
        shape, device = (num_rows, max_tokens), eos_ids.device
        self._eos_ids = eos_ids
        self._tokens = torch.zeros(shape, dtype=torch.long, device=device)
        self._logprobs = torch.zeros(shape, device=device)
        self._log_masses = torch.zeros(shape, device=device)
        self._counts = torch.full((num_rows,), max_tokens, device=device)
        self._stopped = torch.zeros(num_rows, dtype=torch.bool, device=device)
        self._nuclei: list[tuple[int, NucleusBlock]] = []  # with the step of the draw

    def add(self, step: int, rows: Tensor, ended: Tensor, draw: Draw) -> Tensor:
        """Store one token per row.

        Args:
            step: Number of tokens that the rows have.
            rows: Numbers of the answers, `[B]`.
            ended: Rows that ended before, `[B]`; their tokens are dropped.
            draw: Tokens of the rows.

        Returns:
            Rows that have ended by now, `[B]`.
        """
        # Shapes must not depend on the number of ended rows: reading it would wait for the GPU.
        self._tokens[rows, step] = draw.tokens.masked_fill(ended, 0)
        self._logprobs[rows, step] = draw.logprobs.masked_fill(ended, 0.0)
        if draw.log_masses is not None:
            self._log_masses[rows, step] = draw.log_masses
        self._nuclei += [(step, block._replace(rows=rows[block.rows])) for block in draw.nuclei]
        stops = (draw.tokens[:, None] == self._eos_ids).any(-1) & ~ended
        self._counts[rows] = self._counts[rows].masked_fill(stops, step + 1)
        return ended | stops

    def end_by_text(self, step: int, rows: Tensor, ended: Tensor, texts: EndOfText) -> Tensor:
        """End rows whose text ends the answer with the token that was added last.

        Args:
            step: Step of the last `add`.
            rows: Numbers of the answers, `[B]`.
            ended: Rows that have ended, `[B]`.
            texts: Recognises the ends.

        Returns:
            Rows that have ended by now, `[B]`.
        """
        alive = torch.nonzero(~ended).squeeze(-1)
        first = max(0, step + 1 - texts.num_tokens)
        found = texts.found(self._tokens[rows[alive], first : step + 1].tolist())
        stops = torch.zeros_like(ended)
        stops[alive] = torch.tensor(found, dtype=torch.bool, device=ended.device)
        self._stopped[rows[stops]] = True
        self._counts[rows[stops]] = step + 1
        return ended | stops

    def answers(self) -> list[SampledTokens]:
        """Return all answers, in order of their numbers.

        Raises:
            NumericsError: If a log-probability is not finite.
        """
        if not bool(self._logprobs.isfinite().all()):
            raise NumericsError(
                "the model computed logits that are not finite: take compute.dtype bfloat16 or "
                "float32 if it is float16, or other weights"
            )
        tokens, logprobs = self._tokens.tolist(), self._logprobs.tolist()
        last = self._tokens.gather(1, self._counts[:, None] - 1).squeeze(-1)
        ended = (torch.isin(last, self._eos_ids) | self._stopped).tolist()
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
            # Copies: views would keep the arrays of the whole batch in memory.
            found.append(
                Nucleus(
                    ids[start:end].copy(), sizes[first:last].copy(), log_masses[row, :count].copy()
                )
            )
            first = last
        return found

    def _entries(self) -> tuple[NDArray[np.int32], ...]:
        """Return row, step and size of each token's nucleus, and all ids, in any order."""
        by_width: dict[int, list[tuple[int, NucleusBlock]]] = {}
        for step, block in self._nuclei:
            by_width.setdefault(block.candidates.shape[1], []).append((step, block))
        parts = [self._entries_of(blocks) for blocks in by_width.values()]
        return tuple(np.concatenate(part).astype(np.int32) for part in zip(*parts, strict=True))

    def _entries_of(self, blocks: Sequence[tuple[int, NucleusBlock]]) -> list[NDArray[np.int32]]:
        """Return the `_entries` of blocks of equal width."""
        rows = torch.cat([block.rows for _, block in blocks])
        steps = torch.cat([torch.full_like(block.rows, step) for step, block in blocks])
        sizes = torch.cat([block.sizes for _, block in blocks])
        candidates = torch.cat([block.candidates for _, block in blocks])
        sizes = sizes.masked_fill(steps >= self._counts[rows], 0)  # drawn after the end
        columns = torch.arange(candidates.shape[1], device=sizes.device)
        ids = candidates[columns < sizes[:, None]]
        used = sizes > 0
        return [part.cpu().numpy() for part in (rows[used], steps[used], sizes[used], ids)]
