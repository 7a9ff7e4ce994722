"""Under a constant reward there is nothing to learn, whatever top-p left to draw from."""

from types import SimpleNamespace

import pytest
import torch

import mlrl_learners
from mlrl_learners.engine import TokenRow
from mlrl_learners.engine.drawn_tokens import DrawnTokens
from mlrl_learners.engine.kernels.head import head_logprobs
from mlrl_learners.engine.sampling import SamplingConfig, draw_tokens
from mlrl_learners.functional.restriction import Restriction

NUM_TOKENS = 40


class Bandit(torch.nn.Module):
    """One softmax over 40 tokens: the head's weight is its logits."""

    def __init__(self):
        super().__init__()
        self.head = torch.nn.Linear(1, NUM_TOKENS, bias=False)
        logits = torch.randn(NUM_TOKENS, 1, generator=torch.Generator().manual_seed(3))
        self.head.weight = torch.nn.Parameter(1.5 * logits)
        text = SimpleNamespace(vocab_size=NUM_TOKENS)
        self.config = SimpleNamespace(get_text_config=lambda: text)

    def get_output_embeddings(self):
        return self.head


def reinforce_gradient(bandit, config, num_samples, generator):
    """The mean of grad log pi over answers of one token, as they are sampled and trained."""
    logits = bandit.head.weight.detach().t().expand(num_samples, -1)
    drawn = DrawnTokens(num_samples, 1, torch.tensor([-1]))
    rows, nobody = torch.arange(num_samples), torch.zeros(num_samples, dtype=torch.bool)
    drawn.add(
        0, rows, nobody, draw_tokens(logits, torch.rand(num_samples, generator=generator), config)
    )
    answers = drawn.answers()
    tokens = [answer.token_ids for answer in answers]
    logprobs, _ = head_logprobs(
        bandit,
        torch.ones(num_samples, 1),
        torch.tensor(tokens).flatten(),
        config.temperature,
        with_entropy=False,
        restriction=Restriction.of([a.nucleus for a in answers], tokens, torch.device("cpu")),
    )
    (gradient,) = torch.autograd.grad(logprobs.mean(), bandit.head.weight)
    return gradient.squeeze(1)


@pytest.mark.parametrize("options", [{"top_p": 0.95}, {"top_p": 0.6}, {"top_p": 1.0, "top_k": 5}])
def test_the_mean_gradient_of_a_constant_reward_is_nothing_unless_it_is_of_the_whole(options):
    """Within five standard errors of 50 batches' means, in each of 40 logits."""
    bandit, generator = Bandit(), torch.Generator().manual_seed(0)
    deviations = {}
    for renormalize in (True, False):
        config = SamplingConfig(temperature=1.0, renormalize=renormalize, **options)
        batches = torch.stack(
            [reinforce_gradient(bandit, config, 400, generator) for _ in range(50)]
        )
        error = batches.std(0) / 50**0.5
        deviations[renormalize] = float((batches.mean(0).abs() / error.clamp(min=1e-7)).max())
    assert deviations[True] < 5
    assert deviations[False] > 20


def entropy_under_a_constant_reward(toy, *, renormalize, num_updates):
    """Entropy of the whole distribution of a peaked policy, before and after the updates."""
    sampling = {"max_new_tokens": 1, "temperature": 1.0, "top_p": 0.95, "renormalize": renormalize}
    learner = mlrl_learners.make(
        "mareinforce",
        agents=("solo",),
        model="tiny-random",
        sampling=sampling,
        group={"size": 256},
        optimizer={"lr": 1e-3},
    )
    policy = learner.policies["solo"]
    with torch.no_grad():
        policy.model.model.embed_tokens.weight.mul_(15)
    prompt = tuple(learner._formats["solo"].encode("one, turn 0"))
    found = []
    for number in range(num_updates + 1):
        with torch.no_grad():
            found.append(float(policy.logprobs([TokenRow(prompt, (0,))], temperature=1.0)[1]))
        if number < num_updates:
            learner.update(toy.play(learner, tasks=("one",), seed=number, reward=lambda *_: 1.0))
    return found[0], found[-1]


def test_a_constant_reward_does_not_sharpen_a_policy_unless_it_is_trained_as_a_whole(toy):
    before, after = entropy_under_a_constant_reward(toy, renormalize=True, num_updates=25)
    assert 0.85 * before < after < 1.15 * before
    before, after = entropy_under_a_constant_reward(toy, renormalize=False, num_updates=25)
    assert after < 0.7 * before
