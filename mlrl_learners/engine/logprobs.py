"""Log-probabilities of completions under a causal language model, with sequence packing.

A prompt is read once for all of its completions, and the head runs on completion tokens only.
"""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor, nn

from mlrl_learners.engine.kernels.head import head_logprobs
from mlrl_learners.engine.kernels.packed_attention import (
    attend_in_packs,
    can_attend_in_packs,
    grid_of,
)
from mlrl_learners.functional.restriction import Restriction
from mlrl_learners.types import Completion, Nucleus

__all__ = [
    "TokenRow",
    "completion_logprobs",
    "logprobs_and_states",
    "micro_batches",
    "num_tokens",
    "prompt_states",
    "token_states",
]

MAX_KEYS_A_TOKEN = 3  # in packed attention; more copies of prompts take too much memory


@dataclass(frozen=True, slots=True)
class TokenRow:
    """A prompt and a completion without padding; both hold at least one token.

    Attributes:
        prompt_ids: Token ids of the prompt.
        token_ids: Token ids of the completion.
        nucleus: Nuclei that log-probabilities are renormalised over; None for the whole vocabulary.
            Ignored in comparisons.
    """

    prompt_ids: Sequence[int]
    token_ids: Sequence[int]
    nucleus: Nucleus | None = field(default=None, compare=False, hash=False, repr=False)

    @classmethod
    def sampled(cls, completion: Completion) -> "TokenRow":
        """Return the row of a completion, with the nuclei it was sampled from."""
        return cls(completion.prompt_ids, completion.token_ids, completion.nucleus)


def micro_batches(
    rows: Sequence[TokenRow], max_tokens: int, *, packed: bool = True
) -> Iterator[list[int]]:
    """Split row numbers into batches of at most `max_tokens` tokens each, padding included.

    Every row is in exactly one batch; rows of one prompt stay together as far as they fit. A row
    longer than `max_tokens` is a batch of its own.

    Args:
        rows: Prompts and completions.
        max_tokens: Most tokens of a forward pass.
        packed: Whether a forward pass reads a prompt once for all of its completions.
    """
    packs = _packs(rows, max_tokens) if packed else [[number] for number in range(len(rows))]
    widths = [_width(rows, pack) for pack in packs]
    batch: list[int] = []
    size = widest = 0
    for place in sorted(range(len(packs)), key=lambda i: (-widths[i], i)):
        if batch and (size + 1) * widest > max_tokens:
            yield batch
            batch, size = [], 0
        widest = widths[place] if not batch else widest
        batch, size = batch + packs[place], size + 1
    if batch:
        yield batch


def num_tokens(rows: Sequence[TokenRow], batch: Sequence[int]) -> int:
    """Return the tokens of a batch of row numbers; prompts count once per row."""
    return sum(len(rows[i].prompt_ids) + len(rows[i].token_ids) for i in batch)


def completion_logprobs(
    model: nn.Module,
    rows: Sequence[TokenRow],
    *,
    temperature: float = 1.0,
    with_entropy: bool = True,
    packed: bool = True,
) -> tuple[Tensor, Tensor]:
    """Return log pi(token) at `temperature` for each completion token, and the entropy there.

    Both are of the distribution over the token's nucleus if its row has one.

    Packed, the rows of one prompt become one sequence, the prompt followed by its completions,
    with a mask by which a completion attends to the prompt and to itself: the prompt is read once.
    Unpacked, rows are padded on the right without a mask: causal attention keeps tokens from
    attending to the padding after them, and the outputs of padding are not used.

    Args:
        model: A `transformers` causal language model.
        rows: Prompts and completions.
        temperature: Divisor of the logits; the same as in sampling.
        with_entropy: Compute the entropy (no gradient); zeros otherwise.
        packed: Read shared prompts once; the model must accept a mask `[B, 1, S, S]`.

    Returns:
        Two float32 vectors `[T]`, T the completion tokens of all rows, in order.
    """
    logprobs, entropy, _ = logprobs_and_states(
        model, rows, temperature=temperature, with_entropy=with_entropy, packed=packed
    )
    return logprobs, entropy


def logprobs_and_states(
    model: nn.Module,
    rows: Sequence[TokenRow],
    *,
    temperature: float = 1.0,
    with_entropy: bool = True,
    entropy_gradient: bool = False,
    every_state: bool = False,
    packed: bool = True,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return what `completion_logprobs` does, and the input of a value head, from one forward pass.

    Returns:
        Log-probabilities and entropies `[T]`, the latter with a gradient if `entropy_gradient`,
        and the decoder's states at the last token of each row's prompt, `[B, H]`, or, with
        `every_state`, before each completion token, `[T, H]`.
    """
    hidden = _completion_states(model.get_decoder(), rows, packed=packed)  # type: ignore[operator]
    targets = torch.tensor([token for row in rows for token in row.token_ids])
    nuclei, completions = [row.nucleus for row in rows], [row.token_ids for row in rows]
    logprobs, entropy = head_logprobs(
        model,
        hidden,
        targets.to(hidden.device),
        temperature,
        with_entropy=with_entropy,
        entropy_gradient=entropy_gradient,
        restriction=Restriction.of(nuclei, completions, hidden.device),
    )
    if every_state:
        return logprobs, entropy, hidden
    lengths = torch.tensor([len(row.token_ids) for row in rows], device=hidden.device)
    return logprobs, entropy, hidden[lengths.cumsum(0) - lengths]


def prompt_states(decoder: nn.Module, prompts: Sequence[Sequence[int]]) -> Tensor:
    """Return a decoder's states at the last token of each prompt, `[B, H]`."""
    rows = [TokenRow(prompt, (0,)) for prompt in prompts]
    return _completion_states(decoder, rows, packed=False)


def token_states(decoder: nn.Module, rows: Sequence[TokenRow], *, packed: bool = True) -> Tensor:
    """Return a decoder's states before each completion token, `[T, H]`."""
    return _completion_states(decoder, rows, packed=packed)


def _completion_states(decoder: nn.Module, rows: Sequence[TokenRow], *, packed: bool) -> Tensor:
    """Return the states that completion tokens are predicted from, `[T, H]`."""
    device = next(decoder.parameters()).device
    packs = _packs(rows) if packed else [[number] for number in range(len(rows))]
    layout = _lay_out(rows, packs)
    inputs = {"input_ids": layout.input_ids.to(device)}
    attention: AbstractContextManager[None] = nullcontext()
    if any(len(pack) > 1 for pack in packs):
        inputs["position_ids"] = layout.positions.to(device)
        grid = grid_of(layout.segments) if can_attend_in_packs(decoder) else None
        # Each completion gets a copy of its prompt's keys. With long prompts and short completions
        # that takes much memory and gains little, as a mask then wastes little work.
        if grid is not None and grid.num_keys <= MAX_KEYS_A_TOKEN * layout.input_ids.numel():
            attention = attend_in_packs(decoder, grid.to(device))
        else:
            inputs["attention_mask"] = _pack_mask(layout.segments).to(device)
    with attention:
        hidden: Tensor = decoder(**inputs, use_cache=False).last_hidden_state
    return hidden.flatten(0, 1)[layout.sources.to(device)]  # [B, S, H] -> [T, H]


@dataclass(frozen=True, slots=True)
class _Layout:
    """Layout of the tokens of a batch of packs.

    Attributes:
        input_ids: `[B, S]`, 0 for padding.
        segments: `[B, S]`, 0 for a prompt, 1.. for its completions, -1 for padding.
        positions: `[B, S]`, counted as if each completion were alone after the prompt.
        sources: `[T]`, for each completion token in the order of the rows, the index in
            `input_ids.flatten()` whose hidden state predicts it.
    """

    input_ids: Tensor
    segments: Tensor
    positions: Tensor
    sources: Tensor


def _lay_out(rows: Sequence[TokenRow], packs: Sequence[Sequence[int]]) -> _Layout:
    # In NumPy: a torch operation costs more than the few tokens of a short row that it places.
    width = max(_width(rows, pack) for pack in packs)
    shape = (len(packs), width)
    input_ids, positions = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    segments = np.full(shape, -1)
    sources = [np.empty(0, np.int64)] * len(rows)
    for line, pack in enumerate(packs):
        prompt = rows[pack[0]].prompt_ids
        end = len(prompt)
        input_ids[line, :end] = prompt
        positions[line, :end] = np.arange(end)
        segments[line, :end] = 0
        for segment, number in enumerate(pack, start=1):
            read = rows[number].token_ids[:-1]  # nothing follows the last token
            start, end = end, end + len(read)
            input_ids[line, start:end] = read
            positions[line, start:end] = np.arange(len(prompt), len(prompt) + len(read))
            segments[line, start:end] = segment
            places = np.arange(start - 1, end)
            places[0] = len(prompt) - 1
            sources[number] = line * width + places
    whole = np.concatenate(sources)
    return _Layout(*map(torch.from_numpy, (input_ids, segments, positions, whole)))


def _pack_mask(segments: Tensor) -> Tensor:
    """Return the attention mask of packs, `[B, S] -> [B, 1, S, S]`: the prompt and the own past."""
    width = segments.shape[1]
    past = torch.ones(width, width, dtype=torch.bool).tril()
    same = segments[:, :, None] == segments[:, None, :]
    prompt = (segments == 0)[:, None, :]
    return ((same | prompt) & past)[:, None]


def _packs(rows: Sequence[TokenRow], max_tokens: int | None = None) -> list[list[int]]:
    """Group row numbers by prompt, in order; a pack is at most `max_tokens` wide."""
    packs: list[list[int]] = []
    open_packs: dict[tuple[int, ...], list[int]] = {}
    widths: dict[tuple[int, ...], int] = {}
    for number, row in enumerate(rows):
        prompt = tuple(row.prompt_ids)
        width = widths.get(prompt, len(prompt)) + len(row.token_ids) - 1
        pack = open_packs.get(prompt)
        if pack is None or (max_tokens is not None and width > max_tokens):
            pack = open_packs[prompt] = []
            packs.append(pack)
            width = len(prompt) + len(row.token_ids) - 1
        pack.append(number)
        widths[prompt] = width
    return packs


def _width(rows: Sequence[TokenRow], pack: Sequence[int]) -> int:
    """Return the tokens that a pack reads: the prompt once, and completions without their last."""
    return len(rows[pack[0]].prompt_ids) + sum(len(rows[i].token_ids) - 1 for i in pack)
