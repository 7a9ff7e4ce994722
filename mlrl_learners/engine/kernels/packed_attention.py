"""Attention over packed sequences: each completion attends to its prompt and to itself.

A pack is one sequence: a prompt followed by its completions. Masked attention over a pack of G
completions computes the scores between all pairs of them and masks them, G times the work. Here
tokens are regrouped into batches of prompts `[L, P]` and of completions `[R, C]`.
"""

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

__all__ = ["PackGrid", "attend_in_packs", "can_attend_in_packs", "grid_of"]

NAME = "mlrl_packs"
# Options of some families' attention that are not implemented here.
UNKNOWN_OPTIONS = ("softcap", "s_aux", "position_bias", "sliding_window", "head_mask")


@dataclass(frozen=True, slots=True)
class PackGrid:
    """Regrouping of packs `[B, S]` into cells: prompts first, then completions.

    Attributes:
        num_prompts: Number of packs, L, each with one prompt.
        prompt_width: Tokens of the longest prompt, P.
        cells: For each cell, `[L * P + R * C]`, the index of its token in `[B * S]`; 0 for padding.
        places: For each token, `[B * S]`, the index of its cell.
        is_cell: Whether a cell holds a token, `[L * P + R * C]`; padding gets no gradient.
        is_token: Whether a position holds a token, `[B * S]`; padding gets no gradient.
        lines: The pack of each completion, `[R]`.
        mask: Attention mask of completions, `[R, 1, C, P + C]`.
    """

    num_prompts: int
    prompt_width: int
    cells: Tensor
    places: Tensor
    is_cell: Tensor
    is_token: Tensor
    lines: Tensor
    mask: Tensor

    @property
    def num_keys(self) -> int:
        """Number of keys of all completions, including copies of their prompts and padding."""
        return self.mask.shape[0] * self.mask.shape[-1]

    def to(self, device: torch.device) -> "PackGrid":
        """Return the grid on another device."""
        tensors = ("cells", "places", "is_cell", "is_token", "lines", "mask")
        return replace(self, **{name: getattr(self, name).to(device) for name in tensors})


def grid_of(segments: Tensor) -> PackGrid:
    """Build the grid of packs.

    Args:
        segments: `[B, S]`, 0 for a prompt, 1.. for its completions, -1 for padding. Segments are
            contiguous, and the prompt comes first.
    """
    num_lines, width = segments.shape
    counts = [torch.bincount(line[line >= 0]).tolist() for line in segments]
    prompts = [count[0] for count in counts]
    lines = [line for line, count in enumerate(counts) for length in count[1:] if length]
    lengths = [length for count in counts for length in count[1:] if length]
    prompt_width, completion_width = max(prompts), max([*lengths, 1])
    starts = _starts(counts, width)
    cells = torch.cat(
        [
            _cells([line * width for line in range(num_lines)], prompts, prompt_width),
            _cells(starts, lengths, completion_width),
        ]
    )
    places = torch.zeros(num_lines * width, dtype=torch.long)
    places[cells[cells >= 0]] = torch.nonzero(cells >= 0).squeeze(-1)
    readable = torch.tensor([prompts[line] for line in lines], dtype=torch.long)
    sees_prompt = torch.arange(prompt_width) < readable[:, None]
    sees_own = torch.ones(completion_width, completion_width, dtype=torch.bool).tril()
    shape = (len(lines), completion_width, -1)
    mask = torch.cat([sees_prompt[:, None].expand(shape), sees_own.expand(shape)], -1)
    return PackGrid(
        num_prompts=num_lines,
        prompt_width=prompt_width,
        cells=cells.clamp(min=0),
        places=places,
        is_cell=cells >= 0,
        is_token=segments.flatten() >= 0,
        lines=torch.tensor(lines, dtype=torch.long),
        mask=mask[:, None],
    )


def can_attend_in_packs(decoder: Any) -> bool:  # noqa: ANN401 - transformers ships no types
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
def attend_in_packs(decoder: Any, grid: PackGrid) -> Iterator[None]:  # noqa: ANN401
    """Let the decoder read packs inside the block, with position ids and without a mask."""
    from transformers import AttentionInterface

    AttentionInterface.register(NAME, _attend)
    config = decoder.config
    before = config._attn_implementation  # noqa: SLF001 - there is no public name for it
    token = _GRID.set(grid)
    config._attn_implementation = NAME  # noqa: SLF001
    try:
        yield
    finally:
        config._attn_implementation = before  # noqa: SLF001
        _GRID.reset(token)


_GRID: ContextVar[PackGrid] = ContextVar("grid")


def _attend(
    module: nn.Module,
    query: Tensor,  # [B, heads, S, D]
    key: Tensor,  # [B, fewer heads, S, D]
    value: Tensor,
    attention_mask: Tensor | None,  # the grid defines which positions attend
    scaling: float | None = None,
    dropout: float = 0.0,  # noqa: ARG001 - policies have none
    **options: Any,  # noqa: ANN401 - of the model's family
) -> tuple[Tensor, None]:
    """Compute attention with the signature of attention functions in `transformers`."""
    if attention_mask is not None:  # Doge adds a learned bias to the mask
        raise ValueError("packed attention does not support a mask of the model's own")
    for name in UNKNOWN_OPTIONS:
        if options.get(name) is not None:
            raise ValueError(f"packed attention does not support {name}")
    num_groups = getattr(module, "num_key_value_groups", 1)
    if query.device.type != "cpu" or not torch.is_autocast_enabled("cpu"):
        return _attend_in_grid(query, key, value, _GRID.get(), num_groups, scaling), None
    # The backward pass in bfloat16 is two to four times slower on a CPU without AMX: inputs are
    # rounded as autocast rounds them, and the computation is in float32.
    dtype = torch.get_autocast_dtype("cpu")
    with torch.autocast("cpu", enabled=False):
        query, key, value = (states.to(dtype).float() for states in (query, key, value))
        attended = _attend_in_grid(query, key, value, _GRID.get(), num_groups, scaling)
    return attended.to(dtype), None


def _attend_in_grid(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    grid: PackGrid,
    num_groups: int,
    scaling: float | None,
) -> Tensor:
    """Return the attention output of each token, `[B, S, heads, D]`."""
    prompt_q, own_q = _regroup(query, grid)
    prompt_k, own_k = _regroup(key, grid)
    prompt_v, own_v = _regroup(value, grid)
    of_prompts = _heads_attend(
        prompt_q, prompt_k, prompt_v, num_groups, is_causal=True, scale=scaling
    )
    of_completions = _heads_attend(
        own_q,
        torch.cat([prompt_k[grid.lines], own_k], 2),
        torch.cat([prompt_v[grid.lines], own_v], 2),
        num_groups,
        attn_mask=grid.mask,
        scale=scaling,
    )
    cells = torch.cat([_flat(of_prompts), _flat(of_completions)])
    tokens: Tensor = _Gather.apply(cells, grid.places, grid.cells, grid.is_cell)  # type: ignore[no-untyped-call]
    return tokens.view(query.shape[0], query.shape[2], *tokens.shape[1:])


def _heads_attend(
    query: Tensor,  # [B, heads, S, D]
    key: Tensor,  # [B, heads / groups, W, D]
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


def _regroup(states: Tensor, grid: PackGrid) -> tuple[Tensor, Tensor]:
    """Return `[B, heads, S, D]` as those of prompts `[L, heads, P, D]` and of completions."""
    cells: Tensor = _Gather.apply(  # type: ignore[no-untyped-call]
        _flat(states), grid.cells, grid.places, grid.is_token
    )
    num_cells = grid.num_prompts * grid.prompt_width
    prompts = cells[:num_cells].view(grid.num_prompts, grid.prompt_width, *cells.shape[1:])
    completion_width = grid.mask.shape[2]
    completions = cells[num_cells:].view(len(grid.lines), completion_width, *cells.shape[1:])
    return prompts.transpose(1, 2), completions.transpose(1, 2)


def _flat(states: Tensor) -> Tensor:
    """Return `[B, heads, S, D]` as `[B * S, heads, D]`."""
    return states.transpose(1, 2).flatten(0, 1)


class _Gather(torch.autograd.Function):
    """Gather of rows whose inverse is known, so that its backward pass is a gather, too."""

    @staticmethod
    def forward(
        ctx: Any,  # noqa: ANN401 - torch's
        rows: Tensor,
        index: Tensor,
        back: Tensor,
        is_row: Tensor,
    ) -> Tensor:
        ctx.save_for_backward(back, is_row)
        return rows.index_select(0, index)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None, None]:  # noqa: ANN401
        back, is_row = ctx.saved_tensors
        return gradient.index_select(0, back).mul_(is_row[:, None, None]), None, None, None


def _starts(counts: list[list[int]], width: int) -> list[int]:
    """Return the index of each completion's first token in `[B * S]`."""
    return [
        line * width + sum(count[:segment])
        for line, count in enumerate(counts)
        for segment in range(1, len(count))
        if count[segment]
    ]


def _cells(starts: list[int], lengths: list[int], width: int) -> Tensor:
    """Return token indices from each start, `[len(starts) * width]`, -1 beyond each length."""
    offsets = torch.arange(width)
    tokens = torch.tensor(starts, dtype=torch.long)[:, None] + offsets
    beyond = offsets >= torch.tensor(lengths, dtype=torch.long)[:, None]
    return tokens.masked_fill(beyond, -1).flatten()
