"""Our environments as a verifiers environment, run by its own evaluation command."""

import json

import pytest

import mlrl_envs

pytestmark = pytest.mark.slow


def evaluated(run_peer, *words):
    options = ["--env.taskset.env-id", "mlrl/story-v1", "--env.taskset.options"]
    turns = json.dumps({"max_turns": 2})
    return run_peer("verifiers", "verifiers_peer.py", *options, turns, *words)


def played(env, index, texts):
    """Return the first observations, the returns, and all observations after them."""
    first, _ = env.reset(seed=0, options={"task_index": index})
    rewards, later = dict.fromkeys(first, 0.0), []
    for text in texts:
        observations, earned, *_ = env.step({a: text.get(a, "") for a in first})
        rewards = {agent: rewards[agent] + earned[agent] for agent in first}
        later.append(observations)
    return first, rewards, later


def reply(number):
    return f"A fox waits in the snow, {number}."


def test_the_model_plays_every_agent_over_several_turns(run_peer):
    seen = evaluated(run_peer, "--select.limit", "2")
    env = mlrl_envs.make("mlrl/story-v1", max_turns=2)
    assert len(seen["episodes"]) == 2
    for index, episode in enumerate(seen["episodes"]):
        texts = [dict.fromkeys(env.possible_agents, reply(number)) for number in (1, 3)]
        first, rewards, later = played(env, index, texts)
        assert episode["ok"], episode["errors"]
        assert episode["rewards"] == pytest.approx(rewards)
        for agent, text in first.items():
            assert [text] in seen["asked"]
            assert [text, reply(1), later[0][agent]] in seen["asked"]


def test_the_model_plays_one_seat(run_peer):
    seen = evaluated(run_peer, "--select.limit", "1", "--env.taskset.seat", "story")
    env = mlrl_envs.make("mlrl/story-v1", max_turns=2)
    _, rewards, _ = played(env, 0, [{"story": reply(1)}, {"story": reply(3)}])
    (episode,) = seen["episodes"]
    assert episode["rewards"] == {"story": pytest.approx(rewards["story"])}
    assert len(seen["asked"]) == 2


def test_a_wrong_seat_is_named(run_peer):
    with pytest.raises(AssertionError, match="stry"):
        evaluated(run_peer, "--select.limit", "1", "--env.taskset.seat", "stry")
