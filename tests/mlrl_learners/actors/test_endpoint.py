import json
import pickle

import pytest

import mlrl_envs
from mlrl_envs.errors import EndpointError, InfraError, InvalidArgumentError
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


def _as_calls(text):
    """Return a reference as the message of a server that reads calls out of answers."""
    *calls, rest = text.split("</tool_call>")
    bodies = [json.loads(call.rpartition("<tool_call>")[2]) for call in calls]
    listed = [
        {
            "id": f"call-{number}",
            "type": "function",
            "function": {"name": body["name"], "arguments": json.dumps(body["parameters"])},
        }
        for number, body in enumerate(bodies)
    ]
    return {"role": "assistant", "content": rest.strip() or None, "tool_calls": listed}


def test_calls_of_a_server_with_tools_earn_what_the_reference_earns(chat_server):
    options = {"tool_format": "template", "max_turns": 1}
    env = mlrl_envs.make("mlrl/tools-v1", split="sample", **options)
    observations, _ = env.reset(options={"task_index": 0})
    right = env.reference_actions()
    message_of = {observations[agent]: _as_calls(text) for agent, text in right.items()}

    def answer(request):
        message = message_of[request["messages"][-1]["content"]]
        return 200, {"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}

    chat_server.answer = answer
    actor = EndpointActor(Endpoint(chat_server.url, "m"), tools="mlrl/tools-v1")
    result = evaluate(
        env_id="mlrl/tools-v1", split="sample", env_options=options, actor=actor, tasks=1
    )
    assert result.mean_return == pytest.approx(1.0)
    schemas = mlrl_envs.tools_of("mlrl/tools-v1")
    assert all(request["tools"] == schemas for request in chat_server.requests)


def test_malformed_arguments_score_as_a_malformed_call(chat_server):
    def answer(_):
        function = {"name": "search", "arguments": '{"query": '}
        calls = [{"id": "1", "type": "function", "function": function}]
        message = {"role": "assistant", "content": "", "tool_calls": calls}
        return 200, {"choices": [{"index": 0, "message": message}]}

    chat_server.answer = answer
    actor = EndpointActor(Endpoint(chat_server.url, "m"), tools="mlrl/tools-v1")
    options = {"tool_format": "template", "max_turns": 1, "reward": "paper"}
    result = evaluate(
        env_id="mlrl/tools-v1", split="sample", env_options=options, actor=actor, tasks=1
    )
    assert result.mean_return == pytest.approx(-0.2)  # a malformed call of each agent


def test_an_environment_without_tools_is_refused():
    with pytest.raises(InvalidArgumentError, match=r"has no tools; .*: mlrl/tools-v1"):
        EndpointActor(Endpoint("http://127.0.0.1:1/v1", "m"), tools="mlrl/math-v2")
