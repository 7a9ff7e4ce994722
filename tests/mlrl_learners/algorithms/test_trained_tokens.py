"""Tokens that an update trains: those of the completion with its end token, and no others."""

import pytest
import torch

import mlrl_learners
from mlrl_learners.config.option_places import merge_options
from mlrl_learners.engine import TokenRow
from mlrl_learners.types import Completion, JointStep, Node, Rollout

SOLO = ("solo",)


def make(name, agents=SOLO, **options):
    small = merge_options(
        {"model": "tiny-random", "sampling": {"max_new_tokens": 8}, "group": {"size": 4}}, options
    )
    return mlrl_learners.make(name, agents=agents, **small)


def played(learner, *answers, read="hello <|im_end|> you", rewards=None):
    """One turn in which the only agent gave these answers, as token ids."""
    prompt = tuple(learner._formats["solo"].encode(read))
    end = learner.policies["solo"].eos_ids
    group = []
    for ids in answers:
        row = TokenRow(prompt, ids)
        with torch.no_grad():
            odds, _ = learner.policies["solo"].logprobs([row], temperature=1.0)
        reason = "stop" if ids[-1] in end else "length"
        group.append(Completion("", prompt, tuple(ids), tuple(odds.tolist()), reason))
    values = rewards or [float(i) for i in range(len(answers))]
    steps = tuple(
        JointStep({"solo": i}, {"solo": value}, {}, {}, terminated=True, truncated=False)
        for i, value in enumerate(values)
    )
    return Rollout("t", "0", SOLO, Node(0, {"solo": read}, {"solo": tuple(group)}, steps))


SOLO_OPTIONS = {
    "loss": {"kind": "sequence"},
    "sampling": {"temperature": 1.0},
    "baseline": {"normalize_std": False},
}


def slow_gradient(learner, rollout, advantages):
    """-sum of A log pi over the completions' own tokens, one answer at a time, nothing padded."""
    policy, total = learner.policies["solo"], 0.0
    for answer, advantage in zip(rollout.root.completions["solo"], advantages, strict=True):
        ids = torch.tensor([[*answer.prompt_ids, *answer.token_ids]], device=policy.device)
        scores = policy.model(input_ids=ids).logits[0].log_softmax(-1)
        start = len(answer.prompt_ids)
        places = range(start - 1, ids.shape[1] - 1)
        total = total - advantage * scores[places, ids[0, start:]].sum() / len(advantages)
    parts = torch.autograd.grad(total, list(policy.model.parameters()))
    return torch.cat([part.flatten() for part in parts])


@pytest.mark.parametrize("packed", [True, False])
def test_the_end_of_sequence_is_trained_and_padding_is_not(packed, toy, monkeypatch):
    """Pad is the end of sequence itself, the prompt holds one, and one answer is nothing but it."""
    learner = make("grpo", **SOLO_OPTIONS)
    tokenizer = learner.policies["solo"].tokenizer
    end = tokenizer.eos_token_id
    assert tokenizer.pad_token_id == end
    learner.policies["solo"].engine.override(packs_prompts=packed)
    rollout = played(learner, (70, 71, end), (end,), (80, 81, 82, 83, 84, 85, 86, 87))
    assert end in rollout.root.completions["solo"][0].prompt_ids
    expected = slow_gradient(learner, rollout, [-1.0, 0.0, 1.0])
    (found,) = toy.gradients(learner, [rollout], monkeypatch)
    assert torch.allclose(found, expected, atol=1e-5)


def test_an_answer_that_ended_teaches_to_end(toy):
    """Paid for ending, a policy ends more often; paid for going on where it was cut, less."""
    chance = {}
    for ended in (True, False):
        learner = make("grpo", **merge_options(SOLO_OPTIONS, {"optimizer": {"lr": 1e-2}}))
        policy = learner.policies["solo"]
        end = policy.tokenizer.eos_token_id
        rollout = played(learner, (70, end), (70, 71), rewards=[float(ended), float(not ended)])
        row = TokenRow(rollout.root.completions["solo"][0].prompt_ids, (70, end))
        with torch.no_grad():
            before = float(policy.logprobs([row], temperature=1.0)[0][1])
        learner.update([rollout])
        with torch.no_grad():
            chance[ended] = float(policy.logprobs([row], temperature=1.0)[0][1]) - before
    assert chance[True] > 0 > chance[False]


@pytest.mark.parametrize("side", ["left", "right"])
def test_the_tokenizers_padding_side_changes_nothing(side, toy, monkeypatch):
    learner = make("magrpo", ("left", "right"))
    expected = toy.gradients(learner, toy.play(learner), monkeypatch)
    other = make("magrpo", ("left", "right"))
    for policy in other.policies.values():
        policy.tokenizer.padding_side = side
    rollouts = toy.play(other)
    found = toy.gradients(other, rollouts, monkeypatch)
    assert all(map(torch.equal, found, expected))
