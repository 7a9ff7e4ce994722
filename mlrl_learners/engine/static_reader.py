"""Decoding at shapes that never change, so that a GPU can replay a step instead of being told it.

Keys and values lie in buffers with room for what is to come, a mask says which columns have been
written, and where the next goes is a number on the device. Rows that have ended stay until the
room is used up: what they cost is small beside the weights that every step reads, and recording a
step anew costs as much as many steps.
"""

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from transformers.cache_utils import Cache, DynamicLayer, StaticLayer

from mlrl_learners.engine.cuda_graphs import GraphRecorder, Work

__all__ = ["ROOM_TOKENS", "StaticStep", "is_plain", "without_plans"]

ROOM_TOKENS = 256  # read all of it at every step: too much of it costs more than recording anew
ALIGNMENT = 16  # columns; attention kernels copy masks of other widths
WARM_UPS = 2
RECORDED_STEPS = 16  # fewer are not worth a recording, which takes as long as some
# What hides a column. Kernels scale and subtract scores by the block: of the least number there is
# a block with nothing else makes infinities, and NaN of their difference (cuDNN, jax-ml/jax#22078).
HIDDEN = -32768.0


class _Layer(StaticLayer):
    """Keys and values of a layer in buffers that stay; all layers share the next column."""

    keys: Tensor
    values: Tensor

    def __init__(self, keys: Tensor, values: Tensor, length: int, column: Tensor) -> None:
        super().__init__(max_cache_len=length)
        self.keys, self.values = _with_room(keys, length), _with_room(values, length)
        self.cumulative_length = column
        self.dtype, self.device, self.is_initialized = self.keys.dtype, keys.device, True

    def update(
        self, key_states: Tensor, value_states: Tensor, *_: object, **__: object
    ) -> tuple[Tensor, Tensor]:
        """Write one token's keys and values, `[B, heads, 1, head size]`."""
        column = self.cumulative_length[None]
        self.keys.index_copy_(2, column, key_states.to(self.keys.dtype))
        self.values.index_copy_(2, column, value_states.to(self.values.dtype))
        return self.keys, self.values


class StaticStep:
    """Reads one token a row, again and again.

    Args:
        model: A `transformers` causal language model whose attention is `"sdpa"`.
        cache: What has been read, W columns, in plain layers; taken over.
        seen: Which of them each row looks at, `[B, W]`.
        positions: The position of each row's next token, `[B]`.
        room: How many tokens are to be read before `rebuild`.
        recorder: What makes a graph of it; without one it computes as usual.
    """

    def __init__(
        self,
        model: Any,  # noqa: ANN401 - transformers ships no types
        cache: Cache,
        seen: Tensor,
        positions: Tensor,
        *,
        room: int,
        recorder: GraphRecorder | None = None,
    ) -> None:
        self._model, self._recorder = model, recorder
        self._cache: Any = cache  # of layers of two kinds, one after the other
        self._replay: Work | None = None
        self._lay_out(seen, positions, room)

    def __call__(self, tokens: Tensor) -> Tensor:
        """Read tokens, `[B]`; return the next ones' logits, `[B, V]`, good until the next call."""
        self._tokens.copy_(tokens[:, None])
        self.room -= 1
        if self._replay is not None:
            return self._replay()
        recorder = self._recorder
        if recorder is None or not recorder.usable or self._steps < RECORDED_STEPS:
            return self._compute()
        self._warm_ups += 1
        if self._warm_ups <= WARM_UPS:  # steps like all others, and none is done twice
            return recorder.warm_up(self._compute, last=self._warm_ups == WARM_UPS)
        self._replay = recorder.record(self._compute)
        return self._compute() if self._replay is None else self._replay()

    def rebuild(self, rows: Tensor, room: int) -> None:
        """Keep some rows, by number, and make room for more tokens."""
        width = self._width + self._steps - self.room
        seen = self._mask[:, 0, 0, :width] == 0
        self._replay = None  # it reads the buffers that are about to go
        for layer in self._cache.layers:
            layer.keys, layer.values = layer.keys[rows, :, :width], layer.values[rows, :, :width]
        self._lay_out(seen[rows], self._positions[rows, 0], room)

    def _lay_out(self, seen: Tensor, positions: Tensor, room: int) -> None:
        """Put what has been read into buffers, one layer after the other to save memory."""
        self._width = seen.shape[1]
        length = -(-(self._width + room) // ALIGNMENT) * ALIGNMENT
        self._column = torch.tensor(self._width, device=seen.device)
        layers = self._cache.layers
        for number, layer in enumerate(layers):
            layers[number] = _Layer(layer.keys, layer.values, length, self._column)
        hidden = torch.ones(len(seen), length, dtype=torch.bool, device=seen.device)
        hidden[:, : self._width] = ~seen
        dtype = layers[0].keys.dtype
        mask = torch.zeros(hidden.shape, dtype=dtype, device=seen.device)
        self._mask = mask.masked_fill_(hidden, HIDDEN)[:, None, None]
        self._positions = positions[:, None].clone()
        self._tokens = torch.zeros_like(self._positions)
        self.room = self._steps = room
        self._warm_ups = 0

    def _compute(self) -> Tensor:
        """Read the tokens that lie ready. All that changes is on the device: a graph holds it.

        Whatever autocast keeps, it has kept since the prompts were read: the weights that a graph
        reads are there as long as the graph is. So are the masks of adapters, until `rebuild`.
        """
        self._mask.index_fill_(-1, self._column[None], 0.0)
        logits: Tensor = self._model(
            input_ids=self._tokens,
            attention_mask=self._mask,
            position_ids=self._positions,
            past_key_values=self._cache,
            use_cache=True,
        ).logits[:, -1]
        self._positions.add_(1)
        self._column.add_(1)
        return logits


def is_plain(cache: Cache) -> bool:
    """Return whether all layers look at all columns, as those of a `StaticStep` do."""
    return all(type(layer) is DynamicLayer and layer.is_initialized for layer in cache.layers)


@contextlib.contextmanager
def without_plans() -> Iterator[None]:
    """Leave attention in the block to kernels that take any shape.

    On Hopper PyTorch prefers cuDNN, which plans for every new shape and never forgets a plan: a
    cache that grows has a new shape at every token.

    Source: `check_prefer_cudnn_attention` and `MHAGraphCache` of PyTorch.
    """
    before = torch.backends.cuda.cudnn_sdp_enabled()
    torch.backends.cuda.enable_cudnn_sdp(False)
    try:
        yield
    finally:
        torch.backends.cuda.enable_cudnn_sdp(before)


def _with_room(states: Tensor, length: int) -> Tensor:
    """Return a copy of `[B, heads, W, head size]` with more columns, in the type of attention.

    Autocast would cast all of them at every step; rotated keys are float32 under it.
    """
    kind, dtype = states.device.type, states.dtype
    if dtype == torch.float32 and torch.is_autocast_enabled(kind):
        dtype = torch.get_autocast_dtype(kind)
    rows, heads, width, size = states.shape
    buffer = torch.zeros((rows, heads, length, size), dtype=dtype, device=states.device)
    buffer[:, :, :width] = states
    return buffer
