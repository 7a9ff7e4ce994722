"""A small Llama with one token per word of a game, saved as a folder that `transformers` loads.

The weights are random and the words are those of given texts, so that nothing is downloaded. Line
breaks and spaces are not tokens: views of games are read as sequences of words. For calculations
and programs each digit and each part of a name is a token instead, and white space belongs to the
token after it. Text that is the same in every prompt can be left out, which saves most of the
computation of a small board.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["ModelSize", "save_model", "word_tokenizer"]

END, UNKNOWN = "<end>", "<unk>"
WORDS = r"</?move>|\w+|[^\w\s]"
DIGITS = r"\s*(?:</?[a-z_]+>|\d|[^\W\d_]+|_|[^\w\s])"
NOTES = "Your last answer named no legal move. was played for you. <move></move> . , ; : < > / ?"


@dataclass(frozen=True)
class ModelSize:
    """Size of a model.

    Attributes:
        hidden_size: Width, a multiple of 4.
        num_layers: Number of layers.
        max_tokens: Most tokens that it reads.
        initializer_range: Deviation of the random weights. With the usual 0.02 attention is nearly
            uniform over a prompt, and the one word that matters has hardly any gradient.
    """

    hidden_size: int = 64
    num_layers: int = 2
    max_tokens: int = 512
    initializer_range: float = 0.125


def save_model(
    folder: Path,
    texts: Iterable[str],
    size: ModelSize,
    *,
    seed: int,
    unread: Sequence[str] = (),
    digits: bool = False,
) -> None:
    """Write a random model and its tokenizer into a folder.

    Args:
        folder: The folder, created if needed.
        texts: Texts with all words of the game.
        size: Size of the model.
        seed: Seed of the weights.
        unread: Regular expressions of text that the tokenizer removes.
        digits: Whether each digit is a token, see `word_tokenizer`.
    """
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    tokenizer = word_tokenizer(texts, unread, digits=digits)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=size.hidden_size,
        intermediate_size=2 * size.hidden_size,
        num_hidden_layers=size.num_layers,
        num_attention_heads=4,
        num_key_value_heads=4,
        max_position_embeddings=size.max_tokens,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=None,
        initializer_range=size.initializer_range,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = LlamaForCausalLM(config)
    model.float().save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def word_tokenizer(
    texts: Iterable[str], unread: Sequence[str] = (), *, digits: bool = False
) -> Any:  # noqa: ANN401 - untyped
    """Return a tokenizer with one token per word, number, tag and punctuation mark of the texts.

    Args:
        texts: Texts with all words.
        unread: Regular expressions of text that has no tokens.
        digits: Whether each digit and each part of a name with underscores is a token, and tokens
            keep the white space before them, so that numbers are decoded as they were written.
    """
    from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    splits = [
        (DIGITS if digits else WORDS, "isolated"),
        (r"\s+\z" if digits else r"\s+", "removed"),
    ]
    split = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(pattern), behavior=behavior) for pattern, behavior in splits]
    )
    read = normalizers.Sequence([normalizers.Replace(Regex(pattern), " ") for pattern in unread])
    words: dict[str, None] = {}
    for text in (NOTES, *texts):
        kept = read.normalize_str(text)
        words |= dict.fromkeys(word for word, _ in split.pre_tokenize_str(kept))
    vocabulary = {word: number for number, word in enumerate((END, UNKNOWN, *sorted(words)))}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token=UNKNOWN))
    tokenizer.normalizer = read
    tokenizer.pre_tokenizer = split
    if digits:
        tokenizer.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token=END, pad_token=END, unk_token=UNKNOWN
    )
