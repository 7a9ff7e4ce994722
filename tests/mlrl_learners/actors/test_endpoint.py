import pickle

import pytest

from mlrl_envs.errors import EndpointError, InfraError
from mlrl_envs.models import Endpoint
from mlrl_learners.actors import EndpointActor
from mlrl_learners.evaluation.evaluate import evaluate
from mlrl_learners.types import Actor, Usage

NODES = [{"setup": "one", "story": "two"}, {"setup": "three", "story": "four"}]


@pytest.fixture
def actor(chat_server):
    options = {"max_retries": 0, "temperature": 0.7, "seed": 3}
    return EndpointActor(Endpoint(chat_server.url, "m", **options))


def seeds(server):
    return [request["seed"] for request in server.requests]


def test_it_is_an_actor_and_survives_pickling(actor):
    assert isinstance(actor, Actor)
    assert pickle.loads(pickle.dumps(actor)).act(NODES)


def test_each_agent_of_each_node_is_answered(actor):
    answers = actor.act(NODES, num_samples=3)
    texts = [{agent: [c.text for c in group] for agent, group in node.items()} for node in answers]
    assert texts == [
        {"setup": ["one!"] * 3, "story": ["two!"] * 3},
        {"setup": ["three!"] * 3, "story": ["four!"] * 3},
    ]


def test_what_the_server_counts_is_the_cost(actor):
    (completion,) = actor.act(NODES[:1])[0]["setup"]
    assert completion.cost == Usage(prompt_tokens=7, completion_tokens=2)
    assert completion.token_ids == ()


def test_every_answer_is_drawn_from_a_seed_of_its_own(actor, chat_server):
    actor.act(NODES, num_samples=2)
    actor.act(NODES, num_samples=2)
    assert len(set(seeds(chat_server))) == 16


def test_the_same_sampling_seed_asks_for_the_same_answers(actor, chat_server):
    for _ in range(2):
        with actor.sampling_seed(11):
            actor.act(NODES)
    first, second = seeds(chat_server)[:4], seeds(chat_server)[4:]
    assert sorted(first) == sorted(second)
    with actor.sampling_seed(12):
        actor.act(NODES)
    assert not set(seeds(chat_server)[8:]) & set(first)


def test_without_a_seed_none_is_sent(chat_server):
    EndpointActor(Endpoint(chat_server.url, "m")).act(NODES)
    assert all("seed" not in request for request in chat_server.requests)


def test_greedy_answers_are_asked_for_once_at_temperature_zero(actor, chat_server):
    answers = actor.act(NODES[:1], num_samples=4, explore=False)
    assert [c.text for c in answers[0]["story"]] == ["two!"] * 4
    assert [request["temperature"] for request in chat_server.requests] == [0.0, 0.0]


def test_a_dead_server_raises(dead_url):
    with pytest.raises(EndpointError, match="cannot connect"):
        EndpointActor(Endpoint(dead_url, "m", max_retries=0)).act(NODES)


def test_episodes_of_a_failing_server_are_left_out_and_never_scored(actor, chat_server):
    def answer(request):
        if "dragon" in request["messages"][0]["content"]:
            return 500, {"error": {"message": "out of memory"}}
        return chat_server.echo(request)

    chat_server.answer = answer
    prompts = ["Tell of a dragon:", "Tell of a fox:"]
    result = evaluate(
        env_id="mlrl/story-v1", split="eval", env_options={"prompts": prompts}, actor=actor
    )
    (failure,) = result.failures
    assert failure.error == "EndpointError"
    assert "out of memory" in failure.message
    assert len(result.episodes) == 1


def test_an_evaluation_without_any_answer_raises(dead_url):
    actor = EndpointActor(Endpoint(dead_url, "m", max_retries=0))
    with pytest.raises(InfraError, match=r"every episode .* failed: endpoint"):
        evaluate(env_id="mlrl/story-v1", actor=actor, tasks=1)


def test_an_evaluation_counts_what_the_server_counted(actor):
    result = evaluate(env_id="mlrl/story-v1", actor=actor, tasks=3)
    assert (result.tokens, result.prompt_tokens) == (3 * 2 * 2, 3 * 2 * 7)
    assert result.as_dict()["episodes"][0]["turns"][0]["prompt_tokens"]["story"] == 7
