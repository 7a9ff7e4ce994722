from mlrl_envs.envs.family import Family
from mlrl_envs.envs.history import MAX_QUOTED_CHARS
from mlrl_envs.envs.options import FamilyConfig
from mlrl_envs.types import Score, Task, Turn

TASK = Task("test/0")


def _turn(solved=False, **actions):
    return Turn(actions, Score({agent: {} for agent in actions}, solved))


class OneTask(Family[FamilyConfig, Task]):
    env_id = "test/one-task-v0"
    config_type = FamilyConfig
    agents = ("a", "b")
    reward_range = (0.0, 1.0)

    @classmethod
    def load_tasks(cls, config):
        return (TASK,)

    def prompt(self, task, agent):
        return "The task."

    def score(self, attempts, sandbox):
        raise NotImplementedError


def _read(turns, **options):
    config = FamilyConfig(**{"max_turns": 3, "feedback": "passed", **options})
    return OneTask(config, (TASK,)).observe(TASK, turns, "a")


def test_first_observation_is_the_task():
    assert _read([]) == "The task."


def test_later_observation_adds_answer_feedback_request():
    assert _read([_turn(a="Mine.", b="Theirs.")]) == (
        "The task.\n\nYou answered in turn 1:\nMine.\n\n"
        "Feedback on the joint answer:\nNot all levels passed.\n\n"
        "Revise your answer. Reply in the same format as before, with the whole answer."
    )


def test_only_the_last_answer_is_quoted():
    text = _read([_turn(a="First.", b=""), _turn(a="Second.", b="")])
    assert "First." not in text
    assert "You answered in turn 2:\nSecond." in text


def test_empty_answer_is_said_to_be_empty():
    assert "You answered in turn 1:\n(nothing)" in _read([_turn(a=" \n", b="")])


def test_huge_answers_are_cut():
    assert len(_read([_turn(a="x" * 10**6, b="")])) < MAX_QUOTED_CHARS + 500


def test_plain_feedback_leaves_no_heading():
    assert "Feedback" not in _read([_turn(a="x", b="")], feedback="plain")


def test_end_of_the_episode_asks_for_nothing():
    assert _read([_turn(a="x", b="", solved=True)]).endswith("The episode is over.")
    assert _read([_turn(a="x", b="")], max_turns=1).endswith("The episode is over.")
