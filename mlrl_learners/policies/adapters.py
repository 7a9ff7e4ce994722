"""Options of LoRA adapters, and their files.

A file holds the weights of one adapter in `peft`'s format. The base model is not stored: the folder
names it, and a fingerprint identifies its weights.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from mlrl_learners.config.options import check_unread
from mlrl_learners.engine import Engine
from mlrl_learners.errors import CheckpointError, ConfigError

__all__ = ["AdapterConfig", "FrozenBase", "fingerprint"]

BASE_FILE = "base.json"
WEIGHTS_FILE = "adapter_model.safetensors"
SAMPLED_VALUES = 1024


@dataclass(frozen=True)
class AdapterConfig:
    """Which weights are trained: all of them, or LoRA adapters on frozen ones.

    Attributes:
        rank: Rank of the adapters; 0 trains all weights, without adapters.
        alpha: Adapters are scaled by alpha / rank; at least 1.
        targets: Ends of the names of the layers that have adapters, such as `q_proj`; empty
            for all linear layers but the head.
    """

    rank: int = 0
    alpha: int = 32
    targets: Sequence[str] = ()

    def __post_init__(self) -> None:
        """Check ranges.

        Raises:
            ConfigError: If a value is outside its range, or has no effect without `rank`.
        """
        if self.rank < 0:
            raise ConfigError(f"rank must be 0 (no adapters) or more, got {self.rank}")
        if self.alpha < 1:
            raise ConfigError(f"alpha must be at least 1, got {self.alpha}")
        if self.targets and not self.rank:
            raise ConfigError(f"targets {list(self.targets)} need a rank above 0")
        if not self.rank:
            check_unread(self, ("alpha",), "rank 0: set rank above 0")


class FrozenBase:
    """Frozen weights of an engine, and the files of the adapters on them.

    Args:
        engine: Engine whose weights are frozen from now on.
        config: Rank, scale and layers of adapters.
        source: Where the model was loaded from.

    Attributes:
        layers: The adapters in memory.
        fingerprint: Hash of the frozen weights.
    """

    def __init__(self, engine: Engine, config: AdapterConfig, source: str) -> None:
        self.config, self.source = config, source
        self.layers = engine.freeze(rank=config.rank, alpha=config.alpha, targets=config.targets)
        self.fingerprint = fingerprint(engine.model)

    def save(self, name: str | None, folder: Path) -> None:
        """Write an adapter as `peft` does, and the base it belongs to; None for the base alone."""
        from safetensors.torch import save_file

        folder.mkdir(parents=True, exist_ok=True)
        base = {"source": self.source, "fingerprint": self.fingerprint}
        (folder / BASE_FILE).write_text(json.dumps(base, indent=2) + "\n")
        if name is None:
            return
        parameters = self.layers.named_parameters(name)
        weights = {key: weight.detach() for key, weight in parameters.items()}
        save_file(weights, folder / WEIGHTS_FILE, metadata={"format": "pt"})
        stored = self.layers.peft_config()
        stored.base_model_name_or_path, stored.inference_mode = self.source, True
        stored.save_pretrained(folder)

    def load(self, name: str | None, folder: Path) -> None:
        """Read the weights that `save` wrote into an adapter.

        Raises:
            CheckpointError: If the folder holds no adapter, or one of another base, of other
                layers or of another rank.
        """
        self._check_base(folder)
        if name is None:
            return
        found = _read(folder / WEIGHTS_FILE)
        own = self.layers.named_parameters(name)
        if _shapes(found) != _shapes(own):
            raise CheckpointError(
                f"the adapter in {str(folder)!r} is on other layers or of another rank than "
                f"lora.rank {self.config.rank} asks for"
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


def fingerprint(model: nn.Module) -> str:
    """Return a hash of the names, types and shapes of a model's weights and some of their values.

    At most about `2 * SAMPLED_VALUES` values per weight are read.
    """
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


def _shapes(weights: Mapping[str, Tensor]) -> dict[str, torch.Size]:
    return {key: weight.shape for key, weight in weights.items()}
