"""Models of Llama's layout on a CPU, read in a third of the operations of their own forward pass.

A step of decoding is some thousand small operations in `transformers`, which on a CPU take as long
as the products. Here products of the same rows are one, queries and keys are rotated together, and
keys and values are written where, and in the type that, attention reads them. What comes out
differs by rounding alone; whether it does is tried when a model is loaded.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor
from torch.nn.functional import embedding, rms_norm, scaled_dot_product_attention

from mlrl_learners.engine.growing_cache import ROOM_TOKENS
from mlrl_learners.engine.kernels.onednn import has_onednn, pack_weight, product
from mlrl_learners.engine.onednn_layers import MAX_PACKED_BYTES, PACKED_DTYPES, FastLinear

__all__ = ["PlainCache", "PlainLlama"]

LAYOUTS = ("LlamaForCausalLM", "MistralForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM")


class PlainLlama:
    """A copy of a model's weights as they are now, in autocast's type where that is on.

    Args:
        model: One that `fits`.
        num_rows: About how many rows are read at once.
    """

    def __init__(self, model: Any, num_rows: int) -> None:  # noqa: ANN401 - transformers' types
        self._dtype, body = _dtype(model), model.model
        self._embedding, self._rotary = body.embed_tokens.weight, body.rotary_emb
        self._layers = [_Layer(layer, self._dtype, num_rows) for layer in body.layers]
        self._norm = _Norm(body.norm)
        self._head = _Product([model.lm_head], self._dtype, num_rows)

    @staticmethod
    def fits(model: Any) -> bool:  # noqa: ANN401
        """Return whether a model is of this layout, whole, on a CPU, of plain layers, unhooked."""
        family = type(model)
        ours = family.__module__.startswith("transformers.") and family.__name__ in LAYOUTS
        if not ours or not has_onednn():
            return False
        kinds = getattr(model.config, "layer_types", None) or ()
        windowed = getattr(model.config, "sliding_window", None)  # some look at this alone
        if windowed or any(kind != "full_attention" for kind in kinds):
            return False
        weights = list(model.parameters())
        num_bytes = sum(weight.numel() for weight in weights) * _dtype(model).itemsize
        return (
            model.config._attn_implementation == "sdpa"  # noqa: SLF001 - there is no public name
            and all(x.device.type == "cpu" and not isinstance(x, DTensor) for x in weights)
            and all(type(layer) in (nn.Linear, FastLinear) for layer in _linears(model))
            and type(model.model.embed_tokens) is nn.Embedding
            and not any(_is_altered(module) for module in model.modules())
            and len({weight.dtype for weight in weights}) == 1
            and _dtype(model) in PACKED_DTYPES
            and num_bytes <= MAX_PACKED_BYTES
        )

    def cache(self) -> "PlainCache":
        """Return room for what is read."""
        return PlainCache(len(self._layers), self._dtype)

    def read(
        self, ids: Tensor, seen: Tensor | None, positions: Tensor, cache: "PlainCache"
    ) -> Tensor:
        """Read tokens behind those in the cache.

        Args:
            ids: `[B, S]`.
            seen: Which of all tokens so far rows look at, `[B, W + S]`; None for all, as is usual.
            positions: `[B, S]`.
            cache: Of W tokens a row; S more afterwards.

        Returns:
            The logits after the last token, `[B, V]`.
        """
        with torch.autocast("cpu", enabled=False):
            states = embedding(ids, self._embedding)  # [B, S, H]
            cos, sin = self._rotary(states, positions)  # [B, S, D]
            first, second = sin.chunk(2, -1)
            turn = cos[:, :, None], torch.cat([-first, second], -1)[:, :, None]
            mask = _mask(seen, ids.shape[1], cache.width, self._dtype)
            cache.make_room(ids.shape[1])
            for number, layer in enumerate(self._layers):
                states = layer(states, turn, mask, cache, number)
            cache.width += ids.shape[1]
            return self._head(self._norm(states[:, -1]))


class PlainCache:
    """Keys and values of all layers, `[B, heads, W, D]`, in buffers with room for more."""

    def __init__(self, num_layers: int, dtype: torch.dtype) -> None:
        self.width = 0
        self._dtype = dtype
        self._buffers: list[tuple[Tensor, Tensor] | None] = [None] * num_layers
        self._capacity = 0

    def make_room(self, num_tokens: int) -> None:
        """See to it that so many more tokens fit."""
        if self.width + num_tokens > self._capacity:
            self._capacity = self.width + num_tokens + ROOM_TOKENS
            self._copy(lambda states: states)

    def add(self, layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Write a layer's new keys and values `[B, S, heads, D]`; return all there are."""
        buffers = self._buffers[layer]
        if buffers is None:
            rows, _, heads, size = keys.shape
            shape = (rows, heads, self._capacity, size)
            buffers = keys.new_empty(shape, dtype=self._dtype), values.new_empty(shape)
            self._buffers[layer] = buffers
        end = self.width + keys.shape[1]
        for buffer, new in zip(buffers, (keys, values), strict=True):
            buffer[:, :, self.width : end] = new.transpose(1, 2)
        return buffers[0][:, :, :end], buffers[1][:, :, :end]

    def batch_repeat_interleave(self, repeats: int) -> None:
        """Repeat every row, as caches of `transformers` do."""
        self._copy(lambda states: states.repeat_interleave(repeats, 0))

    def batch_select_indices(self, indices: Tensor) -> None:
        """Keep only some rows, likewise."""
        self._copy(lambda states: states[indices])

    def _copy(self, change: Any) -> None:  # noqa: ANN401 - a function of states
        for number, buffers in enumerate(self._buffers):
            if buffers is not None:
                keys, values = (self._with_room(change(b[:, :, : self.width])) for b in buffers)
                self._buffers[number] = keys, values

    def _with_room(self, states: Tensor) -> Tensor:
        rows, heads, width, size = states.shape
        buffer = states.new_empty(rows, heads, self._capacity, size)
        buffer[:, :, :width] = states
        return buffer


class _Layer:
    def __init__(self, layer: Any, dtype: torch.dtype, num_rows: int) -> None:  # noqa: ANN401
        attention, mlp = layer.self_attn, layer.mlp
        self._dtype, self._size, self._scale = dtype, attention.head_dim, attention.scaling
        self._num_queries = attention.q_proj.out_features // self._size
        self._num_keys = attention.k_proj.out_features // self._size
        self._before = _Norm(layer.input_layernorm)
        self._between = _Norm(layer.post_attention_layernorm)
        projections = [attention.q_proj, attention.k_proj, attention.v_proj]
        self._heads = _Product(projections, dtype, num_rows)
        norms = [getattr(attention, name, None) for name in ("q_norm", "k_norm")]
        self._head_norms = None if norms[0] is None else [_Norm(norm) for norm in norms]  # Qwen3
        self._out = _Product([attention.o_proj], dtype, num_rows)
        self._gate_up = _Product([mlp.gate_proj, mlp.up_proj], dtype, num_rows)
        self._down, self._act = _Product([mlp.down_proj], dtype, num_rows), mlp.act_fn

    def __call__(
        self,
        states: Tensor,  # [B, S, H]
        turn: tuple[Tensor, Tensor],  # [B, S, 1, D] each
        mask: Tensor | None,
        cache: PlainCache,
        number: int,
    ) -> Tensor:
        rows, width, _ = states.shape
        heads = self._heads(self._before(states)).view(rows, width, -1, self._size)
        num_turned = self._num_queries + self._num_keys
        turned = _rotate(self._normed(heads[:, :, :num_turned]), *turn)
        queries, keys = turned.split([self._num_queries, self._num_keys], 2)
        keys, values = cache.add(number, keys, heads[:, :, num_turned:])
        attended = self._attend(queries.to(self._dtype), keys, values, mask)
        states = states + self._out(attended)
        gate, up = self._gate_up(self._between(states)).chunk(2, -1)
        return states + self._down(self._act(gate) * up)

    def _normed(self, heads: Tensor) -> Tensor:
        if self._head_norms is None:
            return heads
        parts = heads.split([self._num_queries, self._num_keys], 2)
        normed = zip(self._head_norms, parts, strict=True)
        return torch.cat([norm(part) for norm, part in normed], 2)

    def _attend(self, queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None) -> Tensor:
        rows, width, _, size = queries.shape
        groups = self._num_queries // self._num_keys
        if width == 1:  # queries of the same keys, as if they were several tokens
            queries = queries.view(rows, self._num_keys, groups, size)
        else:
            queries = queries.transpose(1, 2)
            keys, values = (x.repeat_interleave(groups, 1) for x in (keys, values))
        attended = scaled_dot_product_attention(
            queries,
            keys,
            values,
            attn_mask=mask,
            is_causal=mask is None and width > 1,
            scale=self._scale,
        )
        return (attended if width == 1 else attended.transpose(1, 2)).reshape(rows, width, -1)


class _Product:
    """One product for several linear layers that read the same."""

    def __init__(self, layers: Sequence[Any], dtype: torch.dtype, num_rows: int) -> None:
        self._dtype = dtype
        weights = [layer.weight.detach() for layer in layers]
        weight = weights[0] if len(weights) == 1 else torch.cat(weights)
        self._packed = pack_weight(weight.to(dtype), num_rows)
        self._bias: Tensor | None = None
        if any(layer.bias is not None for layer in layers):
            zeros = [weight.new_zeros(layer.out_features) for layer in layers]
            biases = [z if x.bias is None else x.bias for x, z in zip(layers, zeros, strict=True)]
            self._bias = torch.cat(biases).detach().to(dtype)

    def __call__(self, rows: Tensor) -> Tensor:
        out = product(rows.to(self._dtype), self._packed)
        return out if self._bias is None else out + self._bias


class _Norm:
    def __init__(self, norm: Any) -> None:  # noqa: ANN401
        self._weight, self._epsilon = norm.weight.detach(), norm.variance_epsilon

    def __call__(self, states: Tensor) -> Tensor:
        weight = self._weight
        return rms_norm(states.to(weight.dtype), weight.shape, weight, self._epsilon)


def _rotate(heads: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Turn `[B, S, heads, D]`; the first half of `sin` is negative."""
    swapped = heads.unflatten(-1, (2, -1)).flip(-2).flatten(-2)
    return (heads * cos).addcmul_(swapped, sin)


def _mask(seen: Tensor | None, new: int, width: int, dtype: torch.dtype) -> Tensor | None:
    """Return what is added to scores, `[B, 1, S, W + S]`; None where rows see all before them."""
    if seen is None:
        if width and new > 1:
            raise ValueError("several tokens behind others need to be told what they see")
        return None
    visible = seen.bool()[:, None] & torch.ones(new, width + new, dtype=torch.bool).tril(width)
    # Who is no token looks at itself: nothing at all would be NaN.
    visible[:, :, width:] |= torch.eye(new, dtype=torch.bool)
    return torch.zeros(visible.shape, dtype=dtype).masked_fill_(~visible, -torch.inf)[:, None]


def _dtype(model: Any) -> torch.dtype:  # noqa: ANN401
    if torch.is_autocast_enabled("cpu"):
        return torch.get_autocast_dtype("cpu")
    dtype: torch.dtype = next(model.parameters()).dtype
    return dtype


def _is_altered(module: nn.Module) -> bool:
    """Return whether a module does more or else than its class says."""
    hooks = module._forward_hooks or module._forward_pre_hooks  # noqa: SLF001
    return bool(hooks) or "forward" in vars(module)


def _linears(model: Any) -> list[nn.Module]:  # noqa: ANN401
    """Return the layers that products are made of."""
    return [
        module
        for layer in model.model.layers
        for part in (layer.self_attn, layer.mlp)
        for name, module in part.named_children()
        if name.endswith("_proj")
    ] + [model.lm_head]
