"""Decoding at fixed shapes samples the same tokens; CUDA graphs are emulated on a CPU."""

import math

import pytest
import torch
from transformers import CONFIG_MAPPING, AutoModelForCausalLM

from mlrl_learners.engine import selection, static_reader
from mlrl_learners.engine.families import matches_static_reader
from mlrl_learners.engine.frozen_casts import frozen_casts
from mlrl_learners.engine.reader import LOOK_STEPS
from mlrl_learners.engine.static_reader import RECORDED_STEPS, WARM_UPS, StaticReader
from mlrl_learners.policies import Policy, SamplingConfig, tiny_model
from tests.mlrl_learners.processors import needs_bfloat16

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
    "qwen2": {"num_key_value_heads": 2},
    "qwen3": {"num_key_value_heads": 1, "head_dim": 8},
    "gpt_neox": {},
    "phi": {},
    "gpt2": {"n_embd": 32, "n_layer": 2, "n_head": 4},
}
OTHERS = {
    "mistral": {"num_key_value_heads": 2, "sliding_window": 4},
    "bloom": {},
    "mamba": {"state_size": 4},
}


def model_of(family, **options):
    _, tokenizer = tiny_model()
    tokens = {f"{kind}_token_id": tokenizer.eos_token_id for kind in ("eos", "pad")}
    options = {**SIZES, **tokens, "vocab_size": len(tokenizer), "bos_token_id": None, **options}
    torch.manual_seed(0)
    return AutoModelForCausalLM.from_config(CONFIG_MAPPING[family](**options)), tokenizer


def policy_of(family="llama", **options):
    """A policy whose answers vary, and end now and then."""
    model, tokenizer = model_of(family, **FAMILIES[family])
    head = model.get_output_embeddings()
    head = torch.nn.Linear(head.in_features, len(tokenizer))
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        head.weight.copy_(torch.randn(head.weight.shape, generator=generator) * 0.4)
        head.bias.zero_()
        head.bias[tokenizer.eos_token_id] = 2.5
    model.set_output_embeddings(head)
    return Policy(model, tokenizer, **options)


@pytest.mark.usefixtures("small_room", "rare_looks")
@pytest.mark.parametrize("seed", [0, None])
@pytest.mark.parametrize("family", FAMILIES)
def test_replayed_steps_draw_the_same_tokens_as_a_cache_that_grows(
    family, seed, make_recorder, sample, compare
):
    policy = policy_of(family)
    grown = sample(policy, seed=seed)
    policy.engine.override(reader="static", recorder=make_recorder())
    lengths = compare(sample(policy, seed=seed), grown)
    assert seed is None or len(set(lengths)) > 1  # rows ended at different times
    assert policy.engine.recorder.recordings > 1
    recorder = policy.engine.recorder
    assert recorder.replays > recorder.warm_ups == WARM_UPS * recorder.recordings
    # The first two draws from a recorded step's logits are no replays: one sees them, one records.
    assert recorder.draws == (0 if seed is None else recorder.replays - recorder.recordings)


@pytest.mark.usefixtures("small_room")
@pytest.mark.parametrize("family", ["llama", "gpt2"])
def test_rows_keep_their_adapter_when_others_leave(
    family, make_policies, make_recorder, sample, compare
):
    policy, *_ = make_policies(["a", "b"], family=family)
    adapters = ["b", None, "a"]
    grown = sample(policy, adapters=adapters)
    policy.engine.override(reader="static", recorder=make_recorder())
    lengths = compare(sample(policy, adapters=adapters), grown)
    assert len(set(lengths)) > 1
    assert policy.engine.recorder.replays


@pytest.mark.usefixtures("small_room")
def test_a_rows_tokens_do_not_depend_on_the_rows_beside_it(make_recorder, sample, compare):
    policy = policy_of()
    policy.engine.override(reader="static", recorder=make_recorder())
    compare(sample(policy), sample(policy, max_rows=3))


@pytest.mark.usefixtures("small_room")
def test_ended_rows_leave_when_the_room_is_used_up(make_recorder, sample):
    policy, batches = policy_of(), []
    policy.model.register_forward_pre_hook(
        lambda _, args, kwargs: batches.append(len(kwargs["input_ids"])), with_kwargs=True
    )
    policy.engine.override(reader="static", recorder=make_recorder())
    lengths = [len(c.token_ids) for group in sample(policy) for c in group]
    alive = [sum(length > RECORDED_STEPS * n for length in lengths) for n in (0, 1, 2)]
    expected = [3]  # prompts, then warm-ups and one recording of each room
    for rows, left in zip(alive, (LENGTH, LENGTH - 16, LENGTH - 32), strict=True):
        expected += [rows] * (WARM_UPS + 1 if left > RECORDED_STEPS else max(lengths) - 33)
    assert batches == expected


def test_few_tokens_are_not_worth_a_recording(make_recorder, sample, compare):
    policy = policy_of()
    grown = sample(policy, length=RECORDED_STEPS - 1)
    policy.engine.override(reader="static", recorder=make_recorder())
    compare(sample(policy, length=RECORDED_STEPS - 1), grown)
    assert policy.engine.recorder.warm_ups == policy.engine.recorder.recordings == 0


@pytest.mark.usefixtures("small_room")
def test_a_recording_that_fails_costs_a_warning_and_no_tokens(make_recorder, sample, compare):
    policy = policy_of()
    grown = sample(policy)
    policy.engine.override(reader="static", recorder=make_recorder(fails=True))
    with pytest.warns(RuntimeWarning, match="without CUDA graphs.*out of memory$") as said:
        compare(sample(policy, max_rows=3), grown)
    assert len(said) == 1
    assert policy.engine.recorder.warm_ups == WARM_UPS  # it is not tried again


@pytest.mark.usefixtures("small_room")
def test_draws_that_cannot_be_recorded_leave_the_steps_recorded(make_recorder, sample, compare):
    policy = policy_of()
    grown = sample(policy)
    policy.engine.override(reader="static", recorder=make_recorder(fails_to_draw=True))
    with pytest.warns(RuntimeWarning, match="not recorded.*out of memory"):
        compare(sample(policy), grown)
    assert policy.engine.recorder.usable
    assert policy.engine.recorder.replays > policy.engine.recorder.recordings > 1


def test_a_model_that_waits_for_the_gpu_is_not_recorded(make_recorder, sample, compare):
    policy = policy_of()
    grown = sample(policy)
    policy.model.model.register_forward_hook(lambda *_: torch.ones(2).sum().item() and None)
    policy.engine.override(reader="static", recorder=make_recorder())
    with pytest.warns(RuntimeWarning, match="not permitted when stream is capturing"):
        compare(sample(policy), grown)
    assert not policy.engine.recorder.usable


@pytest.fixture(params=["trained", "frozen"])
def half_policy(request, monkeypatch):
    """A policy under autocast, whose weights are laid out as on a GPU."""
    monkeypatch.setattr(selection, "_fast_weights", lambda model, _: frozen_casts(model))
    policy = policy_of(precision="bf16")
    policy.model.requires_grad_(request.param == "trained")
    return policy


@pytest.mark.usefixtures("small_room")
def test_under_autocast_replayed_steps_are_those_that_were_recorded(
    half_policy, make_recorder, sample
):
    half_policy.engine.override(reader="static", recorder=make_recorder())
    recorded = sample(half_policy)
    assert half_policy.engine.recorder.replays
    half_policy.engine.recorder.record = lambda work: None  # the same steps, never replayed
    assert sample(half_policy) == recorded


@pytest.mark.usefixtures("small_room")
def test_under_autocast_fixed_shapes_change_no_more_than_is_rounded(
    half_policy, make_recorder, sample
):
    half_policy.engine.override(reader="static", recorder=make_recorder())
    recorded = sample(half_policy)
    half_policy.engine.override(reader="module")
    pairs = [
        pair
        for ours, theirs in zip(recorded, sample(half_policy), strict=True)
        for mine, other in zip(ours, theirs, strict=True)
        for pair in zip(mine.logprobs, other.logprobs, strict=False)
        if mine.token_ids == other.token_ids
    ]
    assert len(pairs) > LENGTH
    assert max(abs(mine - other) for mine, other in pairs) < 0.1


def test_keys_cast_when_they_are_written_are_those_cast_when_they_are_read(
    half_policy, make_recorder, monkeypatch, sample
):
    half_policy.engine.override(reader="static", recorder=make_recorder())
    early = sample(half_policy)

    def keep_type(states, length):
        rows, heads, width, size = states.shape
        buffer = torch.zeros(rows, heads, length, size, dtype=states.dtype)
        buffer[:, :, :width] = states
        return buffer

    monkeypatch.setattr(static_reader, "_with_room", keep_type)
    assert sample(half_policy) == early


@needs_bfloat16
def test_keys_lie_in_the_type_that_attention_reads_them_in(make_recorder, monkeypatch, sample):
    kept = []
    policy = policy_of(precision="bf16")
    policy.engine.override(reader="static", recorder=make_recorder())
    step = StaticReader._step
    monkeypatch.setattr(
        StaticReader,
        "_step",
        lambda reader, ids, cache: kept.append(cache.layers.layers[0]) or step(reader, ids, cache),
    )
    sample(policy)
    assert {kept[0].keys.dtype, kept[0].values.dtype} == {torch.bfloat16}
    assert kept[0] is kept[-1]  # the same memory from the first step to the last


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_hidden_columns_weigh_nothing_and_kernels_may_scale_what_hides_them(dtype):
    hidden = torch.tensor(static_reader.HIDDEN, dtype=dtype).float()
    scaled = (hidden * math.log2(math.e)).to(dtype)  # what exp2 is taken of
    assert torch.isfinite(scaled)
    assert torch.exp2(scaled.float() + 10_000) == 0.0  # beside any score there is


def test_attention_is_not_planned_for_each_length_while_tokens_are_drawn(sample):
    policy, planned = policy_of(), []
    policy.model.register_forward_pre_hook(
        lambda *_: planned.append(torch.backends.cuda.cudnn_sdp_enabled())
    )
    sample(policy, length=3)
    assert matches_static_reader(policy.model)
    assert set(planned) == {False}
    assert torch.backends.cuda.cudnn_sdp_enabled()


@pytest.mark.usefixtures("rare_looks")
@pytest.mark.parametrize("options", [{}, {"top_k": 5}, {"top_k": 5, "renormalize": False}])
def test_between_looks_nothing_waits_for_a_gpu(options, make_recorder):
    policy = policy_of()
    policy.model.get_output_embeddings().bias.data[policy.eos_ids[0]] = -20.0  # nothing ends
    policy.engine.override(reader="static", recorder=make_recorder())
    waits = []

    class Watch(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            if function in (
                torch.ops.aten._local_scalar_dense.default,
                torch.ops.aten.nonzero.default,
            ):
                waits.append(function)
            return function(*args, **(kwargs or {}))

    sampling = SamplingConfig(max_new_tokens=LENGTH, top_p=1.0, **options)
    with Watch():
        policy.complete([[1, 2, 3]], 2, sampling, seeds=[0])
    assert len(waits) <= 6 + LENGTH // 8  # some for the prompts


@pytest.mark.parametrize("family", FAMILIES)
def test_most_families_decode_statically(family):
    model, _ = model_of(family, **FAMILIES[family])
    assert matches_static_reader(model)
    assert matches_static_reader(model.to(torch.bfloat16))
    model.config._attn_implementation = "eager"
    assert not matches_static_reader(model)


@pytest.mark.parametrize("family", OTHERS)
def test_families_that_lay_out_their_cache_otherwise_do_not(family):
    assert not matches_static_reader(model_of(family, **OTHERS[family])[0])


def test_rows_are_looked_for_when_the_room_is_used_up():
    assert static_reader.ROOM_TOKENS % LOOK_STEPS == 0


def test_nothing_is_recorded_on_a_cpu():
    assert policy_of().engine.recorder is None
