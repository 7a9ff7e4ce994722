"""Clients of the policy server: the library of OpenAI, our endpoint actor, and our sampler."""

import pytest
import torch

from mlrl_envs.models import Endpoint
from mlrl_learners import make
from mlrl_learners.actors import EndpointActor
from mlrl_learners.cli import main
from mlrl_learners.engine import TokenRow

USER = [{"role": "user", "content": "a fox"}]


@pytest.fixture(scope="module")
def client(server):
    openai = pytest.importorskip("openai")
    with openai.OpenAI(base_url=server.url, api_key="none", max_retries=0) as client:
        yield client


def test_the_openai_library_reads_answers_and_streams(client):
    options = {"model": "tiny-random", "messages": USER, "max_tokens": 12, "seed": 5}
    whole = client.chat.completions.create(**options, logprobs=True, top_logprobs=2)
    assert len(whole.choices[0].logprobs.content[0].top_logprobs) == 2
    assert whole.usage.total_tokens == whole.usage.prompt_tokens + whole.usage.completion_tokens
    parts = client.chat.completions.create(**options, stream=True)
    text = "".join(part.choices[0].delta.content or "" for part in parts)
    assert text == whole.choices[0].message.content
    plain = client.completions.create(model="tiny-random", prompt="hi", logprobs=2, stream=False)
    assert len(plain.choices[0].logprobs.token_logprobs) == plain.usage.completion_tokens
    assert [model.id for model in client.models.list()] == ["tiny-random"]


def test_the_openai_library_raises_its_own_errors(client):
    openai = pytest.importorskip("openai")
    with pytest.raises(openai.BadRequestError, match="no_such"):
        client.completions.create(model="tiny-random", prompt="x", extra_body={"no_such": 1})
    with pytest.raises(openai.NotFoundError, match="there are: tiny-random"):
        client.completions.create(model="other", prompt="x")


def test_an_endpoint_actor_plays_like_the_model_itself(server):
    pytest.importorskip("openai")
    endpoint = Endpoint(server.url, "tiny-random", max_tokens=10, temperature=0.0)
    observations = [{"a": "one", "b": "two"}, {"a": "three <|im_end|>", "b": "four"}]
    local = make(
        "magrpo", agents=["a", "b"], model="tiny-random", team={"share_weights": True},
        sampling={"max_new_tokens": 10},
    )  # fmt: skip
    served = EndpointActor(endpoint).act(observations, explore=False)
    expected = local.act(observations, explore=False)
    for ours, theirs in zip(served, expected, strict=True):
        assert {a: g[0].text for a, g in ours.items()} == {a: g[0].text for a, g in theirs.items()}


def test_an_endpoint_actor_repeats_its_answers_by_the_seed(server):
    pytest.importorskip("openai")
    actor = EndpointActor(Endpoint(server.url, "tiny-random", max_tokens=10, temperature=1.0))
    drawn = []
    for seed in (5, 5, 6):
        with actor.sampling_seed(seed):
            (answers,) = actor.act([{"a": "one", "b": "two"}], num_samples=3)
        drawn.append({agent: [c.text for c in group] for agent, group in answers.items()})
    assert drawn[0] == drawn[1] != drawn[2]


@pytest.fixture
def team(server):
    pytest.importorskip("openai")
    return make(
        "magrpo", agents=["setup", "story"], model="tiny-random", team={"share_weights": True},
        sampling={"max_new_tokens": 12, "top_p": 1.0, "temperature": 0.8},
        sampler={"endpoint": server.url, "model": "tiny-random"},
        importance={"correction": "token_truncate"},
    )  # fmt: skip


def test_the_sampler_gets_tokens_whose_logprobs_the_learner_agrees_with(team):
    (answers,) = team.act([{"setup": "begin", "story": "tell"}], num_samples=4)
    policy = team.policies["shared"]
    for group in answers.values():
        assert len({c.token_ids for c in group}) == 4
        for completion in group:
            row = TokenRow(completion.prompt_ids, completion.token_ids)
            with torch.no_grad():
                expected = policy.logprobs([row], temperature=0.8)[0].tolist()
            assert completion.logprobs == pytest.approx(expected, abs=1e-4)
    metrics = team.sampler_metrics()
    assert metrics == {"sampler/oldest_weights": 0.0, "sampler/newest_weights": 0.0}


def test_a_run_is_trained_on_rollouts_of_the_server(server, tmp_path):
    pytest.importorskip("openai")
    sampler = {"endpoint": server.url, "model": "tiny-random"}
    words = {
        "learner.model": "tiny-random", "learner.team.share_weights": "true",
        "learner.sampling.max_new_tokens": "8", "learner.sampling.top_p": "1.0",
        "train.iterations": "2", "learner.group.size": "2",
        "train.eval_every": "0", "train.tasks_per_iteration": "1", "env.reward": "grounded",
        "learner.importance.correction": "token_truncate",
        **{f"learner.sampler.{name}": value for name, value in sampler.items()},
    }  # fmt: skip
    overrides = [word for key, value in words.items() for word in (f"--{key}", value)]
    before = server.batcher.num_batches
    assert main(["train", "story", "--run-dir", str(tmp_path / "run"), *overrides]) == 0
    assert server.batcher.num_batches > before
    (*_, last) = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    assert "sampler/newest_weights" in last


def test_the_server_loads_the_weights_of_the_trainer_before_each_collection(open_server, tmp_path):
    pytest.importorskip("openai")
    server = open_server(reload_from=tmp_path)
    sampler = {"update": "mlrl", "weights_folder": str(tmp_path / "weights")}
    team = make(
        "magrpo", agents=["a"], model="tiny-random", group={"size": 2},
        sampling={"max_new_tokens": 6, "top_p": 1.0, "temperature": 1.0},
        sampler={"endpoint": server.url, "model": "tiny-random", **sampler},
        importance={"correction": "token_truncate"},
    )  # fmt: skip
    policy = team.policies["a"]
    for version in (1.0, 2.0):
        with torch.no_grad():
            policy.model.lm_head.weight.mul_(0.7)
        team.begin_update()
        ((answers,),) = (found.values() for found in team.act([{"a": "x"}], num_samples=2))
        row = TokenRow(answers[0].prompt_ids, answers[0].token_ids)
        with torch.no_grad():
            expected = policy.logprobs([row], temperature=1.0)[0].tolist()
        assert answers[0].logprobs == pytest.approx(expected, abs=1e-4)
        assert team.sampler_metrics()["sampler/newest_weights"] == version
