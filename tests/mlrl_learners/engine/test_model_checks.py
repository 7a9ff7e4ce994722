"""Models that cannot be trained are refused in one line that names the family."""

import pytest
import torch
from transformers import CONFIG_MAPPING, AutoModelForMaskedLM, AutoModelForSeq2SeqLM
from transformers.models.auto.modeling_auto import AutoModel, AutoModelForCausalLM

import mlrl_learners
from mlrl_learners.errors import ConfigError
from mlrl_learners.policies import Policy, tiny_model

SIZES = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 512,
}
T5 = {"d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4}
RWKV = {"attention_hidden_size": 32, "num_hidden_layers": 2, "hidden_size": 32}
REFUSED = {
    "encoder-decoder": (AutoModelForSeq2SeqLM, "t5", T5, "'t5' is an encoder-decoder model"),
    "encoder": (AutoModelForMaskedLM, "bert", SIZES, "'bert' models let a token see what comes"),
    "headless": (AutoModel, "llama", SIZES, "'llama': LlamaModel has no language-model head"),
    "own head": (AutoModelForCausalLM, "bert", {**SIZES, "is_decoder": True}, "'bert' changes its"),
    "rescaled": (AutoModelForCausalLM, "rwkv", RWKV, "'rwkv' models change their weights"),
}
FOLDERS = {
    "encoder-decoder": "'t5' is an encoder-decoder model; a causal",
    "encoder": "'bert' models let a token see what comes after it; a causal",
}


@pytest.fixture
def build():
    _, tokenizer = tiny_model()

    def pair(kind, family, sizes):
        special = {f"{name}_token_id": tokenizer.eos_token_id for name in ("eos", "pad")}
        config = CONFIG_MAPPING[family](vocab_size=len(tokenizer), **special, **sizes)
        return kind.from_config(config), tokenizer

    return pair


def make(model, **options):
    return mlrl_learners.make("magrpo", agents=("a", "b"), model=model, **options)


@pytest.mark.parametrize("case", REFUSED)
def test_a_model_in_memory_that_cannot_be_trained_is_refused_in_one_line(case, build):
    kind, family, sizes, message = REFUSED[case]
    with pytest.raises(ConfigError, match=message) as caught:
        make(build(kind, family, sizes))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("case", FOLDERS)
def test_so_is_a_folder_that_holds_one(case, build, tmp_path):
    for part in build(*REFUSED[case][:3]):
        part.save_pretrained(tmp_path)
    with pytest.raises(ConfigError, match=FOLDERS[case]) as caught:
        make(tmp_path)
    assert "\n" not in str(caught.value)


def test_a_folder_of_an_encoder_decoder_is_refused_before_its_weights_are_read(build, tmp_path):
    model, tokenizer = build(*REFUSED["encoder-decoder"][:3])
    model.config.save_pretrained(tmp_path)  # no weights at all
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(ConfigError, match="encoder-decoder"):
        make(tmp_path)


def test_a_folder_of_another_kind_of_model_is_refused(tmp_path):
    config = CONFIG_MAPPING["vit"](hidden_size=32, num_hidden_layers=1, num_attention_heads=4)
    config.save_pretrained(tmp_path)
    tiny_model()[1].save_pretrained(tmp_path)
    with pytest.raises(ConfigError, match="is of the kind ViT; a causal"):
        make(tmp_path)


def test_checkpointing_that_a_family_does_not_support_is_refused_in_one_line(build):
    sizes = {"n_embd": 32, "n_layer": 2, "n_head": 4, "dff": 64}
    model, tokenizer = build(AutoModelForCausalLM, "ctrl", sizes)
    Policy(model, tokenizer)
    message = "'ctrl' models do not support gradient_checkpointing; set it to false"
    with pytest.raises(ConfigError, match=message):
        Policy(model, tokenizer, gradient_checkpointing=True)


def test_what_a_causal_model_reads_later_is_not_taken_for_its_past():
    """The trial passes where later tokens leave earlier states equal but for rounding."""
    model, tokenizer = tiny_model()
    Policy(model.to(torch.bfloat16), tokenizer)
