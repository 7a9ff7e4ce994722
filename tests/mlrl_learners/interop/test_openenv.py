"""Our environments behind OpenEnv's protocol, played by its own client."""

import json

import pytest

import mlrl_envs

pytestmark = pytest.mark.slow

TEXTS = {"setup": "A fox waits in the snow.", "story": "The fox waited all night."}


def test_a_team_is_played_over_several_turns(run_peer):
    options, reset = {"max_turns": 2}, {"seed": 3, "task_index": 5}
    words = [json.dumps(each) for each in ("mlrl/story-v1", options, reset)]
    actions = [{"actions": TEXTS}] * 3 + [{"text": "x"}]
    seen = run_peer("openenv", "openenv_peer.py", *words, json.dumps(actions))
    env = mlrl_envs.make("mlrl/story-v1", **options)
    observations, infos = env.reset(seed=3, options={"task_index": 5})
    first, second, third, fourth, fifth = seen["found"]
    assert first["observation"]["texts"] == observations
    assert first["observation"]["task_id"] == infos["setup"]["task_id"]
    assert not first["done"]
    for found in (second, third):
        observations, rewards, *_ = env.step(TEXTS)
        assert found["observation"]["rewards"] == rewards
        assert found["reward"] == pytest.approx(sum(rewards.values()) / 2)
        assert found["observation"]["texts"] == (observations if env.agents else {})
        assert found["done"] == (not env.agents)
    assert third["done"]
    assert "call reset first" in fourth["error"]
    assert "VALIDATION_ERROR" in fifth["error"]
    assert seen["again"]
    assert seen["count"] == 2
    assert seen["health"] == {"status": "healthy"}
    assert seen["action"] == ["actions"]


def test_an_environment_of_one_agent_has_texts(run_peer):
    env_id, options = "mlrl/humaneval-v1", {"split": "sample", "num_aux": 0, "max_turns": 1}
    env = mlrl_envs.make(env_id, **options)
    observations, _ = env.reset(options={"task_index": 1})
    right = env.reference_actions()["main"]
    given = (env_id, options, {"task_index": 1}, [{"text": right}])
    seen = run_peer("openenv", "openenv_peer.py", *map(json.dumps, given))
    first, second = seen["found"]
    assert first["observation"]["text"] == observations["main"]
    _, rewards, *_ = env.step({"main": right})
    assert second["reward"] == pytest.approx(rewards["main"])
    assert second["done"]
    assert second["observation"]["solved"]
