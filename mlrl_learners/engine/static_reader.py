"""Reader with tensors of fixed shapes, whose steps a GPU can replay as CUDA graphs.

Keys and values are stored in buffers with room for later tokens; a mask marks the written columns,
and the index of the next column is a tensor on the device. Ended rows stay in the batch until the
room is used up: their cost is small beside that of reading the weights at every step, and recording
a graph costs as much as many steps.
"""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from transformers.cache_utils import Cache, DynamicCache, DynamicLayer, StaticLayer

from mlrl_learners.engine.cuda_graphs import GraphRecorder
from mlrl_learners.engine.llama_layers import LlamaLayers
from mlrl_learners.engine.module_reader import ModuleReader
from mlrl_learners.engine.reader import Reader, look_steps

__all__ = ["StaticCache", "StaticReader", "attends_to_all_columns", "without_cudnn_attention"]

ROOM_TOKENS = 256  # attention reads all of it at every step: more costs more than recording again
ALIGNMENT = 16  # columns; attention kernels copy masks of other widths
WARM_UPS = 2
RECORDED_STEPS = 16  # fewer steps do not pay for a recording, which takes as long as some steps
# Added to the scores of masked columns. Kernels scale and subtract scores in blocks: with the
# lowest finite number, a fully masked block overflows to infinity and their difference is NaN
# (cuDNN, jax-ml/jax#22078).
HIDDEN = -32768.0


class _Layer(StaticLayer):
    """Keys and values of a layer in fixed buffers; all layers share the next column's index."""

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
        """Write the keys and values of one token, `[B, heads, 1, D]`, and return the buffers."""
        column = self.cumulative_length[None]
        self.keys.index_copy_(2, column, key_states.to(self.keys.dtype))
        self.values.index_copy_(2, column, value_states.to(self.values.dtype))
        return self.keys, self.values


class StaticCache:
    """Keys and values in fixed buffers, with all that a step reads and writes besides.

    Starts as the dynamic cache that prompts are read into; `lay_out` moves it to fixed buffers.

    Args:
        cache: An empty cache.
        max_tokens: Most tokens that are read after the prompts.

    Attributes:
        layers: The cache that the model is given.
        room: Tokens that fit before the buffers must be laid out again; None before `lay_out`.
        tokens: Input of a step, `[B, 1]`.
        mask: Added to attention scores, `[B, 1, 1, columns]`.
        positions: Of the next tokens, `[B, 1]`.
        column: Index of the next column, a scalar.
        steps: Room right after the last layout.
        replay: Replays the recorded step; None if none is recorded.
        warm_ups: Steps that were run on the recorder's stream since the last layout.
    """

    tokens: Tensor
    mask: Tensor
    positions: Tensor
    column: Tensor

    def __init__(self, cache: DynamicCache, max_tokens: int) -> None:
        self.layers: Any = cache  # holds dynamic layers first, then static ones
        self.room: int | None = None
        self.steps = self.warm_ups = 0
        self.replay: Callable[[], Tensor] | None = None
        self._width, self._max_tokens, self._num_read = 0, max_tokens, 0

    def add(self, layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Write the keys and values of one token, `[B, 1, heads, D]`, and return all of a layer."""
        states: Any = self.layers.layers[layer].update(keys.transpose(1, 2), values.transpose(1, 2))
        return tuple(states)

    def batch_repeat_interleave(self, repeats: int) -> None:
        """Repeat every row `repeats` times; only before `lay_out`."""
        self.layers.batch_repeat_interleave(repeats)

    def batch_select_indices(self, indices: Tensor) -> None:
        """Keep the rows `indices`, and make room for further tokens."""
        if self.room is None:
            self.layers.batch_select_indices(indices)
            return
        width = self._width + self.steps - self.room
        is_token = self.mask[indices, 0, 0, :width] == 0
        self.replay = None  # it reads the buffers that are replaced here
        for layer in self.layers.layers:
            layer.keys = layer.keys[indices, :, :width]
            layer.values = layer.values[indices, :, :width]
        self.lay_out(is_token, self.positions[indices])

    def lay_out(self, is_token: Tensor, positions: Tensor) -> None:
        """Move keys and values into fixed buffers with room, layer by layer to save memory.

        Args:
            is_token: Which of the W columns are tokens, `[B, W]`, boolean.
            positions: Of the next tokens, `[B, 1]`.
        """
        left = self._max_tokens
        if self.room is not None:
            self._num_read += self.steps - self.room
            left -= self._num_read + 1  # the last token that is sampled is not read
        self.room = self.steps = min(ROOM_TOKENS, left)
        self._width = is_token.shape[1]
        length = -(-(self._width + self.room) // ALIGNMENT) * ALIGNMENT
        self.column = torch.tensor(self._width, device=is_token.device)
        layers = self.layers.layers
        for number, layer in enumerate(layers):
            layers[number] = _Layer(layer.keys, layer.values, length, self.column)
        hidden = torch.ones(len(is_token), length, dtype=torch.bool, device=is_token.device)
        hidden[:, : self._width] = ~is_token
        mask = torch.zeros(hidden.shape, dtype=layers[0].keys.dtype, device=is_token.device)
        self.mask = mask.masked_fill_(hidden, HIDDEN)[:, None, None]
        self.positions = positions.clone()
        self.tokens = torch.zeros_like(self.positions)
        self.warm_ups = 0


class StaticReader(Reader[StaticCache]):
    """Reads prompts through `model.forward`, and single tokens at fixed shapes.

    Args:
        model: A `transformers` causal language model whose attention is `"sdpa"` and whose layers
            attend to all columns.
        max_tokens: Most tokens that are sampled.
        recorder: Records steps as CUDA graphs; None computes each step as usual.
        layers: Read single tokens in place of the model, in fewer operations; None for the model.
    """

    def __init__(
        self,
        model: nn.Module,
        max_tokens: int,
        recorder: GraphRecorder | None = None,
        layers: LlamaLayers | None = None,
    ) -> None:
        self._model: Any = model
        self._layers = layers
        self._prompt_reader = ModuleReader(model)
        self._max_tokens, self._recorder = max_tokens, recorder
        self.look_steps = look_steps(next(model.parameters()).device)

    def cache(self) -> StaticCache:
        """Return an empty cache with room for `max_tokens` tokens after the prompts."""
        return StaticCache(self._prompt_reader.cache(), self._max_tokens)

    def max_alive_share(self, cache: StaticCache) -> float:
        """Keep ended rows while there is room, and remove all of them when it is used up."""
        return 0.0 if cache.room != 0 else 1.0

    def read(
        self, ids: Tensor, padding_mask: Tensor | None, positions: Tensor, cache: StaticCache
    ) -> Tensor:
        """Append tokens to the cache and return the logits after the last one, `[B, V]`."""
        if cache.room is None:
            width = cache.layers.get_seq_length()
            if not width:
                return self._prompt_reader.read(ids, padding_mask, positions, cache.layers)
            is_token = ids.new_ones(len(ids), width) if padding_mask is None else padding_mask
            cache.lay_out(is_token[:, :width].bool(), positions)
            if self._layers is not None:
                torch.clear_autocast_cache()  # the layers have their own casts
        return self._step(ids, cache)

    def _step(self, ids: Tensor, cache: StaticCache) -> Tensor:
        """Read one token per row: from a graph if one is recorded or pays."""
        assert cache.room is not None  # noqa: S101 - laid out by `read`
        cache.tokens.copy_(ids)
        cache.room -= 1
        if cache.replay is not None:
            return cache.replay()
        recorder = self._recorder
        if recorder is None or not recorder.usable or cache.steps < RECORDED_STEPS:
            return self._compute(cache)
        cache.warm_ups += 1
        if cache.warm_ups <= WARM_UPS:  # warm-ups are ordinary steps: no step is computed twice
            last = cache.warm_ups == WARM_UPS
            return recorder.warm_up(lambda: self._compute(cache), last=last)
        cache.replay = recorder.record(lambda: self._compute(cache))
        return self._compute(cache) if cache.replay is None else cache.replay()

    def _compute(self, cache: StaticCache) -> Tensor:
        """Read `cache.tokens`; every input that changes between steps is a tensor on the device.

        Autocast keeps its casts of weights from the prompts' forward pass on, so a graph reads
        weights that outlive it. The masks of adapters stay until the next layout, too.
        """
        cache.mask.index_fill_(-1, cache.column[None], 0.0)
        if self._layers is not None:
            logits = self._layers(cache.tokens, cache.positions, cache.mask, cache)
        else:
            logits = self._model(
                input_ids=cache.tokens,
                attention_mask=cache.mask,
                position_ids=cache.positions,
                past_key_values=cache.layers,
                use_cache=True,
            ).logits[:, -1]
        cache.positions.add_(1)
        cache.column.add_(1)
        return logits


def attends_to_all_columns(cache: Cache) -> bool:
    """Return whether no layer of a filled cache has a sliding window or a recurrent state."""
    return all(type(layer) is DynamicLayer and layer.is_initialized for layer in cache.layers)


@contextlib.contextmanager
def without_cudnn_attention() -> Iterator[None]:
    """Disable cuDNN attention inside the block.

    On Hopper GPUs PyTorch prefers cuDNN, which builds an execution plan for every new shape and
    never frees it: a growing cache has a new shape at every token.

    Source: `check_prefer_cudnn_attention` and `MHAGraphCache` of PyTorch.
    """
    before = torch.backends.cuda.cudnn_sdp_enabled()
    torch.backends.cuda.enable_cudnn_sdp(False)
    try:
        yield
    finally:
        torch.backends.cuda.enable_cudnn_sdp(before)


def _with_room(states: Tensor, length: int) -> Tensor:
    """Return a copy of `[B, heads, W, D]` with `length` columns, in the type attention reads.

    Rotated keys are float32 under autocast, which would cast all of them again at every step.
    """
    kind, dtype = states.device.type, states.dtype
    if dtype == torch.float32 and torch.is_autocast_enabled(kind):
        dtype = torch.get_autocast_dtype(kind)
    rows, heads, width, size = states.shape
    buffer = torch.zeros((rows, heads, length, size), dtype=dtype, device=states.device)
    buffer[:, :, :width] = states
    return buffer
