"""The engine reports its execution path, and leaves the caller's model as it was."""

import subprocess
import sys
from dataclasses import FrozenInstanceError

import pytest
import torch

from mlrl_learners.engine import Engine, SamplingConfig, TokenRow, selection
from mlrl_learners.engine.kernels import onednn
from mlrl_learners.engine.kernels.onednn import has_onednn
from mlrl_learners.errors import ConfigError
from mlrl_learners.policies import tiny_model

ROWS = [TokenRow([5, 6, 7], [8, 9]), TokenRow([5, 6, 7], [10])]
needs_onednn = pytest.mark.skipif(not has_onednn(), reason="this torch has no oneDNN")


def sample(engine, length=6):
    sampling = SamplingConfig(max_new_tokens=length)
    groups = engine.sample([[1, 2, 3], [4]], 2, sampling, eos_ids=[256], seeds=None)
    return [[answer.token_ids for answer in group] for group in groups]


@needs_onednn
def test_the_chosen_path_is_described():
    mode = Engine(tiny_model()[0]).mode
    assert (mode.reader, mode.packs_prompts, mode.precision) == ("llama", True, "float32")
    expected = "llama reader, packed prompts, float32 (Llama's layout, on a CPU with oneDNN)"
    assert str(mode) == expected
    with pytest.raises(FrozenInstanceError):
        mode.reader = "module"


def test_a_family_without_a_reader_of_its_own_is_read_through_its_module():
    mode = Engine(tiny_model(family="gpt2")[0]).mode
    assert (mode.reader, mode.precision) == ("module", "float32")
    assert str(mode) == "module reader, packed prompts, float32 (no faster reader for it on cpu)"


@needs_onednn
def test_frozen_weights_are_read_through_the_module_which_computes_adapters():
    engine = Engine(tiny_model()[0])
    engine.freeze(rank=2, alpha=4, targets=())
    assert engine.mode.reader == "module"
    assert "adapters" in engine.mode.reason


def test_a_recorder_that_fails_is_reported(make_recorder):
    engine = Engine(tiny_model(family="gpt2")[0])
    engine.override(reader="static", recorder=make_recorder(fails=True))
    with pytest.warns(RuntimeWarning, match="without CUDA graphs"):
        first = sample(engine, length=40)
    assert sample(engine, length=40) == first
    assert (engine.mode.reader, engine.recorder) == ("module", None)
    assert "CUDA graphs" in engine.mode.reason


def test_parts_of_the_path_can_be_overridden():
    engine = Engine(tiny_model()[0])
    reader = engine.mode.reader
    engine.override(packs_prompts=False)
    assert (engine.mode.reader, engine.mode.packs_prompts) == (reader, False)
    engine.override(reader="uncached")
    assert (engine.mode.reader, engine.mode.packs_prompts) == ("uncached", False)


def test_all_readers_sample_the_same_tokens():
    engine = Engine(tiny_model()[0])
    answers = []
    for reader in ("module", "static", "llama", "uncached"):
        engine.override(reader=reader)
        answers.append(sample(engine))
    assert answers == answers[:1] * 4


def test_the_engines_results_are_those_of_the_model():
    model, _ = tiny_model()
    engine = Engine(model)
    logprobs, _, states = engine.logprobs(ROWS[1:], temperature=1.0)
    with torch.no_grad():
        expected = model.eval()(torch.tensor([[5, 6, 7]])).logits[0, -1].log_softmax(-1)[10]
        state = model.model(torch.tensor([[5, 6, 7]])).last_hidden_state[0, -1]
    assert torch.allclose(logprobs.detach(), expected, atol=1e-5)
    assert torch.allclose(states[0].detach(), state, atol=1e-5)
    assert torch.allclose(engine.prompt_states([[5, 6, 7]]), states, atol=1e-5)


def test_an_unknown_precision_is_refused():
    with pytest.raises(ConfigError, match="precision must be float32, bf16 or fp16, got 'int8'"):
        Engine(tiny_model()[0], precision="int8")


def test_importing_the_package_loads_nothing_heavy():
    code = "import sys, mlrl_learners.engine; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_an_unknown_name_is_an_attribute_error():
    import mlrl_learners.engine

    with pytest.raises(AttributeError, match="has no attribute 'Motor'"):
        _ = mlrl_learners.engine.Motor


def test_without_bfloat16_products_bf16_is_computed_in_float32(monkeypatch):
    monkeypatch.setattr(selection, "packs", lambda dtype: dtype == torch.float32)
    with pytest.warns(RuntimeWarning, match="no bfloat16 products"):
        engine = Engine(tiny_model(0)[0], precision="bf16")
    assert engine.precision == engine.mode.precision == "float32"
    row = [TokenRow([1, 2], [3, 4])]
    exact = Engine(tiny_model(0)[0]).logprobs(row, temperature=1.0)[0]
    assert torch.equal(engine.logprobs(row, temperature=1.0)[0], exact)


def test_weights_that_cannot_be_packed_are_sampled_from_unpacked(monkeypatch):
    monkeypatch.setattr(onednn, "pack_weight", _refuse_bfloat16)
    onednn.packs.cache_clear()
    try:
        engine = Engine(tiny_model(0)[0].to(torch.bfloat16))
        config = SamplingConfig(max_new_tokens=3)
        ((answer,),) = engine.sample([[1, 2]], 1, config, eos_ids=[], seeds=[0])
    finally:
        onednn.packs.cache_clear()
    assert engine.mode.reader == "module"
    assert len(answer.token_ids) == 3


def _refuse_bfloat16(weight, num_rows):
    if weight.dtype == torch.bfloat16:
        raise RuntimeError("bf16 path needs the cpu support avx512bw")
    return weight
