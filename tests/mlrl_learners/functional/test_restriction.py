"""The head restricted to nuclei, against every logit at once in float64 by autograd alone."""

import numpy as np
import pytest
import torch

from mlrl_learners.engine import TokenRow
from mlrl_learners.engine.kernels import gathered, head
from mlrl_learners.engine.kernels.head import head_logprobs
from mlrl_learners.engine.logprobs import completion_logprobs
from mlrl_learners.errors import ConfigError
from mlrl_learners.functional.restriction import Restriction
from mlrl_learners.policies import tiny_model
from mlrl_learners.types import Nucleus

TEMPERATURE = 0.7
LENGTHS = [4, 2, 3, 2]  # the third completion was drawn from the whole vocabulary
TARGETS = torch.arange(sum(LENGTHS)) * 7


def nucleus_of(tokens, sizes, seed=0, vocabulary=258):
    """Random ids, the token itself among them."""
    draw = np.random.default_rng(seed)
    ids = []
    for token, size in zip(tokens, sizes, strict=True):
        others = draw.permutation([i for i in range(vocabulary) if i != token])[: size - 1]
        ids.append(draw.permutation([token, *others]))
    masses = np.zeros(len(sizes), np.float32)
    return Nucleus(np.concatenate(ids).astype(np.int32), np.array(sizes, np.int32), masses)


@pytest.fixture
def model():
    return tiny_model(0)[0]


@pytest.fixture
def hidden(model):
    generator = torch.Generator().manual_seed(0)
    return torch.randn(len(TARGETS), model.config.hidden_size, generator=generator)


@pytest.fixture
def nuclei():
    sizes = ([3, 1, 200, 20], [5, 1], None, [258, 2])
    return [
        None if each is None else nucleus_of(tokens.tolist(), each)
        for tokens, each in zip(TARGETS.split(LENGTHS), sizes, strict=True)
    ]


def slow(model, hidden, nuclei):
    """One token at a time, over a list of its nucleus."""
    logprobs, entropies, place = [], [], 0
    weight = model.lm_head.weight
    for nucleus, length in zip(nuclei, LENGTHS, strict=True):
        first = 0
        for i in range(length):
            ids = list(range(len(weight)))
            if nucleus is not None:
                ids = nucleus.token_ids[first : first + int(nucleus.sizes[i])].tolist()
                first += len(ids)
            scores = torch.log_softmax(weight[ids] @ hidden[place] / TEMPERATURE, -1)
            logprobs.append(scores[ids.index(int(TARGETS[place]))])
            entropies.append(-(scores.exp() * scores).sum())
            place += 1
    return torch.stack(logprobs), torch.stack(entropies)


def fused(model, hidden, nuclei):
    restriction = Restriction.of(
        nuclei, [part.tolist() for part in TARGETS.split(LENGTHS)], hidden.device
    )
    return head_logprobs(
        model,
        hidden,
        TARGETS,
        TEMPERATURE,
        with_entropy=True,
        entropy_gradient=True,
        restriction=restriction,
    )


def gradients(model, hidden, nuclei, function, weights):
    model.zero_grad()
    states = hidden.clone().requires_grad_()
    logprobs, entropy = function(model, states, nuclei)
    scale = torch.linspace(-1, 2, len(TARGETS), dtype=states.dtype)
    (weights[0] * (logprobs * scale).sum() + weights[1] * (entropy * scale).sum()).backward()
    return [each.detach() for each in (logprobs, entropy, states.grad, model.lm_head.weight.grad)]


@pytest.fixture(params=["gathered", "plain", "altered"])
def way(request, monkeypatch):
    """Each way of coming by the logits of nuclei, several chunks each."""
    monkeypatch.setattr(head, "_is_bias_free_product", lambda _: request.param != "altered")
    monkeypatch.setattr(head, "GATHERED_SHARE", 1.0 if request.param == "gathered" else 0.0)
    monkeypatch.setattr(gathered, "GATHERED_ROWS", 50)
    monkeypatch.setitem(head.CHUNK_TOKENS, "cpu", 3)
    return request.param


@pytest.mark.parametrize("weights", [(1.0, 0.0), (0.0, 1.0), (1.0, -0.3)])
@pytest.mark.usefixtures("way")
def test_values_and_gradients_equal_those_of_one_token_at_a_time(model, hidden, nuclei, weights):
    ours = gradients(model, hidden, nuclei, fused, weights)
    theirs = gradients(model.double(), hidden.double(), nuclei, slow, weights)
    for mine, exact in zip(ours, theirs, strict=True):
        assert torch.allclose(mine.double(), exact, atol=2e-6)


@pytest.mark.usefixtures("way")
def test_a_token_that_was_alone_is_certain_and_teaches_nothing(model, hidden):
    nuclei = [nucleus_of(part.tolist(), [1] * len(part)) for part in TARGETS.split(LENGTHS)]
    logprobs, entropy, *found = gradients(model, hidden, nuclei, fused, (1.0, 1.0))
    assert logprobs.tolist() == entropy.tolist() == [0.0] * len(TARGETS)
    assert not any(gradient.any() for gradient in found)


@pytest.mark.usefixtures("way")
def test_under_autocast_every_token_stays_possible(model, hidden, nuclei):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        rough = gradients(model, 30 * hidden, nuclei, fused, (1.0, -0.3))
    exact = gradients(model, 30 * hidden, nuclei, fused, (1.0, -0.3))
    for ours, theirs in zip(rough, exact, strict=True):
        assert torch.isfinite(ours).all()
        assert torch.allclose(ours.float(), theirs, atol=0.05 * float(theirs.abs().max()))


@pytest.mark.usefixtures("way")
def test_a_frozen_head_gets_no_gradient(model, hidden, nuclei):
    model.lm_head.weight.requires_grad_(False)
    states = hidden.requires_grad_()
    fused(model, states, nuclei)[0].sum().backward()
    assert states.grad.any()
    assert model.lm_head.weight.grad is None


def test_small_nuclei_are_read_without_the_logits_of_the_vocabulary(model, hidden, monkeypatch):
    monkeypatch.setattr(head, "GATHERED_SHARE", 0.1)
    monkeypatch.setattr(head, "_chunks", lambda *_: pytest.fail("all logits were computed"))
    nuclei = [nucleus_of(part.tolist(), [9] * len(part)) for part in TARGETS.split(LENGTHS)]
    fused(model, hidden, nuclei)


def test_nothing_is_restricted_where_no_completion_has_a_nucleus():
    assert Restriction.of([None, None], [[1, 2], [3]], torch.device("cpu")) is None


def test_a_nucleus_of_another_number_of_tokens_is_an_error():
    with pytest.raises(ConfigError, match="one size a token, got 2 for 3 tokens"):
        Restriction.of([nucleus_of([1, 2], [3, 3])], [[1, 2, 3]], torch.device("cpu"))


def test_a_token_outside_of_its_nucleus_is_an_error():
    with pytest.raises(ConfigError, match="must contain the sampled token exactly once"):
        Restriction.of([nucleus_of([1], [1])], [[2]], torch.device("cpu"))


@pytest.mark.parametrize("packed", [True, False])
def test_how_rows_are_laid_out_leaves_restricted_logprobs_equal(model, packed):
    rows = [
        TokenRow([5, 6, 7], [8, 9], nucleus_of([8, 9], [4, 1])),
        TokenRow([5, 6, 7], [10, 11, 12]),
        TokenRow([1, 2], [3], nucleus_of([3], [30])),
        TokenRow([5, 6, 7], [13], nucleus_of([13], [2])),
    ]
    together = completion_logprobs(model, rows, temperature=0.7, packed=packed)
    alone = [completion_logprobs(model, [row], temperature=0.7) for row in rows]
    for found, parts in zip(together, zip(*alone, strict=True), strict=True):
        assert torch.allclose(found, torch.cat(parts), atol=1e-5)
