"""Log-probabilities of completions under a causal language model, with sequence packing.

Tokens that begin several rows are read once, and the head runs on completion tokens only.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from mlrl_learners.engine.batching import Packing, prompt_groups
from mlrl_learners.engine.kernels.head import head_logprobs
from mlrl_learners.engine.kernels.tree_attention import attend_in_trees, can_attend_in_trees
from mlrl_learners.engine.kernels.tree_blocks import tree_blocks
from mlrl_learners.engine.prefix_trees import PrefixTrees, prefix_trees
from mlrl_learners.engine.token_rows import TokenRow
from mlrl_learners.functional.restriction import Restriction

__all__ = [
    "completion_logprobs",
    "logprobs_and_states",
    "packing_of",
    "token_states",
]


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

    Packed, the rows become prefix trees in one sequence, and tokens that rows share are read once.
    A decoder whose attention cannot be replaced gets a line for each prompt with its completions,
    and a mask. Unpacked, rows are padded on the right without a mask: causal attention keeps tokens
    from attending to the padding after them, and the outputs of padding are not used.

    Args:
        model: A `transformers` causal language model.
        rows: Prompts and completions.
        temperature: Divisor of the logits; the same as in sampling.
        with_entropy: Compute the entropy (no gradient); zeros otherwise.
        packed: Read shared tokens once; the model must accept position ids, and a mask
            `[B, 1, S, S]` if its attention cannot be replaced.

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


def token_states(decoder: nn.Module, rows: Sequence[TokenRow], *, packed: bool = True) -> Tensor:
    """Return a decoder's states before each completion token, `[T, H]`."""
    return _completion_states(decoder, rows, packed=packed)


def packing_of(decoder: nn.Module, *, packed: bool) -> Packing:
    """Return what the rows of a forward pass of this decoder share."""
    if not packed:
        return "rows"
    return "trees" if can_attend_in_trees(decoder) else "prompts"


def _completion_states(decoder: nn.Module, rows: Sequence[TokenRow], *, packed: bool) -> Tensor:
    """Return the states that completion tokens are predicted from, `[T, H]`."""
    device = next(decoder.parameters()).device
    packing = packing_of(decoder, packed=packed)
    layout = _lay_out(rows, _groups(rows, packing))
    inputs = {"input_ids": layout.input_ids.to(device)}
    attention: AbstractContextManager[None] = nullcontext()
    if any(len(trees.starts) > 1 for trees in layout.lines):
        inputs["position_ids"] = layout.positions.to(device)
        if packing == "trees":
            attention = attend_in_trees(decoder, tree_blocks(layout.lines[0]).to(device))
        else:
            inputs["attention_mask"] = _mask(layout).to(device)
    with attention:
        hidden: Tensor = decoder(**inputs, use_cache=False).last_hidden_state
    return hidden.flatten(0, 1)[layout.sources.to(device)]  # [B, S, H] -> [T, H]


@dataclass(frozen=True, slots=True)
class _Layout:
    """Layout of the tokens of a forward pass.

    Attributes:
        lines: The trees of each line of the batch, B.
        input_ids: `[B, S]`, 0 for padding.
        positions: `[B, S]`, counted as if each row were alone.
        sources: `[T]`, for each completion token in the order of the rows, the index in
            `input_ids.flatten()` whose hidden state predicts it.
    """

    lines: Sequence[PrefixTrees]
    input_ids: Tensor
    positions: Tensor
    sources: Tensor


def _groups(rows: Sequence[TokenRow], packing: Packing) -> list[list[int]]:
    """Return the row numbers of each line of a batch."""
    if packing == "trees":
        return [list(range(len(rows)))]
    return prompt_groups(rows) if packing == "prompts" else [[n] for n in range(len(rows))]


def _lay_out(rows: Sequence[TokenRow], groups: Sequence[Sequence[int]]) -> _Layout:
    # In NumPy: a torch operation costs more than the few tokens of a short row that it places.
    lines = [prefix_trees([rows[number] for number in group]) for group in groups]
    width = max(len(trees.token_ids) for trees in lines)
    input_ids, positions = np.zeros((2, len(lines), width), np.int64)
    sources = [np.empty(0, np.int64)] * len(rows)
    for line, (group, trees) in enumerate(zip(groups, lines, strict=True)):
        input_ids[line, : len(trees.token_ids)] = trees.token_ids
        positions[line, : len(trees.token_ids)] = trees.positions
        for number, places in zip(group, trees.sources, strict=True):
            sources[number] = line * width + places
    whole = np.concatenate(sources)
    return _Layout(lines, *map(torch.from_numpy, (input_ids, positions, whole)))


def _mask(layout: _Layout) -> Tensor:
    """Return the attention mask of padded lines, `[B, 1, S, S]`; padding attends to itself."""
    width = layout.input_ids.shape[1]
    mask = torch.eye(width, dtype=torch.bool).repeat(len(layout.lines), 1, 1)
    for line, trees in zip(mask, layout.lines, strict=True):
        size = len(trees.token_ids)
        line[:size, :size] = torch.from_numpy(trees.mask())
    return mask[:, None]
