"""Rollouts that a server samples: with other weights, without token ids, or not at all."""

import copy
import dataclasses
import math

import pytest
import torch

import mlrl_learners
from mlrl_envs.errors import EndpointError
from mlrl_learners.config.option_places import merge_options
from mlrl_learners.errors import ConfigError, UnknownNameError
from mlrl_learners.play.rollout import collect_rollouts
from mlrl_learners.policies import Policy, SamplingConfig
from mlrl_learners.testing.gradients import update_gradient
from mlrl_learners.testing.toy_model import toy_model

PLAIN = {
    "sampling": {"max_new_tokens": 1, "temperature": 1.0, "top_p": 1.0},
    "compute": {"device": "cpu"},
    "optimizer": {"lr": 1e-2},
}
CORRECTED = {"importance": {"correction": "token_truncate"}}


class Serving:
    """Answers of a policy, as a server with token ids gives them.

    Samples are systematic: n equally spaced uniform numbers give every token its share of n.
    """

    def __init__(self, policy, **fields):
        self.policy, self.fields = policy, fields

    def __call__(self, request):
        tokenizer = self.policy.tokenizer
        choices = [
            {
                "index": place,
                "text": tokenizer.decode([token], skip_special_tokens=True),
                "finish_reason": "stop" if token in self.policy.eos_ids else "length",
                "token_ids": [token],
                "logprobs": {"tokens": [], "token_logprobs": [logprob]},
            }
            for place, (token, logprob) in enumerate(self._draw(request))
        ]
        return 200, {"object": "text_completion", "choices": choices, **self.fields}

    @torch.no_grad()
    def _draw(self, request):
        ids = torch.tensor([request["prompt"]])
        logprobs = self.policy.model(input_ids=ids).logits[0, -1].log_softmax(-1)
        count = request["n"]
        spaced = (torch.arange(count) + 0.5) / count
        tokens = torch.searchsorted(logprobs.exp().cumsum(0), spaced).clamp(max=len(logprobs) - 1)
        return [(int(token), float(logprobs[token])) for token in tokens]


@pytest.fixture(scope="module")
def trained():
    return toy_model(0)


@pytest.fixture(scope="module")
def other(trained):
    """A policy with the weights of the trained one, far enough moved."""
    model = copy.deepcopy(trained[0])
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        noise = torch.randn(model.lm_head.weight.shape, generator=generator)
        model.lm_head.weight.add_(0.2 * noise)
    return Policy(model, trained[1])


@pytest.fixture
def make(trained, chat_server):
    def make_learner(name="mareinforce", agents=("left",), served=True, **options):
        server = {"sampler": {"endpoint": chat_server.url, "model": "m", "max_retries": 0}}
        parts = (PLAIN, server, CORRECTED) if served else (PLAIN,)
        return mlrl_learners.make(
            name, agents=agents, model=trained, seed=0, **merge_options(*parts, options)
        )

    return make_learner


def pay(actions, agent):
    return len(actions[agent]) / 10


def exact_gradient(learner, prompt):
    """The gradient of the expected reward over all tokens."""
    policy = learner.policies["left"]
    chances = policy.model(input_ids=torch.tensor([prompt])).logits[0, -1].softmax(-1)
    texts = policy.tokenizer.batch_decode(
        [[token] for token in range(len(chances))], skip_special_tokens=True
    )
    value = (chances * torch.tensor([pay({"left": text}, "left") for text in texts])).sum()
    found = torch.autograd.grad(value, learner.optimizers["left"].parameters, allow_unused=True)
    weights = learner.optimizers["left"].parameters
    return torch.cat(
        [
            (torch.zeros_like(w) if g is None else g).flatten()
            for w, g in zip(weights, found, strict=True)
        ]
    )


def believing(learner, rollouts):
    """The rollouts with the trained policy's log-probabilities, as if it had sampled."""
    policy = learner.policies["left"]
    found = []
    for rollout in rollouts:
        group = []
        for each in rollout.root.completions["left"]:
            ids = torch.tensor([each.prompt_ids])
            with torch.no_grad():
                logprobs = policy.model(input_ids=ids).logits[0, -1].log_softmax(-1)
            value = (float(logprobs[each.token_ids[0]]),)
            group.append(dataclasses.replace(each, logprobs=value))
        root = dataclasses.replace(rollout.root, completions={"left": tuple(group)})
        found.append(dataclasses.replace(rollout, root=root))
    return found


def test_the_correction_removes_the_bias_of_a_server_with_other_weights(
    make, other, chat_server, toy
):
    chat_server.answer = Serving(other)
    size = {"group": {"size": 1024}}
    learner = make(**size)
    rollouts = toy.play(learner, tasks=("one",), reward=pay)
    exact = exact_gradient(learner, rollouts[0].root.completions["left"][0].prompt_ids)

    def error(trainer, played):
        return float((update_gradient(trainer, played) - exact).norm() / exact.norm())

    without = error(make(served=False, **size), believing(learner, rollouts))
    truncated = error(learner, rollouts)
    whole = error(make(**merge_options(size, {"importance": {"cap": math.inf}})), rollouts)
    assert without > 0.3
    assert whole < 0.05
    assert whole <= truncated < without / 2


def test_a_server_with_the_trained_weights_has_weights_of_one(make, trained, chat_server, toy):
    chat_server.answer = Serving(Policy(*trained))
    learner = make(group={"size": 8})
    metrics = learner.update(toy.play(learner, reward=pay))
    assert metrics["left/kl_sampler"] == pytest.approx(0.0, abs=1e-6)
    assert metrics["left/importance_cut"] == 0.0
    assert metrics["left/grad_norm"] > 0.0


@pytest.mark.parametrize("estimator", ["k1", "k2", "k3"])
@pytest.mark.parametrize("where", ["reward", "token"])
def test_a_divergence_in_the_reward_is_that_of_the_trained_policy(
    where, estimator, make, other, chat_server, toy
):
    """The trained policy still is the reference: however far the server is, nothing is charged."""
    chat_server.answer = Serving(other)
    penalty = {"kl_coef": 1.0, "kl_in": where, "kl_estimator": estimator}
    learner = make(penalty=penalty, group={"size": 8})
    rollouts = toy.play(learner, reward=pay)
    charged = learner.reward_terms.apply(rollouts)
    paid, kept = (
        [step.rewards["left"] for r in some for step in r.root.steps]
        for some in (charged, rollouts)
    )
    assert paid == pytest.approx(kept, abs=1e-5)


@pytest.mark.parametrize("name", ["magrpo", "ippo", "madpo", "sft", "marlhf"])
def test_every_kind_of_learner_trains_on_what_a_server_sampled(name, make, other, chat_server, toy):
    chat_server.answer = Serving(other, metadata={"weight_version": 4})
    served = name in ("magrpo", "ippo", "marlhf")
    options = CORRECTED if served else {}
    server = {"sampler": {"endpoint": chat_server.url, "model": "m"}}
    learner = make(name, served=False, **merge_options(server, options, {"group": {"size": 4}}))
    team = learner.learner if name == "marlhf" else learner
    before = [p.clone() for p in team.policies["left"].parameters()]
    metrics = learner.update(toy.play(learner, reward=pay))
    assert len(chat_server.requests) == 2
    if name != "sft":
        assert metrics["sampler/oldest_weights"] == metrics["sampler/newest_weights"] == 4.0
    after = team.policies["left"].parameters()
    assert any(not torch.equal(a, b) for a, b in zip(before, after, strict=True))


def test_agents_without_a_model_on_the_server_are_played_by_the_trainer(
    make, other, chat_server, toy
):
    chat_server.answer = Serving(other)
    learner = make(agents=("left", "right"), sampler={"model": {"left": "m"}})
    learner.act([{"left": "one", "right": "one"}], num_samples=2)
    assert len(chat_server.requests) == 1


def test_evaluations_are_played_by_the_trained_policy(make, chat_server):
    learner = make()
    with learner.sampling_seed(3):
        learner.act([{"left": "one"}])
    learner.act([{"left": "one"}], explore=False)
    learner.spare("copy").act([{"left": "one"}])
    assert chat_server.requests == []
    assert learner.sampler is not None


def test_the_seeds_of_the_requests_follow_from_the_seed_of_the_learner(make, other, chat_server):
    chat_server.answer = Serving(other)
    for _ in range(2):
        learner = make()
        for _ in range(2):
            learner.act([{"left": "one"}])
    seeds = [request["seed"] for request in chat_server.requests]
    assert seeds[:2] == seeds[2:]
    assert len(set(seeds)) == 2


def test_a_prompt_that_fails_is_a_failed_episode_and_never_a_reward(make, other, chat_server, toy):
    serving, seen = Serving(other), set()

    def answer(request):
        seen.add(tuple(request["prompt"]))
        return (500, {"error": "lost"}) if len(request["prompt"]) > 3 else serving(request)

    chat_server.answer = answer
    learner = make(group={"size": 2})
    batch = collect_rollouts(
        [toy.env(learner.agents, reward=pay) for _ in range(2)],
        learner,
        learner.rollout,
        task_options=[{"task": "one"}, {"task": "a second task"}],
        seeds=[0, 1],
    )
    assert [each.error for each in batch.failures] == ["EndpointError"]
    assert "status 500" in batch.failures[0].message
    assert len(batch.rollouts) == 1
    assert len(seen) == 2


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"token_ids": None}, "no token ids in its answer"),
        ({"token_ids": [99]}, "token id 99 is outside the 16 tokens"),
        ({"text": "another word"}, "4 of 4 answers read differently with the tokenizer"),
    ],
)
def test_answers_of_another_vocabulary_are_refused(changes, message, make, other, chat_server):
    serving = Serving(other)

    def answer(request):
        status, body = serving(request)
        body["choices"] = [
            {k: v for k, v in (each | changes).items() if v is not None} for each in body["choices"]
        ]
        return status, body

    chat_server.answer = answer
    with pytest.raises(EndpointError, match=message) as caught:
        make().act([{"left": "one"}], num_samples=4)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("magrpo", {"importance": {"correction": "none"}}, "set importance.correction token_trunc"),
        ("magrpo", {"sampling": {"top_p": 0.9}}, "sampler.endpoint takes sampling.top_p 1"),
        ("magrpo", {"sampler": {"model": ""}}, "sampler.model must name a model"),
        ("magrpo", {"sampler": {"endpoint": "local"}}, "sampler.endpoint must be like http"),
        ("magrpo", {"sampler": {"max_retries": -1}}, "sampler.max_retries must be an int"),
        ("magrpo", {"sampler": {"endpoint": ""}}, "model m means nothing with an empty"),
        ("dpo", {"preferences": {"episodes": "x"}, "importance": None}, "sampler.endpoint http"),
    ],
)
def test_options_that_contradict_each_other_are_refused(name, options, message):
    server = {"sampler": {"endpoint": "http://127.0.0.1:1/v1", "model": "m"}}
    whole = merge_options(PLAIN, server, CORRECTED, options)
    whole = {group: fields for group, fields in whole.items() if fields is not None}
    with pytest.raises(ConfigError, match=message) as caught:
        mlrl_learners.make(name, agents=("a",), model="no/such-model", **whole)
    assert "\n" not in str(caught.value)


def test_a_model_for_an_agent_that_is_not_trained_is_refused(make):
    with pytest.raises(UnknownNameError, match=r"trained agent 'lefd'.*'left'"):
        make(sampler={"model": {"lefd": "m"}})


def test_sampling_options_are_those_of_the_request(make, other, chat_server):
    chat_server.answer = Serving(other)
    make(sampling=SamplingConfig(max_new_tokens=5, temperature=0.5, top_p=1.0)).act([{"left": "x"}])
    (request,) = chat_server.requests
    assert (request["max_tokens"], request["temperature"], request["top_p"]) == (5, 0.5, 1.0)
