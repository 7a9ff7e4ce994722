"""Policies that are adapters on one tiny base."""

import pytest
import torch

from mlrl_learners.policies import Policy, tiny_model
from mlrl_learners.policies.adapters import AdapterConfig


def stir(policy, seed=0):
    """Give an adapter something to say."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in policy.parameters():
            weight.copy_(0.3 * torch.randn(weight.shape, generator=generator))


def make_policies(names=("a", "b"), *, family="llama", seed=0, stirred=True, **options):
    """Return a base alone and policies with adapters on it; they end now and then."""
    model, tokenizer = tiny_model(seed, family=family)
    head = torch.nn.Linear(model.config.hidden_size, len(tokenizer))
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        head.weight.copy_(torch.randn(head.weight.shape, generator=generator) * 0.4)
        head.bias.zero_()
        head.bias[tokenizer.eos_token_id] = 4.0
    model.lm_head = head
    config = {name: options.pop(name) for name in list(options) if name.startswith("lora_")}
    base = Policy(model, tokenizer, **options)
    base.freeze(AdapterConfig(**{"lora_rank": 3, "lora_alpha": 3, **config}), "tiny")
    policies = [base.with_adapter(name, seed) for name in names]
    for number, policy in enumerate(policies if stirred else ()):
        stir(policy, number + 1)
    return base, *policies


@pytest.fixture(scope="session", name="make_policies")
def _make_policies():
    return make_policies


@pytest.fixture(scope="session", name="stir")
def _stir():
    return stir
