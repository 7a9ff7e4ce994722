import copy

import pytest
import torch
from transformers import CONFIG_MAPPING, AutoModelForCausalLM

from mlrl_learners.engine import TokenRow
from mlrl_learners.engine.logprobs import completion_logprobs
from mlrl_learners.engine.onednn_layers import use_onednn_layers
from mlrl_learners.engine.recomputing_layers import (
    RecomputingGate,
    RecomputingNorm,
    use_recomputing_layers,
)

SIZES = {
    "vocab_size": 90,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
}
EXCHANGED = {"llama": 7, "mistral": 7, "qwen2": 7, "qwen3": 11, "olmo2": 11}  # with q_norm, k_norm
ROWS = [TokenRow((1, 2, 3), (4, 5, 6)), TokenRow((1, 2, 3), (7, 8)), TokenRow((9,), (10, 11))]


def model_of(family, **options):
    torch.manual_seed(0)
    if family == "mistral":
        options["sliding_window"] = None
    config = CONFIG_MAPPING[family](**SIZES, **options)
    model = AutoModelForCausalLM.from_config(config)
    for name, weight in model.named_parameters():  # ones in every norm would hide it
        if "norm" in name:
            torch.nn.init.uniform_(weight, 0.5, 1.5)
    use_onednn_layers(model)
    return model


def recomputing(model):
    return [
        module
        for module in model.modules()
        if isinstance(module, (RecomputingNorm, RecomputingGate))
    ]


def results(model):
    """Return log-probabilities and the gradient of every weight."""
    model.zero_grad()
    logprobs, entropy = completion_logprobs(model, ROWS)
    (logprobs * torch.linspace(-1, 1, len(logprobs))).sum().backward()
    gradients = {name: weight.grad.clone() for name, weight in model.named_parameters()}
    return {"logprobs": logprobs.detach(), "entropy": entropy, **gradients}


def compare(ours, theirs, tolerance=1e-5):
    assert ours.keys() == theirs.keys()
    for name in theirs:
        assert torch.allclose(ours[name], theirs[name], rtol=1e-4, atol=tolerance), name


@pytest.mark.parametrize("family", EXCHANGED)
def test_log_probs_and_gradients_stay_what_they_were(family):
    model = model_of(family)
    theirs = results(model)
    use_recomputing_layers(model)
    assert len(recomputing(model)) == EXCHANGED[family]
    compare(results(model), theirs)


def test_under_autocast_they_differ_by_rounding_alone():
    model = model_of("llama")
    with torch.autocast("cpu", dtype=torch.bfloat16):
        theirs = results(model)
        use_recomputing_layers(model)
        compare(results(model), theirs, tolerance=0.02)


def test_names_and_weights_stay_and_a_copy_works_alone():
    model = model_of("llama")
    names = list(model.state_dict())
    use_recomputing_layers(model)
    assert list(model.state_dict()) == names
    other = copy.deepcopy(model)
    before = results(model)
    with torch.no_grad():
        other.model.layers[0].mlp.down_proj.weight.zero_()
    results(other)
    compare(results(model), before)


@pytest.mark.parametrize(
    ("family", "options"),
    [("gemma", {}), ("llama", {"hidden_act": "gelu"}), ("llama", {"mlp_bias": True})],
)
def test_layers_that_compute_something_else_are_left_alone(family, options):
    model = model_of(family, **options)
    theirs = results(model)
    use_recomputing_layers(model)
    assert not any(isinstance(module, RecomputingGate) for module in model.modules())
    compare(results(model), theirs, tolerance=1e-6)


class NormWithAGate(torch.nn.Module):
    """What some families of state-space models have: a norm alone only without a gate."""

    def __init__(self, needs_gate):
        super().__init__()
        self.weight, self.variance_epsilon = torch.nn.Parameter(torch.ones(4)), 1e-5
        self.needs_gate = needs_gate

    def forward(self, states, gate=None):
        if self.needs_gate:
            gate = gate.sigmoid()
        normed = states * torch.rsqrt(states.square().mean(-1, keepdim=True) + 1e-5)
        return normed * self.weight * (1 if gate is None else gate)


@pytest.mark.parametrize("needs_gate", [True, False])
def test_layers_that_may_be_told_more_are_left_alone(needs_gate):
    norm = NormWithAGate(needs_gate)
    use_recomputing_layers(norm)
    assert type(norm) is NormWithAGate


def test_who_listens_to_a_layer_goes_on_hearing_it():
    model, heard = model_of("llama"), []
    use_recomputing_layers(model)
    theirs = results(model)
    model.model.layers[0].mlp.down_proj.register_forward_hook(lambda *_: heard.append(1))
    compare(results(model), theirs)
    assert heard


def test_checkpointed_layers_are_computed_again_to_the_same_effect():
    model = model_of("llama")
    use_recomputing_layers(model)
    theirs = results(model)
    model.gradient_checkpointing_enable({"use_reentrant": False})
    model.train()
    compare(results(model), theirs)


def test_an_update_keeps_less_for_its_backward_pass():
    def kept(model):
        sizes = {}
        weights = {weight.data_ptr() for weight in model.parameters()}

        def pack(tensor):
            if tensor.data_ptr() not in weights:
                sizes[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            _ = model.model(input_ids=torch.arange(60)[None], use_cache=False)
        return sum(sizes.values())

    model = model_of("llama")
    before = kept(model)
    use_recomputing_layers(model)
    assert kept(model) < 0.8 * before
