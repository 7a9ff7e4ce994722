"""Loading of models by alias, folder or hub id, or from memory.

A checkpoint folder with an adapter is loaded as the base that it names with the adapter merged in.
"""

import contextlib
import copy
import difflib
import json
import logging
import re
import socket
import urllib.request
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import torch

from mlrl_envs.models import SMOLLM2, smollm2_folder
from mlrl_learners.engine.malloc import keep_freed_memory
from mlrl_learners.engine.model_checks import NEEDED, check_type
from mlrl_learners.errors import ConfigError, ModelNotFoundError, unknown_name
from mlrl_learners.policies.adapters import BASE_FILE, WEIGHTS_FILE
from mlrl_learners.policies.tiny import TINY_MODELS, tiny_model

__all__ = ["ModelSource", "load_model"]

ModelSource = str | Path | tuple[Any, Any]
ALIASES = (SMOLLM2, *TINY_MODELS)
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


def load_model(
    source: ModelSource,
    *,
    dtype: str = "float32",
    device: str = "auto",
    options: Mapping[str, Any] | None = None,
) -> tuple[Any, Any]:
    """Load a causal language model and its tokenizer.

    Args:
        source: `"smollm2-135m-instruct"`, `"tiny-random"` or `"tiny-random-gpt2"`, a folder, a hub
            id, or a `(model, tokenizer)` pair, which is copied.
        dtype: `"float32"`, `"bfloat16"` or `"float16"`.
        device: `"auto"` (a GPU if there is one), or an argument of `torch.device`.
        options: Further arguments of `from_pretrained`: revision, attention, quantisation. A model
            that is quantised or has a `device_map` keeps its type and devices.

    Raises:
        ModelNotFoundError: If no model of that name can be loaded.
        ConfigError: If dtype is unknown, the device is not available, the model does not support
            the options, or it is no causal (decoder-only) language model.
    """
    if dtype not in DTYPES:
        raise ConfigError(f"dtype must be one of {', '.join(DTYPES)}, got {dtype!r}")
    _check_options(source, options or {})
    place = _device(device)
    if place.type == "cpu":
        keep_freed_memory()
    if isinstance(source, tuple):
        check_type(source[0].config)
        model, tokenizer = copy.deepcopy(source[0]), source[1]
    elif str(source) in TINY_MODELS:
        model, tokenizer = tiny_model(family=TINY_MODELS[str(source)])
    elif (Path(source) / BASE_FILE).exists():
        return _merged(Path(source), dtype, device, options)
    else:
        folder = smollm2_folder() if str(source) == SMOLLM2 else source
        model, tokenizer = _from_pretrained(str(folder), dict(options or {}), DTYPES[dtype])
        if "device_map" in (options or {}) or _is_placed(model):
            return model, tokenizer
    return model.to(device=place, dtype=DTYPES[dtype]), tokenizer


def _check_options(source: ModelSource, options: Mapping[str, Any]) -> None:
    """Refuse options that would be ignored or are set elsewhere."""
    for key in ("dtype", "torch_dtype"):
        if key in options:
            raise ConfigError(f"model_options has {key}, but dtype is an option of its own")
    if options and (isinstance(source, tuple) or str(source) in TINY_MODELS):
        name = "a model in memory" if isinstance(source, tuple) else str(source)
        raise ConfigError(f"{name} takes no model_options, got {list(options)}")


def _is_placed(model: Any) -> bool:  # noqa: ANN401 - transformers ships no types
    """Return whether a model must keep its type and devices: quantised, or with a device map."""
    marks = ("is_quantized", "hf_quantizer", "hf_device_map")
    return any(getattr(model, mark, None) for mark in marks)


def _merged(
    folder: Path, dtype: str, device: str, options: Mapping[str, Any] | None
) -> tuple[Any, Any]:
    """Load the base that a checkpoint folder names, and merge its adapter if it has one."""
    try:
        base = str(json.loads((folder / BASE_FILE).read_text())["source"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelNotFoundError(f"{str(folder / BASE_FILE)!r} names no base: {error}") from None
    model, tokenizer = load_model(base, dtype=dtype, device=device, options=options)
    if (folder / WEIGHTS_FILE).exists():
        from peft import PeftModel

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # peft uses a deprecated name
            model = PeftModel.from_pretrained(model, str(folder)).merge_and_unload()
        for weight in model.parameters():  # peft froze them
            weight.requires_grad_(weight.is_floating_point())  # quantised ones are integers
    return model, tokenizer


def _device(name: str) -> torch.device:
    """Return a device after an allocation on it has succeeded."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        return torch.empty(0, device=name).device
    except (RuntimeError, AssertionError) as error:  # raised without CUDA support
        reason = str(error).splitlines()[0]
        raise ConfigError(f"device {name!r} cannot be used: {reason}") from error


def _from_pretrained(name: str, options: dict[str, Any], dtype: torch.dtype) -> tuple[Any, Any]:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    near = difflib.get_close_matches(name, ALIASES, n=1, cutoff=0.8)
    if near and not Path(name).exists():  # do not ask the hub for a misspelling
        raise ModelNotFoundError(str(unknown_name("model", name, ALIASES)))
    # One error is raised after all attempts have failed.
    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)
    asked = list(options)
    if not Path(name).exists() and _is_hub_unreachable():
        options = {"local_files_only": True, **options}
    shared = ("revision", "trust_remote_code", "token", "local_files_only")
    tokenizer_options = {key: options[key] for key in shared if key in options}
    _check_type(name, tokenizer_options)
    try:
        tokenizer = AutoTokenizer.from_pretrained(name, **tokenizer_options)
        model = AutoModelForCausalLM.from_pretrained(name, dtype=dtype, **options)
    except (OSError, ValueError) as error:
        raise _not_found(name, error) from error
    except (
        TypeError,
        AttributeError,
        ImportError,
    ) as error:  # unknown option or package
        if not asked:
            raise
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise ConfigError(f"model_options {asked} do not fit {name!r}: {reason}") from error
    return model, tokenizer


def _check_type(name: str, options: Mapping[str, Any]) -> None:
    """Refuse a folder or hub id of another model type before its weights are read."""
    from transformers import AutoConfig

    config = None
    with contextlib.suppress(OSError, ValueError):  # folders of peft adapters may have none
        config = AutoConfig.from_pretrained(name, **options)
    if config is not None:
        check_type(config)


def _is_hub_unreachable() -> bool:
    """Return whether the hub cannot be resolved; its client would retry for almost a minute."""
    from huggingface_hub.constants import ENDPOINT

    if urllib.request.getproxies():  # the proxy resolves it
        return False
    try:
        socket.getaddrinfo(urlsplit(ENDPOINT).hostname, None)
    except OSError:
        return True
    return False


def _not_found(name: str, error: Exception) -> ConfigError | ModelNotFoundError:
    if str(error).startswith("Unrecognized configuration class"):
        kind = re.findall(r"\.(\w+)Config'", str(error))
        return ConfigError(f"model {name!r} is of the kind {', '.join(kind)}; {NEEDED}")
    if Path(name).is_dir():
        reason = str(error).strip().splitlines()[0]
        return ModelNotFoundError(f"model folder {name!r} cannot be loaded: {reason}")
    hint = str(unknown_name("model", name, ALIASES))
    return ModelNotFoundError(
        f"{hint}; it is no folder, and no hub model of that name could be loaded either"
    )
