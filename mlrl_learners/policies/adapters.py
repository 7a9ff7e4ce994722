"""A frozen model and the LoRA adapters on it: one a policy, beside a single base in memory.

`peft` puts the layers in and says how they are stored. They compute here, in hooks: `peft` marks
adapters as trained or not whenever it switches between them, and a team switches all the time.

Source: LoRA (arXiv 2106.09685).
"""

import contextlib
import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from mlrl_learners.config.options import check_unread
from mlrl_learners.engine.adapter_rows import AdapterMix, AdapterRows
from mlrl_learners.engine.kernels.onednn import linear
from mlrl_learners.errors import CheckpointError, ConfigError, unknown_name

__all__ = ["AdapterConfig", "FrozenBase", "fingerprint"]

BASE_FILE = "base.json"
WEIGHTS_FILE = "adapter_model.safetensors"
SAMPLED_VALUES = 1024
PARTS = ("lora_A", "lora_B")


@dataclass(frozen=True)
class AdapterConfig:
    """Which adapters policies have.

    Attributes:
        lora_rank: Rank of the adapters; 0 trains all weights, without adapters.
        lora_alpha: Adapters count lora_alpha / lora_rank times, at least 1.
        lora_targets: Ends of the names of the layers that have adapters, such as `q_proj`; empty
            for all linear layers but the head.
    """

    lora_rank: int = 0
    lora_alpha: int = 32
    lora_targets: Sequence[str] = ()

    def __post_init__(self) -> None:
        """Check ranges.

        Raises:
            ConfigError: If a value is outside its range.
        """
        if self.lora_rank < 0:
            raise ConfigError(f"lora_rank must be 0 (no adapters) or more, got {self.lora_rank}")
        if self.lora_alpha < 1:
            raise ConfigError(f"lora_alpha must be at least 1, got {self.lora_alpha}")
        if self.lora_targets and not self.lora_rank:
            raise ConfigError(f"lora_targets {list(self.lora_targets)} need a lora_rank above 0")
        if not self.lora_rank:
            check_unread(self, ("lora_alpha",), "lora_rank 0: set lora_rank above 0")


class FrozenBase:
    """A model whose weights stay as they are, and any number of adapters on it.

    Without one that is active, the model computes as if it had none. Files hold adapters alone;
    the base is named in them, and told by a fingerprint.

    Args:
        model: A `transformers` causal language model; its weights need no gradient from now on.
        config: Rank, scale and layers of adapters.
        source: What the model was loaded from, to be found again.
    """

    def __init__(self, model: Any, config: AdapterConfig, source: str) -> None:  # noqa: ANN401
        self.model, self.config, self.source = model.requires_grad_(False), config, source
        self.fingerprint = fingerprint(model)
        self._targets: list[str] = []
        self._layers: dict[str, Any] = {}
        self._keys: dict[str, str] = {}  # what peft calls each: no dots
        self._active: str | None = None
        self._mix: AdapterMix | None = None

    def add(self, name: str, seed: int) -> None:
        """Add an adapter that changes nothing yet.

        Args:
            name: Its name, unlike all others.
            seed: Decides its weights: equal seeds, equal adapters, as copies of a model are equal.

        Raises:
            UnknownNameError: If the model has no layers of the names that are asked for.
            ConfigError: If `peft` cannot have adapters on them.
        """
        key = self._keys[name] = f"a{len(self._keys)}"
        self._inject(key)
        generator = torch.Generator().manual_seed(seed)
        for layer in self._layers.values():
            layer.enable_adapters(enabled=False)  # they compute here, not there
            for part in PARTS:
                getattr(layer, part)[key].float()  # small steps are lost in half precision
            _draw(layer.lora_A[key].weight, generator)
        for each in self._keys:
            for parameter in self.parameters(each):
                parameter.requires_grad_(True)  # which peft takes away from what is switched off

    def parameters(self, name: str) -> list[nn.Parameter]:
        """Return the weights of an adapter, in an order that never changes."""
        return list(self._named_parameters(name).values())

    @contextlib.contextmanager
    def active(self, name: str | None) -> Iterator[None]:
        """Compute with an adapter inside the block, or with the base alone."""
        before = self._active, self._mix
        self._active, self._mix = name, None
        try:
            yield
        finally:
            self._active, self._mix = before

    @contextlib.contextmanager
    def active_by_row(self, names: Sequence[str | None]) -> Iterator["AdapterRows"]:
        """Compute rows with different adapters inside the block, without gradients.

        Args:
            names: For each row, its adapter, or None for the base alone.

        Yields:
            All these rows; whoever runs the model says by them which rows it is given.
        """
        used = [name for name in self._keys if name in names]
        device = next(self.model.parameters()).device
        ids = [-1 if name is None else used.index(name) for name in names]
        mix = AdapterMix([self._keys[name] for name in used], self.config.lora_rank, device)
        before = self._active, self._mix
        self._active, self._mix = None, mix
        try:
            yield AdapterRows(mix, torch.tensor(ids, device=device))
        finally:
            self._active, self._mix = before

    def checkpoint_contexts(self) -> tuple[contextlib.AbstractContextManager[None], ...]:
        """Return contexts for a forward pass and its repetition in backward: the same adapter."""
        return contextlib.nullcontext(), self.active(self._active)

    def save(self, name: str | None, folder: Path) -> None:
        """Write an adapter as `peft` does, if one is named, and which base it belongs to."""
        from safetensors.torch import save_file

        folder.mkdir(parents=True, exist_ok=True)
        base = {"source": self.source, "fingerprint": self.fingerprint}
        (folder / BASE_FILE).write_text(json.dumps(base, indent=2) + "\n")
        if name is None:
            return
        weights = {key: weight.detach() for key, weight in self._named_parameters(name).items()}
        save_file(weights, folder / WEIGHTS_FILE, metadata={"format": "pt"})
        stored = self._peft_config()
        stored.base_model_name_or_path, stored.inference_mode = self.source, True
        stored.save_pretrained(folder)

    def load(self, name: str | None, folder: Path) -> None:
        """Read back what `save` wrote.

        Raises:
            CheckpointError: If the folder holds none, or it is of another base, layers or rank.
        """
        self._check_base(folder)
        if name is None:
            return
        found = _read(folder / WEIGHTS_FILE)
        own = self._named_parameters(name)
        if _shapes(found) != _shapes(own):
            raise CheckpointError(
                f"the adapter in {str(folder)!r} is on other layers or of another rank than "
                f"lora_rank={self.config.lora_rank} asks for"
            )
        with torch.no_grad():
            for key, weight in own.items():
                weight.copy_(found[key])

    def _check_base(self, folder: Path) -> None:
        try:
            base = json.loads((folder / BASE_FILE).read_text())
            source, mark = base["source"], base["fingerprint"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise CheckpointError(
                f"{str(folder)!r} does not say which frozen base it belongs to: {error}"
            ) from None
        if mark != self.fingerprint:
            raise CheckpointError(
                f"{str(folder)!r} belongs to the weights of {source!r}, which are not those of "
                f"{self.source!r} here"
            )

    def _inject(self, key: str) -> None:
        """Let peft put an adapter beside each layer that is to have one."""
        from peft import inject_adapter_in_model

        self._targets = self._targets or _targets(self.model, self.config.lora_targets)
        try:
            with torch.random.fork_rng(devices=[]):  # the weights it draws are drawn anew
                inject_adapter_in_model(self._peft_config(), self.model, key)
        except ValueError as error:  # layers that it knows to compute elsewhere
            raise ConfigError(f"lora_targets do not fit: {str(error).splitlines()[0]}") from error
        del self.model.peft_config  # or the next one is warned of
        if not self._layers:
            modules = dict(self.model.named_modules())
            self._layers = {name: modules[name] for name in self._targets}
            for layer in self._layers.values():
                layer.register_forward_hook(self._hook)

    def _peft_config(self) -> Any:  # noqa: ANN401 - peft ships no types
        from peft import LoraConfig
        from transformers.pytorch_utils import Conv1D

        return LoraConfig(
            task_type="CAUSAL_LM",
            r=self.config.lora_rank,
            lora_alpha=self.config.lora_alpha,
            target_modules=self._targets,
            fan_in_fan_out=any(isinstance(each, Conv1D) for each in self.model.modules()),
        )

    def _hook(self, layer: Any, inputs: tuple[Tensor, ...], output: Tensor) -> Tensor:  # noqa: ANN401
        """Return what the base layer did, and the adapters' part."""
        if self._mix is not None:
            return self._mix.add(layer, inputs[0], output)
        if self._active is None:
            return output
        key = self._keys[self._active]
        down, up = (getattr(layer, part)[key].weight for part in PARTS)
        low = linear(inputs[0].to(down.dtype), down) * layer.scaling[key]
        return output + linear(low, up).to(output.dtype)

    def _named_parameters(self, name: str) -> dict[str, nn.Parameter]:
        """Return the weights of an adapter by the names that peft stores them under."""
        key = self._keys[name]
        return {
            f"base_model.model.{layer_name}.{part}.weight": getattr(layer, part)[key].weight
            for layer_name, layer in self._layers.items()
            for part in PARTS
        }


def fingerprint(model: nn.Module) -> str:
    """Return what tells weights from others: names, types, shapes, and some of the values."""
    digest = hashlib.sha256()
    for name, weight in model.named_parameters():
        flat = weight.detach().flatten()
        some = flat[:: max(1, len(flat) // SAMPLED_VALUES)].contiguous().cpu()
        digest.update(f"{name} {weight.dtype} {tuple(weight.shape)}".encode())
        digest.update(some.view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def _read(path: Path) -> dict[str, Tensor]:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        found: dict[str, Tensor] = load_file(path)
    except (OSError, SafetensorError) as error:
        raise CheckpointError(f"{str(path)!r} is missing or damaged: {error}") from None
    return found


def _targets(model: Any, ends: Sequence[str]) -> list[str]:  # noqa: ANN401
    """Return the names of the layers that get adapters."""
    from transformers.pytorch_utils import Conv1D

    head = model.get_output_embeddings()
    names = [
        name
        for name, module in model.named_modules()
        if isinstance(module, nn.Linear | Conv1D) and module is not head
    ]
    for end in ends:
        if not any(_ends(name, end) for name in names):
            known = sorted({name.rsplit(".", 1)[-1] for name in names})
            raise unknown_name("layer in lora_targets", end, known)
    return [name for name in names if not ends or any(_ends(name, end) for end in ends)]


def _ends(name: str, end: str) -> bool:
    return f".{name}".endswith(f".{end}")


def _draw(weight: Tensor, generator: torch.Generator) -> None:
    """Fill the lower matrix as LoRA does: uniform within 1 / sqrt(in)."""
    bound = 1.0 / math.sqrt(weight.shape[1])
    with torch.no_grad():
        weight.copy_(torch.empty(weight.shape).uniform_(-bound, bound, generator=generator))


def _shapes(weights: Mapping[str, Tensor]) -> dict[str, torch.Size]:
    return {key: weight.shape for key, weight in weights.items()}
