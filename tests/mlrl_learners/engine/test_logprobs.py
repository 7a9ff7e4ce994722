import pytest
import torch

from mlrl_learners.engine import TokenRow
from mlrl_learners.engine.kernels.head import CHUNK_TOKENS
from mlrl_learners.engine.logprobs import (
    completion_logprobs,
    logprobs_and_states,
    token_states,
)
from mlrl_learners.policies import tiny_model

ROWS = [
    TokenRow([5, 6, 7], [8, 9]),
    TokenRow([5, 6, 7], [8, 10, 11, 12]),  # shares the first one's prompt
    TokenRow([5], [256]),  # one-token answer: just the end of sequence
    TokenRow([256, 4, 256, 3], [1, 2, 3, 256]),  # end of sequence inside the prompt
    TokenRow([1, 2], [3, 3, 3]),
    TokenRow([5, 6, 7], [256]),
    TokenRow([5, 6, 7, 8, 10, 11, 9], [4, 3]),  # a later turn after the second row's answer
    TokenRow([5, 6, 7], [8, 9]),  # the first row again
]


@pytest.fixture(scope="module")
def model():
    model, _ = tiny_model(0)
    return model.eval()


def slow_logprobs(model, row, temperature):
    """One row at a time, without padding, every logit."""
    ids = torch.tensor([[*row.prompt_ids, *row.token_ids]])
    logits = model(input_ids=ids).logits[0] / temperature
    logprobs = torch.log_softmax(logits, -1)
    start = len(row.prompt_ids) - 1
    places = range(start, start + len(row.token_ids))
    values = [logprobs[p, t] for p, t in zip(places, row.token_ids, strict=True)]
    entropies = [-(logprobs[p].exp() * logprobs[p]).sum() for p in places]
    return torch.stack(values), torch.stack(entropies)


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("temperature", [0.7, 1.3])
def test_batched_logprobs_equal_one_row_at_a_time(model, temperature, packed):
    logprobs, entropy = completion_logprobs(model, ROWS, temperature=temperature, packed=packed)
    slow = [slow_logprobs(model, row, temperature) for row in ROWS]
    assert torch.allclose(logprobs, torch.cat([pair[0] for pair in slow]), atol=1e-5)
    assert torch.allclose(entropy, torch.cat([pair[1] for pair in slow]), atol=1e-4)


def test_only_completion_tokens_are_counted(model):
    logprobs, _ = completion_logprobs(model, ROWS)
    assert len(logprobs) == sum(len(row.token_ids) for row in ROWS)


def test_reading_a_shared_prompt_once_leaves_the_gradient_equal(model):
    def gradient(packed):
        model.zero_grad()
        completion_logprobs(model, ROWS, packed=packed)[0].square().sum().backward()
        return model.model.embed_tokens.weight.grad.clone()

    assert torch.allclose(gradient(packed=True), gradient(packed=False), atol=1e-5)


def test_more_padding_leaves_logprobs_and_gradients_equal(model):
    def gradient(rows, keep):
        model.zero_grad()
        logprobs, _ = completion_logprobs(model, rows)
        logprobs[:keep].sum().backward()
        return logprobs[:keep].detach(), model.model.embed_tokens.weight.grad.clone()

    alone = gradient(ROWS[:1], 2)
    padded = gradient([ROWS[0], TokenRow(list(range(40)), [1, 2])], 2)
    assert torch.allclose(alone[0], padded[0], atol=1e-5)
    assert torch.allclose(alone[1], padded[1], atol=1e-5)


def test_chunks_of_the_head_leave_the_gradient_equal(model, monkeypatch):
    def gradient():
        model.zero_grad()
        completion_logprobs(model, ROWS)[0].square().sum().backward()
        return model.model.embed_tokens.weight.grad.clone()

    whole = gradient()
    monkeypatch.setitem(CHUNK_TOKENS, "cpu", 3)
    assert torch.allclose(gradient(), whole, atol=1e-5)


def test_a_head_that_caps_its_logits_is_followed():
    from transformers import Gemma2Config, Gemma2ForCausalLM

    torch.manual_seed(0)
    config = Gemma2Config(
        vocab_size=64, hidden_size=16, intermediate_size=32, num_hidden_layers=1,
        num_attention_heads=2, num_key_value_heads=1, head_dim=8, final_logit_softcapping=0.5,
    )  # fmt: skip
    model = Gemma2ForCausalLM(config).eval()
    row = TokenRow([1, 2], [3, 4])
    expected, _ = slow_logprobs(model, row, 1.0)
    assert torch.allclose(completion_logprobs(model, [row])[0], expected, atol=1e-5)


@pytest.mark.parametrize("packed", [True, False])
def test_states_are_those_at_the_end_of_each_prompt_read_alone(model, packed):
    alone = [
        model.model(input_ids=torch.tensor([row.prompt_ids])).last_hidden_state[0, -1]
        for row in ROWS
    ]
    _, _, states = logprobs_and_states(model, ROWS, packed=packed)
    assert torch.allclose(states, torch.stack(alone), atol=1e-5)
    prompts = [TokenRow(row.prompt_ids, (0,)) for row in ROWS]
    together = token_states(model.model, prompts, packed=packed)
    assert torch.allclose(together, torch.stack(alone), atol=1e-5)


def test_entropy_has_its_own_gradient_where_it_is_asked_for(model):
    def gradient(entropy):
        (found,) = torch.autograd.grad(entropy, model.lm_head.weight)
        return found

    _, entropy, _ = logprobs_and_states(model, ROWS, temperature=0.7, entropy_gradient=True)
    slow = torch.cat([slow_logprobs(model, row, 0.7)[1] for row in ROWS])
    assert torch.allclose(gradient(entropy.sum()), gradient(slow.sum()), atol=1e-4)
    assert not completion_logprobs(model, ROWS)[1].requires_grad
