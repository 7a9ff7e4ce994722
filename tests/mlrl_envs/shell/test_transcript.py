import mlrl_envs
from mlrl_envs.shell.transcript import transcript


def _text(env):
    return transcript("test/x-v0", env.family, env.task, env.turns)


def test_transcript_shows_what_was_read_written_and_earned():
    env = mlrl_envs.make("mlrl/story-v1", max_turns=2, reward="paper")
    observations, _ = env.reset(seed=0)
    assert _text(env).startswith(
        f"test/x-v0  task {env.task.task_id}\n--- turn 1 of 2, to be played"
    )
    assert observations["story"] in _text(env)
    env.step({"setup": "a" * 10, "story": "b" * 40})
    assert "[story writes]\n" + "b" * 40 in _text(env)
    assert "[story earns] 0.368 (length 0.368)" in _text(env)
    assert "--- turn 2 of 2, to be played" in _text(env)


def test_ended_episode_has_nothing_to_be_played():
    env = mlrl_envs.make("mlrl/story-v1", reward="paper")
    env.reset(seed=0)
    env.step({"setup": "a", "story": "\ud800"})
    assert "to be played" not in _text(env)
    assert "\ufffd" in _text(env)
