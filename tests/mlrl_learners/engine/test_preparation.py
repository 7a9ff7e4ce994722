"""A prepared model shares its weights with the caller's model, and nothing else."""

import pytest
import torch

from mlrl_learners.engine.onednn_layers import OneDnnLinear
from mlrl_learners.engine.preparation import prepare, share_weights
from mlrl_learners.policies import tiny_model


@pytest.fixture(params=["llama", "gpt2"])
def model(request):
    return tiny_model(family=request.param)[0].train()


def test_parameters_and_buffers_are_the_same_objects(model):
    copied = share_weights(model)
    tensors, originals = (
        dict([*each.named_parameters(), *each.named_buffers()]) for each in (copied, model)
    )
    assert tensors.keys() == originals.keys()
    assert all(tensors[name] is originals[name] for name in originals)


def test_modules_and_configuration_are_not(model):
    copied = share_weights(model)
    assert not set(map(id, copied.modules())) & set(map(id, model.modules()))
    assert copied.config is not model.config
    assert [type(m) for m in copied.modules()] == [type(m) for m in model.modules()]


def test_tied_weights_stay_tied(model):
    copied = share_weights(model)
    assert copied.get_output_embeddings().weight is copied.get_input_embeddings().weight


def test_hooks_of_the_copy_see_the_copy(model):
    class Listener:
        def __init__(self, module):
            self.module, self.calls = module, 0
            module.register_forward_hook(self.listen)

        def listen(self, module, *_):
            assert module is self.module
            self.calls += 1

    listener = Listener(model)
    copied = share_weights(model)
    copied(torch.tensor([[1]]))
    assert listener.calls == 0
    model(torch.tensor([[1]]))
    assert listener.calls == 1


def test_training_the_copy_trains_the_model(model):
    prepared = prepare(model)
    with torch.no_grad():
        next(prepared.parameters()).fill_(0.5)
    prepared(torch.tensor([[1, 2]])).logits.sum().backward()
    assert float(next(model.parameters()).detach().min()) == 0.5
    assert next(model.parameters()).grad is next(prepared.parameters()).grad


def test_a_model_can_be_prepared_again(model):
    twice = prepare(prepare(model))
    assert not any(module.training for module in twice.modules())
    assert next(twice.parameters()) is next(model.parameters())


def test_linear_layers_of_the_copy_alone_are_replaced():
    model = tiny_model()[0]
    kinds = {type(module) for module in prepare(model).modules()}
    assert OneDnnLinear in kinds or torch.nn.Linear in kinds
    assert OneDnnLinear not in {type(module) for module in model.modules()}
