"""LoRA adapters on a model with frozen weights, of which one or a mix is active at a time.

`peft` inserts the layers and defines their file format. The adapters are computed here, in forward
hooks: `peft` marks adapters as trainable or not whenever it switches between them, which a team
does at every forward pass.

Source: LoRA (arXiv 2106.09685).
"""

import contextlib
import math
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from mlrl_learners.engine.adapter_rows import AdapterMix, AdapterRows
from mlrl_learners.engine.kernels.onednn import linear
from mlrl_learners.errors import ConfigError, unknown_name

__all__ = ["AdapterLayers"]

PARTS = ("lora_A", "lora_B")


class AdapterLayers:
    """Any number of adapters on one model; without an active one it computes the base.

    Args:
        model: A `transformers` causal language model; its weights are frozen from now on.
        rank: Rank of every adapter, at least 1.
        alpha: Adapters are scaled by alpha / rank.
        targets: Ends of the names of the layers that get adapters; empty for all linear layers
            except the head.
    """

    def __init__(
        self,
        model: Any,  # noqa: ANN401 - transformers ships no types
        *,
        rank: int,
        alpha: int,
        targets: Sequence[str],
    ) -> None:
        self.model = model.requires_grad_(False)
        self._rank, self._alpha, self._ends = rank, alpha, targets
        self._targets: list[str] = []
        self._layers: dict[str, Any] = {}
        self._keys: dict[str, str] = {}  # by name, the key in peft's layers, which has no dots
        self._active: str | None = None
        self._mix: AdapterMix | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all adapters, in the order in which they were added."""
        return tuple(self._keys)

    def add(self, name: str, seed: int) -> None:
        """Add an adapter whose output is zero until it is trained.

        Args:
            name: A name that no other adapter has.
            seed: Seed of its lower matrices: equal seeds give equal adapters.

        Raises:
            UnknownNameError: If a target is no layer of the model.
            ConfigError: If `peft` does not support adapters on a target.
        """
        key = self._keys[name] = f"a{len(self._keys)}"
        self._inject(key)
        generator = torch.Generator().manual_seed(seed)
        for layer in self._layers.values():
            layer.enable_adapters(enabled=False)  # the hooks compute them
            for part in PARTS:
                getattr(layer, part)[key].float()  # half precision would lose small steps
            _draw(layer.lora_A[key].weight, generator)
        for each in self._keys:
            for parameter in self.parameters(each):
                parameter.requires_grad_(True)  # peft freezes disabled adapters

    def parameters(self, name: str) -> list[nn.Parameter]:
        """Return the weights of an adapter, always in the same order."""
        return list(self.named_parameters(name).values())

    def named_parameters(self, name: str) -> dict[str, nn.Parameter]:
        """Return the weights of an adapter by their names in `peft`'s files."""
        key = self._keys[name]
        return {
            f"base_model.model.{layer_name}.{part}.weight": getattr(layer, part)[key].weight
            for layer_name, layer in self._layers.items()
            for part in PARTS
        }

    @contextlib.contextmanager
    def active(self, name: str | None) -> Iterator[None]:
        """Compute with an adapter inside the block; None for the base alone."""
        before = self._active, self._mix
        self._active, self._mix = name, None
        try:
            yield
        finally:
            self._active, self._mix = before

    @contextlib.contextmanager
    def active_by_row(
        self, names: Sequence[str | None], mixed: Sequence[str] | None = None
    ) -> Iterator[AdapterRows]:
        """Compute rows with different adapters inside the block, without gradients.

        Args:
            names: Adapter of each row; None for the base alone.
            mixed: Adapters that are computed together, whose number rounding depends on; by default
                those of the rows.

        Yields:
            The rows; a caller selects those of its next batch by them.
        """
        used = [name for name in self._keys if name in (names if mixed is None else mixed)]
        device = next(self.model.parameters()).device
        ids = [-1 if name is None else used.index(name) for name in names]
        mix = AdapterMix([self._keys[name] for name in used], self._rank, device)
        before = self._active, self._mix
        self._active, self._mix = None, mix
        try:
            yield AdapterRows(mix, torch.tensor(ids, device=device))
        finally:
            self._active, self._mix = before

    def checkpoint_contexts(self) -> tuple[contextlib.AbstractContextManager[None], ...]:
        """Return contexts of a forward pass and of its recomputation: with the same adapter."""
        return contextlib.nullcontext(), self.active(self._active)

    def peft_config(self) -> Any:  # noqa: ANN401 - peft ships no types
        """Return the configuration that `peft` stores with an adapter."""
        from peft import LoraConfig
        from transformers.pytorch_utils import Conv1D

        return LoraConfig(
            task_type="CAUSAL_LM",
            r=self._rank,
            lora_alpha=self._alpha,
            target_modules=self._targets,
            fan_in_fan_out=any(isinstance(each, Conv1D) for each in self.model.modules()),
        )

    def _inject(self, key: str) -> None:
        """Insert an adapter into each target layer."""
        from peft import inject_adapter_in_model

        self._targets = self._targets or _target_names(self.model, self._ends)
        try:
            with torch.random.fork_rng(devices=[]):  # `add` draws the weights again
                inject_adapter_in_model(self.peft_config(), self.model, key)
        except ValueError as error:  # layers that fused kernels compute
            raise ConfigError(f"lora.targets do not fit: {str(error).splitlines()[0]}") from error
        del self.model.peft_config  # avoids a warning at the next adapter
        if not self._layers:
            modules = dict(self.model.named_modules())
            self._layers = {name: modules[name] for name in self._targets}
            for layer in self._layers.values():
                layer.register_forward_hook(self._hook)

    def _hook(self, layer: Any, inputs: tuple[Tensor, ...], output: Tensor) -> Tensor:  # noqa: ANN401
        """Return the base layer's output plus that of the active adapters."""
        if self._mix is not None:
            return self._mix.add(layer, inputs[0], output)
        if self._active is None:
            return output
        key = self._keys[self._active]
        down, up = (getattr(layer, part)[key].weight for part in PARTS)
        low = linear(inputs[0].to(down.dtype), down) * layer.scaling[key]
        return output + linear(low, up).to(output.dtype)


def _target_names(model: Any, ends: Sequence[str]) -> list[str]:  # noqa: ANN401
    """Return the names of the layers that get adapters."""
    from transformers.pytorch_utils import Conv1D

    head = model.get_output_embeddings()
    names = [
        name
        for name, module in model.named_modules()
        if isinstance(module, nn.Linear | Conv1D) and module is not head
    ]
    for end in ends:
        if not any(_ends_with(name, end) for name in names):
            known = sorted({name.rsplit(".", 1)[-1] for name in names})
            raise unknown_name("layer in lora.targets", end, known)
    return [name for name in names if not ends or any(_ends_with(name, end) for end in ends)]


def _ends_with(name: str, end: str) -> bool:
    return f".{name}".endswith(f".{end}")


def _draw(weight: Tensor, generator: torch.Generator) -> None:
    """Fill a lower matrix as LoRA does: uniform within 1 / sqrt(in)."""
    bound = 1.0 / math.sqrt(weight.shape[1])
    with torch.no_grad():
        weight.copy_(torch.empty(weight.shape).uniform_(-bound, bound, generator=generator))
