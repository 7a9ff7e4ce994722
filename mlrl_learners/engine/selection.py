"""Choice of the execution path of a model, and the readers that decode with it."""

import contextlib
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import nn

from mlrl_learners.engine.cuda_graphs import GraphRecorder
from mlrl_learners.engine.families import (
    keeps_cache,
    matches_llama_reader,
    matches_static_reader,
    packs_prompts,
)
from mlrl_learners.engine.frozen_casts import frozen_casts
from mlrl_learners.engine.kernels.onednn import has_onednn, packs
from mlrl_learners.engine.llama_layers import LlamaLayers
from mlrl_learners.engine.llama_reader import LlamaReader
from mlrl_learners.engine.module_reader import ModuleReader
from mlrl_learners.engine.onednn_layers import packed_weights
from mlrl_learners.engine.reader import Reader
from mlrl_learners.engine.sharding import is_sharded
from mlrl_learners.engine.static_reader import StaticReader, without_cudnn_attention
from mlrl_learners.engine.uncached_reader import UncachedReader
from mlrl_learners.errors import ConfigError

__all__ = ["ExecutionMode", "Precision", "ReaderName", "autocast", "open_reader", "select_mode"]

Precision = Literal["float32", "bf16", "fp16"]
AUTOCAST = {"bf16": torch.bfloat16, "fp16": torch.float16}
ReaderName = Literal["module", "static", "llama", "uncached"]


@dataclass(frozen=True)
class ExecutionMode:
    """The execution path of a model.

    Attributes:
        reader: How tokens are read while sampling: `module` is the model's own forward pass,
            `static` the same at fixed shapes, replayed as CUDA graphs, `llama` a faster forward
            pass for Llama's layout, on a GPU at fixed shapes too, `uncached` a forward pass over
            whole sequences at every step.
        packs_prompts: Whether log-probabilities read tokens that begin several rows once.
        precision: `"float32"` computes in the type of the weights, the others under autocast.
        reason: Why this reader was chosen.
    """

    reader: ReaderName
    packs_prompts: bool
    precision: Precision
    reason: str

    def __str__(self) -> str:
        prompts = "packed prompts" if self.packs_prompts else "a prompt per completion"
        return f"{self.reader} reader, {prompts}, {self.precision} ({self.reason})"


def select_mode(model: nn.Module, precision: Precision) -> ExecutionMode:
    """Choose the fastest path that passes its check; the model must be prepared.

    Depends on the architecture, not on the weights, so that a resumed run gets the same path.

    Raises:
        ConfigError: If `precision` is unknown.
    """
    if precision not in ("float32", *AUTOCAST):
        raise ConfigError(f"precision must be float32, bf16 or fp16, got {precision!r}")
    device = next(model.parameters()).device
    precision = _supported(device, precision)
    if not keeps_cache(model):
        family = model.config.model_type  # type: ignore[union-attr]
        warnings.warn(
            f"{family!r} models are sampled without a KV cache here: each token"
            " reads its whole sequence again, which is slow",
            RuntimeWarning,
            stacklevel=4,
        )
        reason = "padding would change what the model's cache holds"
        return ExecutionMode("uncached", False, precision, reason)
    packs = packs_prompts(model)
    is_static = device.type == "cuda" and matches_static_reader(model)
    with autocast(device, precision):
        is_llama = (is_static or device.type == "cpu") and matches_llama_reader(model)
    if is_llama:
        where = "a GPU" if is_static else "a CPU with oneDNN"
        return ExecutionMode("llama", packs, precision, f"Llama's layout, on {where}")
    if is_static:
        return ExecutionMode("static", packs, precision, "attention over all columns, on a GPU")
    return ExecutionMode("module", packs, precision, f"no faster reader for it on {device.type}")


def autocast(
    device: torch.device, precision: Precision
) -> contextlib.AbstractContextManager[object]:
    """Return a context that computes with a precision: autocast, or nothing."""
    if precision == "float32":
        return contextlib.nullcontext()
    return torch.autocast(device.type, dtype=AUTOCAST[precision])


@contextlib.contextmanager
def open_reader(
    model: nn.Module,
    reader: ReaderName,
    recorder: GraphRecorder | None,
    *,
    num_rows: int,
    max_tokens: int,
) -> Iterator[Reader[Any]]:
    """Yield the reader of a name, with weights laid out for many small reads inside the block.

    `llama` reads at fixed shapes on a GPU and with a recorder. It is `static` or `module` if the
    model has changed and no longer fits, or if there is nothing to decode.

    Args:
        model: A prepared model.
        reader: Name of the reader.
        recorder: Records steps at fixed shapes; None computes each of them as usual.
        num_rows: Typical number of rows per read; 0 if this process decodes nothing.
        max_tokens: Most tokens that are sampled per row.
    """
    is_on_cpu = next(model.parameters()).device.type == "cpu"
    is_fixed = reader == "static" or (reader == "llama" and not (is_on_cpu and recorder is None))
    with without_cudnn_attention():
        if reader == "uncached":
            yield UncachedReader(model)
        elif reader == "llama" and num_rows and LlamaLayers.fits(model):
            if is_fixed:
                yield StaticReader(model, max_tokens, recorder, LlamaLayers(model, num_rows))
            else:
                yield LlamaReader(model, num_rows)
        else:
            with _fast_weights(model, num_rows):
                yield (
                    StaticReader(model, max_tokens, recorder) if is_fixed else ModuleReader(model)
                )


def _fast_weights(model: nn.Module, num_rows: int) -> contextlib.AbstractContextManager[None]:
    """Lay out weights for many reads, unless they are sharded."""
    if next(model.parameters()).device.type == "cpu":
        return packed_weights(model, num_rows)
    return contextlib.nullcontext() if is_sharded(model) else frozen_casts(model)


def _supported(device: torch.device, precision: Precision) -> Precision:
    """Return a precision, or float32 for bf16 on a processor without bfloat16 products.

    There, products in bfloat16 take 8 (forward) to 45 times (backward) as long as in float32 (one
    thread of an AMD EPYC with AVX2), and autocast saves no memory, because weights keep their type.
    """
    if precision != "bf16" or device.type != "cpu" or not has_onednn() or packs(torch.bfloat16):
        return precision
    warnings.warn(
        "this processor has no bfloat16 products: bf16 is computed in float32, which is faster",
        RuntimeWarning,
        stacklevel=5,
    )
    return "float32"
