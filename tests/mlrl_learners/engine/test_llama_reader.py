"""The reader for Llama's layout gives the logits of the model's own forward pass."""

import pytest
import torch
from transformers import CONFIG_MAPPING, AutoModelForCausalLM

from mlrl_learners.engine import llama_cache, llama_layers, llama_reader, selection
from mlrl_learners.engine.families import matches_llama_reader
from mlrl_learners.engine.kernels.onednn import has_onednn, pack_weight
from mlrl_learners.engine.llama_layers import LlamaLayers
from mlrl_learners.engine.llama_reader import LlamaReader
from mlrl_learners.engine.onednn_layers import use_onednn_layers
from mlrl_learners.policies import Policy, SamplingConfig, tiny_model
from tests.mlrl_learners.processors import needs_bfloat16

pytestmark = pytest.mark.skipif(not has_onednn(), reason="this torch has no oneDNN")

LENGTH = 40
SIZES = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 256,
}
FAMILIES = {
    "llama": {"num_key_value_heads": 2},
    "llama, biases": {"num_key_value_heads": 4, "attention_bias": True, "mlp_bias": True},
    "llama, stretched": {
        "num_key_value_heads": 1,
        "rope_parameters": {
            "rope_type": "llama3",
            "rope_theta": 10000.0,
            "factor": 8.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 64,
        },
    },
    "mistral": {"num_key_value_heads": 2, "sliding_window": None},
    "qwen2": {"num_key_value_heads": 2, "tie_word_embeddings": True},
    "qwen3": {"num_key_value_heads": 1, "head_dim": 16},
}
OTHERS = {
    "mistral": {"num_key_value_heads": 2, "sliding_window": 4},
    "gpt2": {"n_embd": 32, "n_layer": 2, "n_head": 4},
    "gemma": {"num_key_value_heads": 2, "head_dim": 8},
    "phi": {},
    "mistral, told otherwise": {
        "num_key_value_heads": 2,
        "sliding_window": 16,
        "layer_types": ["full_attention"] * 2,
    },
}


def model_of(family, **options):
    """A model whose biases and norms are not those that change nothing."""
    _, tokenizer = tiny_model()
    tokens = {f"{kind}_token_id": tokenizer.eos_token_id for kind in ("eos", "pad")}
    options = {**SIZES, **tokens, "vocab_size": len(tokenizer), "bos_token_id": None, **options}
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(CONFIG_MAPPING[family.split(",")[0]](**options))
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.dim() == 1:
                weight.add_(torch.randn(weight.shape) * (0.3 if "norm" in name else 0.1))
            else:
                weight.mul_(4.0)
    return model.eval(), tokenizer


def policy_of(family="llama", **options):
    return Policy(*model_of(family, **FAMILIES[family]), **options)


@pytest.mark.parametrize("seed", [0, None])
@pytest.mark.parametrize("family", FAMILIES)
def test_it_samples_the_tokens_that_the_models_own_forward_pass_samples(
    family, seed, monkeypatch, sample, compare
):
    monkeypatch.setattr(llama_cache, "ROOM_TOKENS", 7)  # a cache that grows several times
    policy = policy_of(family)
    assert policy.engine.mode.reader == "llama"
    ours = sample(policy, seed=seed)
    policy.engine.override(reader="module")
    compare(ours, sample(policy, seed=seed))


@pytest.mark.usefixtures("small_room", "rare_looks")
@pytest.mark.parametrize("seed", [0, None])
@pytest.mark.parametrize("family", ["llama", "qwen2", "qwen3"])
def test_fewer_operations_draw_the_same_tokens_at_fixed_shapes(
    family, seed, make_recorder, sample, compare
):
    policy = policy_of(family)
    policy.engine.override(reader="module")
    grown = sample(policy, seed=seed)
    policy.engine.override(reader="llama", recorder=make_recorder())
    compare(sample(policy, seed=seed), grown)
    assert policy.engine.recorder.replays > policy.engine.recorder.recordings > 1


def test_prompts_that_are_read_in_parts_are_answered_the_same(monkeypatch, sample, compare):
    monkeypatch.setattr(llama_cache, "ROOM_TOKENS", 5)
    policy = policy_of()
    whole = sample(policy)
    monkeypatch.setattr(llama_reader, "PART_TOKENS", 1)
    compare(sample(policy), whole)


def answers(policy, prompts):
    sampling = SamplingConfig(max_new_tokens=LENGTH)
    return policy.complete(prompts, 1, sampling, seeds=list(range(len(prompts))))


STEM = [7 + number % 90 for number in range(50)]


@pytest.mark.parametrize("part_tokens", [1, 150, 4096])
def test_prompts_that_begin_alike_are_answered_as_if_each_was_read_alone(
    part_tokens, monkeypatch, sample, compare
):
    monkeypatch.setattr(llama_cache, "ROOM_TOKENS", 5)
    monkeypatch.setattr(llama_reader, "PART_TOKENS", part_tokens)
    policy = policy_of()
    others = [3, *STEM]
    prompts = [[*STEM, 5, 6, 7], others, [*STEM, 8], STEM, [*others, 9, 9], [*STEM, 5, 6, 1]]
    read = []
    layers = LlamaLayers.__call__
    monkeypatch.setattr(
        LlamaLayers, "__call__", lambda *args: read.append(args[1].numel()) or layers(*args)
    )
    ours = answers(policy, prompts)
    assert sum(read) < sum(map(len, prompts)) / 2 + len(prompts) * LENGTH
    monkeypatch.setattr(llama_reader, "shared_prompts", lambda *_: None)
    compare(ours, answers(policy, prompts))


def test_rows_that_end_leave_and_the_others_are_answered_as_before(monkeypatch, sample, compare):
    monkeypatch.setattr(llama_cache, "ROOM_TOKENS", 5)
    policy = policy_of()
    policy.eos_ids = (*policy.eos_ids, *range(0, 200, 9))
    ours = sample(policy)
    policy.engine.override(reader="module")
    lengths = compare(ours, sample(policy))
    assert len(set(lengths)) > 2


def test_a_rows_tokens_do_not_depend_on_the_rows_beside_it(sample, compare):
    compare(sample(policy_of()), sample(policy_of(), max_rows=3))


def test_the_forward_pass_of_the_model_is_not_asked(monkeypatch, sample):
    policy = policy_of()
    monkeypatch.setattr(type(policy.model), "forward", None)
    sample(policy)


def test_weights_are_read_as_they_are_when_sampling_begins(sample, compare):
    policy = policy_of()
    before = sample(policy, seed=None)
    with torch.no_grad():
        policy.model.model.layers[1].self_attn.k_proj.weight.mul_(-1.0)
        policy.model.model.norm.weight.mul_(-1.0)
    after = sample(policy, seed=None)
    assert after != before
    policy.engine.override(reader="module")
    compare(after, sample(policy, seed=None))


@needs_bfloat16
@pytest.mark.parametrize("family", FAMILIES)
def test_under_autocast_it_is_as_near_to_float32_as_the_models_own(family):
    model, _ = model_of(family, **FAMILIES[family])
    ids = torch.arange(1, 25).view(2, 12)
    positions = torch.arange(12).expand(2, 12)
    with torch.no_grad():
        exact = model(input_ids=ids).logits[:, -1]
        with torch.autocast("cpu", dtype=torch.bfloat16):
            reader = LlamaReader(model, 2)
            ours = reader.read(ids, None, positions, reader.cache())
            theirs = model(input_ids=ids).logits[:, -1]
    assert ours.dtype == theirs.dtype == torch.bfloat16
    errors = [(half.float() - exact).abs().mean() for half in (ours, theirs)]
    assert errors[0] < 1.5 * errors[1]
    assert errors[0] < 0.05 * exact.abs().mean()


@needs_bfloat16
@pytest.mark.parametrize("family", FAMILIES)
def test_weights_in_bfloat16_are_supported(family):
    model, _ = model_of(family, **FAMILIES[family])
    assert matches_llama_reader(model.to(torch.bfloat16))


@pytest.mark.parametrize("family", OTHERS)
def test_other_layouts_are_left_to_their_own_forward_pass(family):
    assert not matches_llama_reader(model_of(family, **OTHERS[family])[0])


def scale_layers(model):
    layer = model.model.layers[0]
    twice = type(layer).forward
    layer.__class__ = type(
        "Twice",
        (type(layer),),
        {"forward": lambda self, x, **options: twice(self, x, **options) * 2},
    )


@pytest.mark.parametrize(
    "change",
    [
        scale_layers,
        lambda model: setattr(model.model, "norm", torch.nn.RMSNorm(32)),
        lambda model: setattr(model.model.layers[0].mlp, "gate_proj", None),
    ],
)
def test_a_model_that_does_something_else_is_found_out(change):
    model, _ = model_of("llama", **FAMILIES["llama"])
    assert matches_llama_reader(model)
    change(model)
    assert LlamaLayers.fits(model)
    assert not matches_llama_reader(model)


@pytest.mark.parametrize(
    "change",
    [
        lambda model: setattr(model.config, "_attn_implementation", "eager"),
        lambda model: model.half(),
        lambda model: model.model.layers[1].register_forward_hook(lambda *states: states[-1]),
        lambda model: model.register_forward_pre_hook(lambda *_: None),
        lambda model: setattr(model.model.layers[0].mlp, "forward", torch.nn.functional.silu),
        lambda model: model.lm_head.half(),
        lambda model: setattr(model.model.layers[0].mlp, "up_proj", torch.nn.Sequential()),
    ],
)
def test_what_it_does_not_know_is_left_to_the_model(change):
    model, _ = model_of("llama", **FAMILIES["llama"])
    use_onednn_layers(model)
    assert LlamaLayers.fits(model)
    change(model)
    assert not LlamaLayers.fits(model)


def test_adapters_are_left_to_the_model(make_policies, monkeypatch, sample):
    policy, *_ = make_policies(["a", "b"])
    assert Policy(*tiny_model()).engine.mode.reader == "llama"
    assert policy.engine.mode.reader == "module"
    monkeypatch.setattr(selection, "LlamaLayers", None)  # it would fail
    sample(policy, adapters=["b", "a", "b"], length=3)


def test_a_large_copy_is_not_made(monkeypatch):
    monkeypatch.setattr(llama_layers, "MAX_COPIED_BYTES", 10_000)
    assert not LlamaLayers.fits(model_of("llama", **FAMILIES["llama"])[0])


def test_large_weights_are_not_copied_where_products_need_no_packing(monkeypatch):
    model, _ = model_of("llama, biases", **FAMILIES["llama, biases"])
    monkeypatch.setattr(LlamaLayers, "fits", lambda model: True)  # as on a GPU
    monkeypatch.setattr(llama_layers, "MAX_COPIED_BYTES", 10_000)
    read = []

    def keep(weight, num_rows):
        read.append(weight.data_ptr())
        return pack_weight(weight, num_rows)

    monkeypatch.setattr(llama_layers, "pack_weight", keep)
    assert matches_llama_reader(model)
    assert set(read) <= {weight.data_ptr() for weight in model.parameters()}


def test_states_beyond_the_range_of_the_norms_weights_stay_finite():
    norm = torch.nn.RMSNorm(8).half()
    norm.variance_epsilon = 1e-6
    states = torch.full((1, 8), 7e4)
    assert torch.equal(llama_layers._Norm(norm)(states), torch.ones(1, 8))


def test_a_bias_of_one_of_several_layers_is_added():
    model, _ = model_of("llama", **FAMILIES["llama"])
    model.model.layers[0].self_attn.v_proj.bias = torch.nn.Parameter(torch.ones(16))
    assert matches_llama_reader(model)


def test_parts_that_another_model_has_not_are_no_error():
    model, tokenizer = model_of("llama", **FAMILIES["llama"])
    model.model.norm = torch.nn.RMSNorm(32)
    assert Policy(model, tokenizer).engine.mode.reader == "module"
