import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from mlrl_learners.engine import selection
from mlrl_learners.engine.frozen_casts import frozen_casts
from mlrl_learners.policies import Policy, tiny_model

IDS = torch.tensor([[1, 2, 3]])


class Casts(TorchDispatchMode):
    """Counts what is cast from float32, of a weight's shape."""

    def __init__(self, model):
        super().__init__()
        self.shapes = {weight.shape for weight in model.parameters() if weight.dim() == 2}
        self.count = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        cast = function is torch.ops.aten._to_copy.default and args[0].dtype == torch.float32
        self.count += cast and args[0].shape in self.shapes
        return function(*args, **(kwargs or {}))


def frozen(family):
    return tiny_model(family=family)[0].requires_grad_(False).eval()


@pytest.mark.parametrize("family", ["llama", "gpt2"])
def test_frozen_weights_are_cast_once_to_the_same_effect(family):
    model = frozen(family)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        with Casts(model) as anew:
            expected = model(IDS).logits
        with frozen_casts(model), Casts(model) as once:
            assert torch.equal(model(IDS).logits, expected)
    assert anew.count >= 9
    assert once.count == 0


def test_trained_weights_are_left_to_autocast():
    model = tiny_model()[0]
    with torch.autocast("cpu", torch.bfloat16), frozen_casts(model):
        assert {weight.dtype for weight in model.parameters()} == {torch.float32}


def test_without_autocast_nothing_is_cast():
    model = frozen("llama")
    with frozen_casts(model):
        assert {weight.dtype for weight in model.parameters()} == {torch.float32}


def test_the_weights_come_back_whatever_happens():
    model = frozen("llama")
    before = dict(model.named_parameters())
    seen = {}

    def fail():
        seen.update(
            head=model.lm_head.weight.dtype, embedding=model.model.embed_tokens.weight.dtype
        )
        raise KeyError

    with torch.autocast("cpu", torch.bfloat16), pytest.raises(KeyError), frozen_casts(model):
        fail()
    assert seen == {"head": torch.bfloat16, "embedding": torch.float32}  # which are tied
    after = dict(model.named_parameters())
    assert list(after) == list(before)
    assert all(after[name] is weight for name, weight in before.items())
    assert model.lm_head.weight is model.model.embed_tokens.weight


def test_adapters_answer_the_same_on_weights_that_were_cast(make_policies, monkeypatch):
    """The way that is taken on a GPU, on a CPU."""
    from mlrl_learners.policies import SamplingConfig

    policy: Policy = make_policies(["a", "b"], precision="bf16")[0]

    def sample():
        sampling = SamplingConfig(max_new_tokens=6)
        return policy.complete([[1, 2], [3]], 2, sampling, seeds=None, adapters=["a", "b"])

    monkeypatch.setattr(selection, "_fast_weights", lambda model, rows: torch.no_grad())
    expected = sample()
    monkeypatch.setattr(selection, "_fast_weights", lambda model, rows: frozen_casts(model))
    assert sample() == expected
