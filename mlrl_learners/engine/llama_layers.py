"""Forward pass of models of Llama's layout, in a third of the operations of their own.

A decoding step is some thousand small operations in `transformers`, which take as long as the
matrix products. Here projections of the same input are one product, queries and keys are rotated
together, keys are not copied for each of the queries that share them, and keys and values are
written to the place and in the type that attention reads. Logits differ by rounding only;
`families.matches_llama_reader` checks that when a model is loaded.
"""

from collections.abc import Sequence
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor
from torch.nn.functional import embedding, linear, rms_norm, scaled_dot_product_attention

from mlrl_learners.engine.kernels.onednn import pack_weight, packs, product
from mlrl_learners.engine.onednn_layers import MAX_COPIED_BYTES, OneDnnLinear

__all__ = ["KeyStore", "LlamaLayers"]

LAYOUTS = ("LlamaForCausalLM", "MistralForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM")


class KeyStore(Protocol):
    """Keys and values of all layers."""

    def add(self, layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Write new keys and values of a layer, `[B, S, heads, D]`.

        Returns:
            All keys and values of the layer, `[B, heads, W, D]` each.
        """
        ...


class LlamaLayers:
    """Computes with the weights as they are now, in the type of autocast if it is enabled.

    They are copied: packed on a CPU, merged on a GPU. On a GPU weights above `MAX_COPIED_BYTES` are
    read where they are.

    Args:
        model: A model that `fits`.
        num_rows: Typical number of rows per call; packing on a CPU is optimised for it.

    Attributes:
        dtype: Type of keys and values.
        num_layers: Number of layers.
    """

    def __init__(self, model: Any, num_rows: int) -> None:  # noqa: ANN401 - transformers' types
        self.dtype, body = _dtype(model), model.model
        self._embedding, self._rotary = body.embed_tokens.weight, body.rotary_emb
        merges = _num_bytes(model) <= MAX_COPIED_BYTES
        self._layers = [_Layer(layer, self.dtype, num_rows, merges) for layer in body.layers]
        self.num_layers = len(self._layers)
        self._norm = _Norm(body.norm)
        self._head = _Product([model.lm_head], self.dtype, num_rows)

    @staticmethod
    def fits(model: Any) -> bool:  # noqa: ANN401
        """Return whether a model has this layout, on one device, without hooks or windows."""
        family = type(model)
        known = family.__module__.startswith("transformers.") and family.__name__ in LAYOUTS
        if not known:
            return False
        kinds = getattr(model.config, "layer_types", None) or ()
        windowed = getattr(model.config, "sliding_window", None)  # some families read only this
        if windowed or any(kind != "full_attention" for kind in kinds):
            return False
        weights = list(model.parameters())
        return (
            model.config._attn_implementation == "sdpa"  # noqa: SLF001 - there is no public name
            and len({weight.device for weight in weights}) == 1
            and _can_hold(model)
            and not any(isinstance(weight, DTensor) for weight in weights)
            and all(type(layer) in (nn.Linear, OneDnnLinear) for layer in _linears(model))
            and type(model.model.embed_tokens) is nn.Embedding
            and not any(_is_altered(module) for module in model.modules())
            and len({weight.dtype for weight in weights}) == 1
        )

    def __call__(
        self, ids: Tensor, positions: Tensor, mask: Tensor | None, store: KeyStore
    ) -> Tensor:
        """Return the logits after the last tokens, `[B, V]`.

        Args:
            ids: Token ids, `[B, S]`.
            positions: Position ids, `[B, S]`.
            mask: Added to attention scores, `[B, 1, S, W]`; None for causal attention, and for one
                token that attends to all.
            store: Takes the keys and values of these tokens.
        """
        with torch.autocast(ids.device.type, enabled=False):
            states = embedding(ids, self._embedding)  # [B, S, H]
            cos, sin = self._rotary(states, positions)  # [B, S, D]
            first, second = sin.chunk(2, -1)
            rotation = cos[:, :, None], torch.cat([-first, second], -1)[:, :, None]
            for number, layer in enumerate(self._layers):
                states = layer(states, rotation, mask, store, number)
            return self._head(self._norm(states[:, -1]))


class _Layer:
    def __init__(
        self,
        layer: Any,  # noqa: ANN401
        dtype: torch.dtype,
        num_rows: int,
        merges: bool,
    ) -> None:
        products = _Product if merges else _Products
        attention, mlp = layer.self_attn, layer.mlp
        self._dtype, self._size, self._scale = dtype, attention.head_dim, attention.scaling
        self._num_queries = attention.q_proj.out_features // self._size
        self._num_keys = attention.k_proj.out_features // self._size
        self._before = _Norm(layer.input_layernorm)
        self._between = _Norm(layer.post_attention_layernorm)
        projections = [attention.q_proj, attention.k_proj, attention.v_proj]
        self._heads = products(projections, dtype, num_rows)
        norms = [getattr(attention, name, None) for name in ("q_norm", "k_norm")]
        self._head_norms = None if norms[0] is None else [_Norm(norm) for norm in norms]  # Qwen3
        self._out = _Product([attention.o_proj], dtype, num_rows)
        self._gate_up = products([mlp.gate_proj, mlp.up_proj], dtype, num_rows)
        self._down, self._act = _Product([mlp.down_proj], dtype, num_rows), mlp.act_fn

    def __call__(
        self,
        states: Tensor,  # [B, S, H]
        rotation: tuple[Tensor, Tensor],  # cosines and sines, [B, S, 1, D] each
        mask: Tensor | None,
        store: KeyStore,
        number: int,
    ) -> Tensor:
        rows, width, _ = states.shape
        heads = self._heads(self._before(states)).view(rows, width, -1, self._size)
        num_rotated = self._num_queries + self._num_keys
        rotated = _rotate(self._normed(heads[:, :, :num_rotated]), *rotation)
        queries, keys = rotated.split([self._num_queries, self._num_keys], 2)
        keys, values = store.add(number, keys, heads[:, :, num_rotated:])
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
        weight = (weights[0] if len(weights) == 1 else torch.cat(weights)).to(dtype)
        self._is_packed = weight.device.type == "cpu"
        self._weight = pack_weight(weight, num_rows) if self._is_packed else weight
        self._bias: Tensor | None = None
        if any(layer.bias is not None for layer in layers):
            zeros = [weight.new_zeros(layer.out_features) for layer in layers]
            biases = [z if x.bias is None else x.bias for x, z in zip(layers, zeros, strict=True)]
            self._bias = torch.cat(biases).detach().to(dtype)

    def __call__(self, rows: Tensor) -> Tensor:
        rows = rows.to(self._dtype)
        if not self._is_packed:
            return linear(rows, self._weight, self._bias)
        out = product(rows, self._weight)
        return out if self._bias is None else out + self._bias


class _Products:
    """The products of several layers with the same input, without a copy of their weights."""

    def __init__(self, layers: Sequence[Any], dtype: torch.dtype, num_rows: int) -> None:
        self._products = [_Product([layer], dtype, num_rows) for layer in layers]

    def __call__(self, rows: Tensor) -> Tensor:
        return torch.cat([each(rows) for each in self._products], -1)


class _Norm:
    def __init__(self, norm: Any) -> None:  # noqa: ANN401
        self._weight, self._epsilon = norm.weight.detach(), norm.variance_epsilon

    def __call__(self, states: Tensor) -> Tensor:
        # States may be beyond the range of the weights' type, such as float16.
        dtype = torch.promote_types(states.dtype, self._weight.dtype)
        weight = self._weight.to(dtype)
        return rms_norm(states.to(dtype), weight.shape, weight, self._epsilon)


def _rotate(heads: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate `[B, S, heads, D]`; the first half of `sin` is negated."""
    swapped = heads.unflatten(-1, (2, -1)).flip(-2).flatten(-2)
    return (heads * cos).addcmul_(swapped, sin)


def _dtype(model: Any) -> torch.dtype:  # noqa: ANN401
    weight = next(model.parameters())
    kind, dtype = weight.device.type, weight.dtype
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else dtype


def _num_bytes(model: Any) -> int:  # noqa: ANN401
    num_weights: int = sum(weight.numel() for weight in model.parameters())
    return num_weights * _dtype(model).itemsize


def _can_hold(model: Any) -> bool:  # noqa: ANN401
    """Return whether weights are packed or cast within the limit, or are read where they are."""
    weight, dtype = next(model.parameters()), _dtype(model)
    is_small = _num_bytes(model) <= MAX_COPIED_BYTES
    if weight.device.type == "cpu":
        return is_small and packs(dtype)
    return weight.device.type == "cuda" and (is_small or weight.dtype == dtype)


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
