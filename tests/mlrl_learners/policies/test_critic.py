import pytest
import torch

from mlrl_learners.errors import CheckpointError
from mlrl_learners.policies import Policy, tiny_model
from mlrl_learners.policies.critic import Critic
from tests.mlrl_learners.processors import needs_bfloat16

PROMPTS = [(5, 6, 7), (1,), (256, 4, 256, 3), (5, 6, 7), (9, 8, 7, 6, 5, 4, 3, 2)]


def make_critic(seed=0, num_values=1, *, owns_trunk=True, hidden_size=32, **options):
    """A critic with opinions: a random head."""
    critic = Critic(
        Policy(*tiny_model(seed, hidden_size=hidden_size), **options),
        num_values,
        owns_trunk=owns_trunk,
    )
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        critic.head.weight.copy_(torch.randn(critic.head.weight.shape, generator=generator))
        critic.head.bias.fill_(0.5)
    return critic


def test_a_fresh_critic_says_zero():
    critic = Critic(Policy(*tiny_model()), 2, owns_trunk=True)
    assert critic.values(PROMPTS).tolist() == [[0.0, 0.0]] * len(PROMPTS)


def test_a_value_is_read_behind_the_last_token_of_the_prompt():
    critic = make_critic()
    for prompt, value in zip(PROMPTS, critic.values(PROMPTS), strict=True):
        states = critic.trunk.model.model(input_ids=torch.tensor([prompt])).last_hidden_state
        assert torch.allclose(value, critic.head(states[0, -1]), atol=1e-5)


def test_padding_and_order_leave_values_equal():
    critic = make_critic()
    together = critic.values(PROMPTS)
    alone = torch.cat([critic.values([prompt]) for prompt in PROMPTS])
    assert torch.allclose(together, alone, atol=1e-5)
    assert torch.allclose(critic.values(PROMPTS[::-1]), together.flip(0), atol=1e-5)


def test_equal_prompts_are_read_once(monkeypatch):
    critic = make_critic()
    read = []
    states = critic.trunk.prompt_states
    monkeypatch.setattr(
        critic.trunk, "prompt_states", lambda prompts: read.extend(prompts) or states(prompts)
    )
    values = critic.values(PROMPTS)
    assert read == list(dict.fromkeys(PROMPTS))
    assert torch.equal(values[0], values[3])


def test_a_critic_trains_a_model_of_its_own_but_never_the_actors():
    own, borrowed = make_critic(), make_critic(owns_trunk=False)
    assert {id(p) for p in borrowed.parameters()} == {id(p) for p in borrowed.head.parameters()}
    decoder = {id(p) for p in own.trunk.model.get_decoder().parameters()}
    assert decoder < {id(p) for p in own.parameters()}


@needs_bfloat16
def test_the_head_computes_in_float32_under_autocast():
    exact, rough = make_critic().values(PROMPTS), make_critic(precision="bf16").values(PROMPTS)
    assert rough.dtype == torch.float32
    assert 0 < float((exact - rough).detach().abs().max()) < 0.2


@pytest.mark.parametrize("owns_trunk", [True, False])
def test_saved_and_loaded_values_are_the_same_to_the_bit(owns_trunk, tmp_path):
    critic = make_critic(1, 2, owns_trunk=owns_trunk)
    other = make_critic(2 if owns_trunk else 1, 2, owns_trunk=owns_trunk)
    critic.save(tmp_path / "critic")
    other.load(tmp_path / "critic")
    assert torch.equal(critic.values(PROMPTS), other.values(PROMPTS))


def test_another_critic_or_none_is_refused(tmp_path):
    with pytest.raises(CheckpointError, match="is missing, damaged or another"):
        make_critic().load(tmp_path)
    make_critic(num_values=2).save(tmp_path)
    with pytest.raises(CheckpointError, match="is missing, damaged or another"):
        make_critic().load(tmp_path)
