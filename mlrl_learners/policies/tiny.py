"""Tiny random models with a byte-level tokenizer, for fast offline tests of all code paths."""

from typing import Any, Literal

import torch

__all__ = ["TINY_MODELS", "TinyFamily", "tiny_model"]

TinyFamily = Literal["llama", "gpt2"]
TINY_MODELS: dict[str, TinyFamily] = {"tiny-random": "llama", "tiny-random-gpt2": "gpt2"}

CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}"
    "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def tiny_model(
    seed: int = 0, *, family: TinyFamily = "llama", hidden_size: int = 32, num_layers: int = 2
) -> tuple[Any, Any]:
    """Return a random model of about 30,000 parameters and its tokenizer of 258 tokens.

    The end-of-sequence token is also the padding token, as in many released models. `"gpt2"` is a
    base model, whose tokenizer has no chat template.

    Args:
        seed: Seed of the weights.
        family: Architecture.
        hidden_size: Width, a multiple of 4.
        num_layers: Number of layers.
    """
    tokenizer = _byte_tokenizer()
    build = _gpt2 if family == "gpt2" else _llama
    if family == "gpt2":
        tokenizer.chat_template = None
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = build(hidden_size, num_layers, tokenizer)
    return model.float(), tokenizer


def _llama(hidden_size: int, num_layers: int, tokenizer: Any) -> Any:  # noqa: ANN401 - untyped
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=hidden_size,
        intermediate_size=2 * hidden_size,
        num_hidden_layers=num_layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=4096,
        tie_word_embeddings=True,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=None,
    )
    return LlamaForCausalLM(config)


def _gpt2(hidden_size: int, num_layers: int, tokenizer: Any) -> Any:  # noqa: ANN401
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(
        vocab_size=len(tokenizer),
        n_embd=hidden_size,
        n_inner=2 * hidden_size,
        n_layer=num_layers,
        n_head=4,
        n_positions=1024,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=None,
    )
    return GPT2LMHeadModel(config)


def _byte_tokenizer() -> Any:  # noqa: ANN401
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {symbol: number for number, symbol in enumerate(alphabet)}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token="<|im_end|>",  # noqa: S106 - a token of text, not a secret
        pad_token="<|im_end|>",  # noqa: S106
        additional_special_tokens=["<|im_start|>"],
    )
    fast.chat_template = CHAT_TEMPLATE
    return fast
