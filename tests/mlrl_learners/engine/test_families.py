"""Sampled log-probabilities equal the trained ones in every family, also with checkpointing."""

import pytest
import torch
from transformers import CONFIG_MAPPING, AutoModelForCausalLM

from mlrl_learners.engine import TokenRow
from mlrl_learners.errors import ConfigError
from mlrl_learners.policies import Policy, SamplingConfig, tiny_model

BOUND = 1e-5
TEMPERATURE = 0.7
PROMPTS = [[5, 6, 7], [*range(40, 51)], [9]]
ENDS = tuple(range(30))  # of 258 tokens: some answers end early, and leave the batch
RATE = 0.2

LLAMA = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 128,
    "attention_dropout": RATE,
}
HEADS = {**LLAMA, "head_dim": 8}
WINDOW = {**HEADS, "sliding_window": 8}
HIDDEN = {**LLAMA, "hidden_dropout": RATE}
RESID = {**LLAMA, "resid_pdrop": RATE, "embd_pdrop": RATE}
EXPERTS = {"num_local_experts": 4, "num_experts": 4, "num_experts_per_tok": 2}
GPT = {
    "n_embd": 32,
    "n_inner": 64,
    "n_layer": 2,
    "n_head": 4,
    "n_positions": 128,
    "attn_pdrop": RATE,
    "resid_pdrop": RATE,
    "embd_pdrop": RATE,
}
FAMILIES = {
    "apertus": LLAMA,
    "biogpt": {**LLAMA, "hidden_dropout_prob": RATE, "activation_dropout": RATE, "layerdrop": RATE},
    "bloom": {
        "hidden_size": 32,
        "n_layer": 2,
        "n_head": 4,
        "hidden_dropout": RATE,
        "attention_dropout": RATE,
    },
    "codegen": {**GPT, "rotary_dim": 4},
    "cohere": LLAMA,
    "cohere2": WINDOW,
    "deepseek_v3": {
        **LLAMA,
        "num_key_value_heads": 4,
        "q_lora_rank": 8,
        "kv_lora_rank": 8,
        "qk_rope_head_dim": 4,
        "qk_nope_head_dim": 4,
        "v_head_dim": 8,
        "n_routed_experts": 4,
        "num_experts_per_tok": 2,
        "n_group": 1,
        "topk_group": 1,
        "moe_intermediate_size": 16,
        "first_k_dense_replace": 1,
    },
    "doge": HIDDEN,
    "falcon": HIDDEN,
    "gemma": HEADS,
    "gemma2": WINDOW,
    "gemma3_text": WINDOW,
    "glm4": HEADS,
    "gpt2": GPT,
    "gpt_bigcode": GPT,
    "gpt_neo": {
        "hidden_size": 32,
        "num_layers": 2,
        "num_heads": 4,
        "window_size": 8,
        "attention_types": [[["global", "local"], 1]],
        "max_position_embeddings": 128,
        "attention_dropout": RATE,
        "embed_dropout": RATE,
        "resid_dropout": RATE,
    },
    "gpt_neox": HIDDEN,
    "gpt_oss": {**WINDOW, **EXPERTS},
    "gptj": {**GPT, "rotary_dim": 4},
    "granite": LLAMA,
    "granitemoe": {**LLAMA, **EXPERTS},
    "llama": LLAMA,
    "mistral": LLAMA,
    "mixtral": {**LLAMA, **EXPERTS, "router_jitter_noise": RATE},
    "mpt": {
        "d_model": 32,
        "n_heads": 4,
        "n_layers": 2,
        "max_seq_len": 128,
        "resid_pdrop": RATE,
        "emb_pdrop": RATE,
    },
    "olmo": LLAMA,
    "olmo2": LLAMA,
    "olmoe": {**LLAMA, **EXPERTS},
    "opt": {**LLAMA, "ffn_dim": 64, "word_embed_proj_dim": 32, "dropout": RATE, "layerdrop": RATE},
    "persimmon": HIDDEN,
    "phi": RESID,
    "phi3": RESID,
    "phimoe": {**LLAMA, **EXPERTS, "router_jitter_noise": RATE, "input_jitter_noise": RATE},
    "qwen2": LLAMA,
    "qwen2_moe": {**LLAMA, **EXPERTS, "moe_intermediate_size": 32},
    "qwen3": HEADS,
    "qwen3_moe": {**HEADS, **EXPERTS, "moe_intermediate_size": 32},
    "smollm3": LLAMA,
    "stablelm": HIDDEN,
    "starcoder2": {**LLAMA, "residual_dropout": RATE, "embedding_dropout": RATE},
    "xglm": {
        "d_model": 32,
        "ffn_dim": 64,
        "num_layers": 2,
        "attention_heads": 4,
        "max_position_embeddings": 512,
        "dropout": RATE,
        "attention_dropout": RATE,
        "activation_dropout": RATE,
        "layerdrop": RATE,
    },
}
STATE = {"mamba_n_heads": 8, "mamba_d_head": 8, "mamba_n_groups": 1, "mamba_d_state": 8}
CHUNKS = {"mamba_chunk_size": 8}
WITHOUT_CACHE = {  # state-space models and hybrids
    "bamba": {**LLAMA, **STATE, **CHUNKS, "attn_layer_indices": [1]},
    "falcon_h1": {**HEADS, **STATE, **CHUNKS, "mamba_d_ssm": 64},
    "falcon_mamba": {"hidden_size": 32, "num_hidden_layers": 2, "state_size": 4},
    "jamba": {
        **LLAMA,
        **EXPERTS,
        "attn_layer_period": 2,
        "attn_layer_offset": 1,
        "expert_layer_period": 2,
        "expert_layer_offset": 1,
        "mamba_d_state": 4,
    },
    "lfm2": {**LLAMA, "layer_types": ["conv", "full_attention"]},
    "mamba": {"hidden_size": 32, "num_hidden_layers": 2, "state_size": 4},
    "mamba2": {
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "state_size": 8,
        "head_dim": 8,
        "num_heads": 8,
        "n_groups": 2,
        "chunk_size": 8,
    },
    "recurrent_gemma": {**HEADS, "lru_width": 32, "attention_window_size": 8},
    "rwkv": {
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "attention_hidden_size": 32,
        "context_length": 128,
        "rescale_every": 0,
    },
}


@pytest.fixture(scope="module")
def tokenizer():
    return tiny_model()[1]


@pytest.fixture
def build(tokenizer):
    """Make a random model of a family; its weights are large enough to tell tokens apart."""

    def model_of(family, **options):
        special = {f"{kind}_token_id": tokenizer.eos_token_id for kind in ("eos", "pad")}
        sizes = {**FAMILIES, **WITHOUT_CACHE}[family]
        options = {
            **special,
            "bos_token_id": None,
            "vocab_size": len(tokenizer),
            **sizes,
            **options,
        }
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            torch.manual_seed(0)
            model = AutoModelForCausalLM.from_config(CONFIG_MAPPING[family](**options)).float()
            for name, weight in model.named_parameters():
                if weight.dim() > 1 and "A_log" not in name:
                    weight.normal_(0, 0.2)
        return model

    return model_of


@pytest.fixture
def policy_of(build, tokenizer):
    def make(family, *, gradient_checkpointing=False):
        model = build(family)
        policy = Policy(model, tokenizer, gradient_checkpointing=gradient_checkpointing)
        policy.eos_ids = ENDS
        return policy

    return make


def mismatch(policy):
    """Return the largest |sampled - trained| log-probability, of a pass with a backward pass."""
    sampling = SamplingConfig(max_new_tokens=10, temperature=TEMPERATURE, top_p=1.0, top_k=0)
    groups = policy.complete(PROMPTS, 3, sampling, seeds=range(len(PROMPTS)))
    answers = [answer for group in groups for answer in group]
    assert len({len(answer.token_ids) for answer in answers}) > 1  # mixed lengths
    sampled = torch.tensor([logprob for answer in answers for logprob in answer.logprobs])
    rows = [TokenRow(answer.prompt_ids, answer.token_ids) for answer in answers]
    trained, _ = policy.logprobs(rows, temperature=TEMPERATURE)
    trained.sum().backward()
    gradients = [weight.grad for weight in policy.parameters() if weight.grad is not None]
    assert sum(float(gradient.norm()) for gradient in gradients) > 0
    assert all(gradient.isfinite().all() for gradient in gradients)
    return float((sampled - trained.detach()).abs().max())


@pytest.mark.parametrize("checkpointing", [False, True], ids=["plain", "checkpointing"])
@pytest.mark.parametrize("family", FAMILIES)
def test_sampled_logprobs_are_the_trained_ones(family, checkpointing, policy_of):
    policy = policy_of(family, gradient_checkpointing=checkpointing)
    assert checkpointing == any(
        getattr(module, "gradient_checkpointing", False) for module in policy.model.modules()
    )
    assert policy.engine.mode.reader != "uncached"
    assert mismatch(policy) <= BOUND


@pytest.mark.filterwarnings("ignore:.*sampled without a KV cache:RuntimeWarning")
@pytest.mark.parametrize("family", WITHOUT_CACHE)
def test_models_without_a_cache_read_again_what_they_train_on(family, policy_of):
    policy = policy_of(family, gradient_checkpointing=True)
    assert policy.engine.mode.reader == "uncached"
    assert not policy.engine.mode.packs_prompts
    assert mismatch(policy) <= BOUND


@pytest.mark.parametrize("family", ["opt", "bloom", "falcon", "mixtral", "phimoe", "doge"])
def test_checkpointing_leaves_the_gradient_equal(family, policy_of):
    rows = [TokenRow([5, 6, 7], [8, 9, 10]), TokenRow([5, 6, 7], [12, 13])]
    gradients = []
    for checkpointing in (False, True):
        policy = policy_of(family, gradient_checkpointing=checkpointing)
        policy.logprobs(rows, temperature=1.0)[0].sum().backward()
        gradients.append([w.grad for w in policy.parameters() if w.grad is not None])
    for plain, saving in zip(*gradients, strict=True):
        assert torch.allclose(plain, saving, rtol=1e-4, atol=1e-4)


def test_no_dropout_rate_is_left_in_any_family(build, tokenizer):
    for family in FAMILIES:
        model = Policy(build(family), tokenizer).model
        left = [
            (family, name)
            for module in model.modules()
            for name, value in vars(module).items()
            if "drop" in name and isinstance(value, float) and value
        ]
        left += [(family, m) for m in model.modules() if isinstance(m, torch.nn.Dropout) and m.p]
        assert left == []


@pytest.fixture
def noisy(build):
    """A model with dropout that no attribute tells of."""
    model = build("llama")
    drop = torch.nn.functional.dropout
    model.model.layers[0].register_forward_hook(
        lambda layer, _, out: drop(out, 0.1, layer.training)
    )
    return model


def test_dropout_that_cannot_be_turned_off_is_refused_with_checkpointing(noisy, tokenizer):
    Policy(noisy, tokenizer)  # never in training mode
    with pytest.raises(ConfigError, match=r"'llama' models draw random numbers.*checkpointing"):
        Policy(noisy, tokenizer, gradient_checkpointing=True)


def test_the_trial_leaves_the_global_random_state_as_it_was(noisy, tokenizer):
    before = torch.get_rng_state()
    with pytest.raises(ConfigError):
        Policy(noisy, tokenizer, gradient_checkpointing=True)
    assert torch.equal(torch.get_rng_state(), before)
