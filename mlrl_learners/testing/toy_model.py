"""Tiny language model over the words of the toys, for gradients with little variance."""

from typing import Any

__all__ = ["toy_model"]

WORDS = ("Which", "Pick", "An", "A", "open", "closed", "door", "one", "?", ".", "0", "1", "2", "3")
END = "<end>"


def toy_model(seed: int = 0, *, hidden_size: int = 16) -> tuple[Any, Any]:
    """Return a random one-layer Llama and its tokenizer with one token per word, 16 tokens.

    The small vocabulary reduces the variance of the gradient of an answer of one token.

    Args:
        seed: Seed of the weights.
        hidden_size: Hidden size, a multiple of 4.
    """
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    tokenizer = _tokenizer()
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=hidden_size,
        intermediate_size=hidden_size,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=64,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=None,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = LlamaForCausalLM(config)
    return model.float(), tokenizer


def _tokenizer() -> Any:  # noqa: ANN401 - transformers ships no types
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    vocabulary = {word: number for number, word in enumerate((END, "<unk>", *WORDS))}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))  # noqa: S106 - text
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token=END,
        pad_token=END,
        unk_token="<unk>",  # noqa: S106
    )
