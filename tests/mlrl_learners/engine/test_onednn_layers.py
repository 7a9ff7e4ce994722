import copy
import pickle

import pytest
import torch
from torch import nn

from mlrl_learners.engine import onednn_layers
from mlrl_learners.engine.kernels.onednn import has_onednn
from mlrl_learners.engine.onednn_layers import OneDnnLinear, packed_weights, use_onednn_layers
from mlrl_learners.policies import tiny_model
from tests.mlrl_learners.processors import needs_bfloat16

IDS = torch.tensor([[5, 6, 7, 8], [9, 10, 11, 12]])
pytestmark = pytest.mark.skipif(not has_onednn(), reason="this torch has no oneDNN")


def make_model(*, fast):
    model, _ = tiny_model(0)
    if fast:
        use_onednn_layers(model)
    return model


def logits_and_gradients(model):
    logits = model(input_ids=IDS).logits
    logits.square().mean().backward()
    return logits, [parameter.grad for parameter in model.parameters()]


def test_logits_gradients_and_names_stay_the_same():
    fast, plain = make_model(fast=True), make_model(fast=False)
    assert fast.state_dict().keys() == plain.state_dict().keys()
    (ours, our_gradients), (theirs, their_gradients) = map(logits_and_gradients, (fast, plain))
    assert torch.allclose(ours, theirs, atol=1e-5)
    for one, other in zip(our_gradients, their_gradients, strict=True):
        assert torch.allclose(one, other, atol=1e-5)


def test_every_plain_linear_layer_is_fast_and_other_kinds_are_left_alone():
    class Own(nn.Linear):
        pass

    model = nn.ModuleList([nn.Linear(2, 2), Own(2, 2)])
    use_onednn_layers(model)
    assert [type(module) for module in model] == [OneDnnLinear, Own]


def test_copies_and_pickles_stay_fast():
    layer = OneDnnLinear(3, 2)
    for copied in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert type(copied) is OneDnnLinear
        assert torch.equal(copied.weight, layer.weight)


@pytest.mark.parametrize("bf16", [False, pytest.param(True, marks=needs_bfloat16)])
@torch.no_grad()
def test_packed_weights_give_the_same_logits_and_are_dropped(bf16):
    model = make_model(fast=True)
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=bf16):
        plain = model(input_ids=IDS).logits
        with packed_weights(model, 4):
            assert model.lm_head.packed is not None
            packed = model(input_ids=IDS).logits
    assert packed.dtype == plain.dtype
    assert torch.allclose(packed, plain, atol=0.05 if bf16 else 1e-5)
    assert model.lm_head.packed is None


def test_packed_weights_are_dropped_when_something_fails():
    model = make_model(fast=True)
    with pytest.raises(ZeroDivisionError), packed_weights(model, 4):
        _ = 1 / 0
    assert model.lm_head.packed is None


@torch.no_grad()
def test_a_bias_is_added_to_packed_products():
    model = nn.ModuleList([nn.Linear(3, 2)])
    use_onednn_layers(model)
    rows = torch.ones(1, 3)
    plain = model[0](rows)
    with packed_weights(model, 1):
        assert torch.allclose(model[0](rows), plain, atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float64])
def test_types_that_are_not_packed_are_left_alone(dtype):
    model = nn.ModuleList([nn.Linear(3, 2).to(dtype)])
    use_onednn_layers(model)
    with packed_weights(model, 1):
        assert model[0].packed is None


def test_what_would_fill_the_memory_is_not_packed(monkeypatch):
    monkeypatch.setattr(onednn_layers, "MAX_COPIED_BYTES", 1000)
    model = make_model(fast=True)
    with packed_weights(model, 4):
        assert model.lm_head.packed is None
