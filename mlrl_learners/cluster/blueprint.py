"""Models as values: what a process needs to build a copy of an engine, and weights as arrays.

Weights travel as NumPy arrays, which Ray shares between the processes of a machine without copies.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mlrl_learners.engine import Engine, Precision, sharding
from mlrl_learners.errors import ConfigError
from mlrl_learners.policies import AdapterConfig, Policy

__all__ = ["Blueprint", "PackedWeights", "from_state", "pack", "to_state", "unpack"]


@dataclass(frozen=True)
class PackedWeights:
    """Weights by name.

    Attributes:
        places: Number of the array of each name; tied weights have one array.
        arrays: Bytes of each weight.
        types: Type and shape of each weight.
    """

    places: Mapping[str, int]
    arrays: tuple[NDArray[np.uint8], ...]
    types: tuple[tuple[torch.dtype, tuple[int, ...]], ...]

    @property
    def num_bytes(self) -> int:
        """Size of all arrays."""
        return sum(array.nbytes for array in self.arrays)


@dataclass(frozen=True)
class Blueprint:
    """What an engine is built from, apart from its weights.

    Attributes:
        family: Class of the model.
        config: Configuration of the model, of `transformers`.
        dtype: Type of the weights.
        precision: Precision of the engine.
        tokenizer: The tokenizer, which recognises stop texts.
        adapters: Rank, scale and layers of adapters; None for a model without a frozen base.
        names: Names of the adapters, in the order in which they were added.
    """

    family: type
    config: Any
    dtype: torch.dtype
    precision: Precision
    tokenizer: Any
    adapters: AdapterConfig | None
    names: tuple[str, ...]

    @classmethod
    def of(cls, policy: Policy) -> "Blueprint":
        """Return the blueprint of a policy's model with all adapters that it has now.

        Raises:
            ConfigError: If the model is quantised or its weights are on several devices.
        """
        model, base = policy.model, policy.base
        if any(getattr(model, mark, None) for mark in ("is_quantized", "hf_device_map")):
            raise ConfigError(
                "engine ray builds models from their configuration, which quantised models and a "
                "device_map do not allow: use engine torch"
            )
        return cls(
            family=policy.engine.family,
            config=model.config,
            dtype=next(model.parameters()).dtype,
            precision=policy.engine.precision,
            tokenizer=policy.tokenizer,
            adapters=None if base is None else base.config,
            names=() if base is None else base.layers.names,
        )

    def build(self, device: str) -> Engine:
        """Return an engine with arbitrary weights on a device."""
        with torch.random.fork_rng(devices=[]):
            model = self.family(self.config).to(device=device, dtype=self.dtype)
        engine = Engine(model.requires_grad_(False), precision=self.precision)
        if self.adapters is not None:
            layers = engine.freeze(
                rank=self.adapters.rank, alpha=self.adapters.alpha, targets=self.adapters.targets
            )
            for name in self.names:
                layers.add(name, seed=0)
        return engine


def pack(policy: Policy, *, whole: bool) -> PackedWeights:
    """Return the current weights of a policy's model.

    Args:
        policy: The policy.
        whole: All weights; otherwise those that are trained, which are adapters on a frozen base.
    """
    layers = policy.engine.adapters
    if whole or layers is None:
        return _packed(sharding.whole_weights(policy.model))
    return _packed(
        {
            f"{name}/{key}": weight
            for name in layers.names
            for key, weight in layers.named_parameters(name).items()
        }
    )


def unpack(weights: PackedWeights, engine: Engine, *, whole: bool) -> None:
    """Copy weights into an engine.

    Args:
        weights: What `pack` returned for such a model.
        engine: The engine.
        whole: As it was for `pack`.

    Raises:
        RuntimeError: If names or shapes differ from the engine's.
    """
    layers = engine.adapters
    if whole or layers is None:
        sharding.load_weights(engine.model, _tensors(weights))
        return
    found = _tensors(weights)
    with torch.no_grad():
        for name in layers.names:
            for key, weight in layers.named_parameters(name).items():
                if f"{name}/{key}" in found:
                    weight.copy_(found[f"{name}/{key}"])


def to_state(weights: PackedWeights) -> dict[str, Any]:
    """Return weights as `torch.save` writes them."""
    return {"places": dict(weights.places), "tensors": _arrays_as_tensors(weights)}


def from_state(state: Mapping[str, Any]) -> PackedWeights:
    """Return the weights that `to_state` was given."""
    found = _packed({str(number): tensor for number, tensor in enumerate(state["tensors"])})
    return PackedWeights(state["places"], found.arrays, found.types)


def _packed(state: Mapping[str, Tensor]) -> PackedWeights:
    places: dict[str, int] = {}
    number_of: dict[int, int] = {}
    arrays: list[NDArray[np.uint8]] = []
    types: list[tuple[torch.dtype, tuple[int, ...]]] = []
    for name, tensor in state.items():
        if id(tensor) not in number_of:
            number_of[id(tensor)] = len(arrays)
            flat = tensor.detach().cpu().contiguous().flatten()
            arrays.append(flat.view(torch.uint8).numpy().copy())  # updates must not change it
            types.append((tensor.dtype, tuple(tensor.shape)))
        places[name] = number_of[id(tensor)]
    return PackedWeights(places, tuple(arrays), tuple(types))


def _tensors(weights: PackedWeights) -> dict[str, Tensor]:
    tensors = _arrays_as_tensors(weights)
    return {name: tensors[number] for name, number in weights.places.items()}


def _arrays_as_tensors(weights: PackedWeights) -> list[Tensor]:
    return [
        torch.from_numpy(array.copy()).view(dtype).reshape(shape)  # shared arrays are read-only
        for array, (dtype, shape) in zip(weights.arrays, weights.types, strict=True)
    ]
