"""Reader for models of Llama's layout on a CPU, in a third of the operations of their own forward.

A decoding step is some thousand small operations in `transformers`, which take as long as the
matrix products on a CPU. Here projections of the same input are one product, queries and keys are
rotated together, and keys and values are written to the place and in the type that attention reads.
Logits differ by rounding only; `families.matches_llama_reader` checks that when a model is loaded.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor
from torch.nn.functional import embedding, rms_norm, scaled_dot_product_attention

from mlrl_learners.engine.kernels.onednn import pack_weight, packs, product
from mlrl_learners.engine.llama_cache import LlamaCache
from mlrl_learners.engine.onednn_layers import MAX_PACKED_BYTES, OneDnnLinear
from mlrl_learners.engine.reader import Reader

__all__ = ["LlamaReader"]

# Prompts are read in parts of at most this many tokens, whose activations stay in the processor's
# cache from one operation to the next.
PART_TOKENS = 4096
LAYOUTS = ("LlamaForCausalLM", "MistralForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM")


class LlamaReader(Reader[LlamaCache]):
    """Reads with a packed copy of the current weights, in the type of autocast if it is enabled.

    Args:
        model: A model that `fits`.
        num_rows: Typical number of rows per read; packing is optimised for it.
    """

    look_steps = 1  # a CPU need not be waited for

    def __init__(self, model: Any, num_rows: int) -> None:  # noqa: ANN401 - transformers' types
        self._dtype, body = _dtype(model), model.model
        self._embedding, self._rotary = body.embed_tokens.weight, body.rotary_emb
        self._layers = [_Layer(layer, self._dtype, num_rows) for layer in body.layers]
        self._norm = _Norm(body.norm)
        self._head = _Product([model.lm_head], self._dtype, num_rows)

    @staticmethod
    def fits(model: Any) -> bool:  # noqa: ANN401
        """Return whether a model has this layout, on a CPU, unsharded, without hooks or windows."""
        family = type(model)
        known = family.__module__.startswith("transformers.") and family.__name__ in LAYOUTS
        if not known or not packs(_dtype(model)):
            return False
        kinds = getattr(model.config, "layer_types", None) or ()
        windowed = getattr(model.config, "sliding_window", None)  # some families read only this
        if windowed or any(kind != "full_attention" for kind in kinds):
            return False
        weights = list(model.parameters())
        num_bytes = sum(weight.numel() for weight in weights) * _dtype(model).itemsize
        return (
            model.config._attn_implementation == "sdpa"  # noqa: SLF001 - there is no public name
            and all(x.device.type == "cpu" and not isinstance(x, DTensor) for x in weights)
            and all(type(layer) in (nn.Linear, OneDnnLinear) for layer in _linears(model))
            and type(model.model.embed_tokens) is nn.Embedding
            and not any(_is_altered(module) for module in model.modules())
            and len({weight.dtype for weight in weights}) == 1
            and num_bytes <= MAX_PACKED_BYTES
        )

    def cache(self) -> LlamaCache:
        """Return an empty cache."""
        return LlamaCache(len(self._layers), self._dtype)

    def read(
        self, ids: Tensor, padding_mask: Tensor | None, positions: Tensor, cache: LlamaCache
    ) -> Tensor:
        """Append tokens to the cache and return the logits after the last one, `[B, V]`."""
        num_rows = max(1, PART_TOKENS // ids.shape[1])
        if cache.width or len(ids) <= num_rows:
            return self._read_rows(ids, padding_mask, positions, cache)
        caches, logits = [], []
        for start in range(0, len(ids), num_rows):
            part = slice(start, start + num_rows)
            mask = None if padding_mask is None else padding_mask[part]
            caches.append(self.cache())
            logits.append(self._read_rows(ids[part], mask, positions[part], caches[-1]))
        cache.concatenate(caches)
        return torch.cat(logits)

    def _read_rows(
        self, ids: Tensor, padding_mask: Tensor | None, positions: Tensor, cache: LlamaCache
    ) -> Tensor:
        if padding_mask is not None and not cache.width and bool(padding_mask.all()):
            padding_mask = None  # causal attention without a mask is faster
        with torch.autocast("cpu", enabled=False):
            states = embedding(ids, self._embedding)  # [B, S, H]
            cos, sin = self._rotary(states, positions)  # [B, S, D]
            first, second = sin.chunk(2, -1)
            rotation = cos[:, :, None], torch.cat([-first, second], -1)[:, :, None]
            mask = _attention_mask(padding_mask, ids.shape[1], cache.width, self._dtype)
            cache.make_room(ids.shape[1])
            for number, layer in enumerate(self._layers):
                states = layer(states, rotation, mask, cache, number)
            cache.width += ids.shape[1]
            return self._head(self._norm(states[:, -1]))


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
        rotation: tuple[Tensor, Tensor],  # cosines and sines, [B, S, 1, D] each
        mask: Tensor | None,
        cache: LlamaCache,
        number: int,
    ) -> Tensor:
        rows, width, _ = states.shape
        heads = self._heads(self._before(states)).view(rows, width, -1, self._size)
        num_rotated = self._num_queries + self._num_keys
        rotated = _rotate(self._normed(heads[:, :, :num_rotated]), *rotation)
        queries, keys = rotated.split([self._num_queries, self._num_keys], 2)
        keys, values = cache.add(number, keys, heads[:, :, num_rotated:])
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
        if width == 1:  # grouped queries attend to their keys as if they were several tokens
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
    """One matrix product for several linear layers with the same input."""

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
    """Rotate `[B, S, heads, D]`; the first half of `sin` is negated."""
    swapped = heads.unflatten(-1, (2, -1)).flip(-2).flatten(-2)
    return (heads * cos).addcmul_(swapped, sin)


def _attention_mask(
    padding_mask: Tensor | None, new: int, width: int, dtype: torch.dtype
) -> Tensor | None:
    """Return what is added to scores, `[B, 1, S, W + S]`; None for causal attention."""
    if padding_mask is None:
        if width and new > 1:
            raise ValueError("several tokens after cached ones need a padding mask")
        return None
    visible = padding_mask.bool()[:, None] & torch.ones(new, width + new, dtype=torch.bool).tril(
        width
    )
    # Padding positions attend to themselves, because a fully masked row would produce NaN.
    visible[:, :, width:] |= torch.eye(new, dtype=torch.bool)
    return torch.zeros(visible.shape, dtype=dtype).masked_fill_(~visible, -torch.inf)[:, None]


def _dtype(model: Any) -> torch.dtype:  # noqa: ANN401
    if torch.is_autocast_enabled("cpu"):
        return torch.get_autocast_dtype("cpu")
    dtype: torch.dtype = next(model.parameters()).dtype
    return dtype


def _is_altered(module: nn.Module) -> bool:
    """Return whether a module has hooks or a forward of its own."""
    hooks = module._forward_hooks or module._forward_pre_hooks  # noqa: SLF001
    return bool(hooks) or "forward" in vars(module)


def _linears(model: Any) -> list[nn.Module]:  # noqa: ANN401
    """Return the linear layers whose products are computed here."""
    return [
        module
        for layer in model.model.layers
        for part in (layer.self_attn, layer.mlp)
        for name, module in part.named_children()
        if name.endswith("_proj")
    ] + [model.lm_head]
