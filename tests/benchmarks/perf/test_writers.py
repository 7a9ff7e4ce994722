import copy

import pytest

import mlrl_envs
from benchmarks.perf.work import Work, length_reward, revision, story_reward
from benchmarks.perf.writers import Writers

PROMPTS = [{"setup": "Set it up.", "story": "Tell it."}]


def test_turns_go_on_until_the_last_and_show_what_was_written():
    env = Writers(PROMPTS, turns=2)
    env.reset(options={"task_index": 0})
    observations, rewards, _, truncations, _ = env.step({"setup": "a" * 10, "story": "b" * 25})
    assert observations["setup"] == revision("Set it up.", "a" * 10)
    assert rewards == {"setup": 1.0, "story": 1.0}
    assert (set(truncations.values()), len(env.agents)) == ({False}, 2)
    *_, truncations, _ = env.step({"setup": "a", "story": "b"})
    assert (set(truncations.values()), env.agents) == ({True}, [])


def test_a_copy_plays_by_itself():
    env = Writers(PROMPTS, turns=2)
    env.reset()
    copy.deepcopy(env).step({"setup": "a", "story": "b"})
    assert (env.turn, env.read) == (0, PROMPTS[0])


def test_a_single_writer_is_paid_by_length():
    env = Writers([{"writer": "Tell it."}])
    env.reset()
    assert (
        env.step({"writer": "a" * 400})[1]
        == {"writer": length_reward("a" * 400)}
        == {"writer": 1.0}
    )


@pytest.mark.parametrize(("first", "second"), [("", "b"), ("ab", "b" * 5), ("ab", "b"), ("a", "")])
def test_the_ratio_is_paid_as_the_story_environment_pays_it(first, second):
    env = mlrl_envs.make("mlrl/story-v1", reward="paper")
    env.reset(seed=0)
    rewards = env.step({"setup": first, "story": second})[1]
    assert story_reward([first], [second]) == [rewards["story"]]


def test_a_figure_says_neither_texts_nor_paths():
    facts = Work("/somewhere", PROMPTS).facts()
    assert (facts["tasks"], facts["agents"]) == (1, 2)
    assert "prompts" not in facts
    assert "/somewhere" not in facts.values()
