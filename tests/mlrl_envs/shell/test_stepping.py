import copy

import pytest
from pettingzoo import ParallelEnv

import mlrl_envs
from mlrl_envs.errors import InfraError, InvalidActionError, InvalidArgumentError
from mlrl_envs.sandbox import Outcome

EMPTY = {"aux": "", "main": ""}


def _forks(env, count):
    return [copy.deepcopy(env) for _ in range(count)]


def test_forks_of_one_environment_are_scored_as_one_batch(code_env, fake_sandbox):
    envs = _forks(code_env, 3)
    mlrl_envs.step_many(envs, [code_env.reference_actions()] * 3)
    assert fake_sandbox.batches[0] == 3


def test_many_steps_equal_single_steps_in_order(code_env):
    actions = [EMPTY, code_env.reference_actions(), EMPTY]
    together = mlrl_envs.step_many(_forks(code_env, 3), actions)
    alone = [env.step(a) for env, a in zip(_forks(code_env, 3), actions, strict=True)]
    assert together == alone


def test_families_may_be_mixed(code_env, story_env):
    story_env.reset(seed=0)
    texts = {"setup": "A fox.", "story": "A fox sleeps."}
    results = mlrl_envs.step_many([code_env, story_env], [EMPTY, texts])
    assert set(results[0][1]) == {"aux", "main"}
    assert set(results[1][1]) == {"setup", "story"}


def test_ended_environment_takes_an_empty_action(story_env):
    story_env.reset(seed=0)
    story_env.step({"setup": "", "story": ""})
    assert mlrl_envs.step_many([story_env], [{}]) == [({}, {}, {}, {}, {})]


def test_one_bad_action_steps_nothing(code_env):
    envs = _forks(code_env, 2)
    with pytest.raises(InvalidActionError):
        mlrl_envs.step_many(envs, [EMPTY, {"aux": ""}])
    assert not envs[0].turns


def test_the_same_environment_twice_is_refused(code_env):
    with pytest.raises(InvalidArgumentError, match="twice"):
        mlrl_envs.step_many([code_env, code_env], [EMPTY, EMPTY])


def test_lengths_must_agree(code_env):
    with pytest.raises(InvalidArgumentError, match="1 environments, 2 actions"):
        mlrl_envs.step_many([code_env], [EMPTY, EMPTY])


@pytest.mark.parametrize("name", ["envs", "seeds", "options"])
def test_resets_of_what_is_no_list_are_refused(name, code_env):
    given = {"envs": [code_env], "seeds": [1], "options": [None], name: None}
    with pytest.raises(InvalidArgumentError, match=f"{name} must be a list with one entry"):
        mlrl_envs.reset_many(**given)


def test_other_peoples_environments_are_stepped_one_by_one(story_env):
    class Theirs(ParallelEnv):
        def __init__(self):
            self.agents = ["a"]

        def step(self, actions):
            return actions, {"a": 1.0}, {"a": True}, {"a": False}, {"a": {}}

    story_env.reset(seed=0)
    results = mlrl_envs.step_many([Theirs(), story_env], [{"a": "x"}, {"setup": "", "story": ""}])
    assert results[0][0] == {"a": "x"}
    assert results[1][1] == {"setup": 0.0, "story": 0.0}
    with pytest.raises(InvalidActionError, match="must map agents to texts, got NoneType"):
        mlrl_envs.step_many([Theirs()], [None])


def test_no_environments_give_no_results():
    assert mlrl_envs.step_many([], []) == []


class Failing:
    """A sandbox that fails wherever a program holds a word."""

    def run_many(self, programs):
        if any("cursed" in program.source for program in programs):
            raise InfraError("the machine is on fire")
        return [Outcome("failed", 0, 1) for _ in programs]


def _cursed_envs():
    env = mlrl_envs.make("mlrl/humaneval-v1", split="all", num_aux=0, sandbox=Failing())
    env.reset(seed=0, options={"task_index": 0})
    code = f"```python\ndef {env.task.entry_point}(*args):\n    return {{}}\n```"
    texts = [{"main": code.format(word)} for word in ("'fair'", "'cursed'", "'fine'")]
    return _forks(env, 3), texts


def test_failing_program_fails_its_own_item_only():
    envs, texts = _cursed_envs()
    first, second, third = mlrl_envs.step_many(envs, texts, errors="return")
    assert isinstance(second, InfraError)
    assert first[1] == third[1] == {"main": 0.0}
    assert [bool(env.turns) for env in envs] == [True, False, True]


def test_failing_program_changes_no_environment_where_errors_are_raised():
    envs, texts = _cursed_envs()
    with pytest.raises(InfraError, match="on fire"):
        mlrl_envs.step_many(envs, texts)
    assert not any(env.turns for env in envs)


def test_invalid_actions_are_returned_in_place(code_env):
    good, bad = _forks(code_env, 2)
    result, error = mlrl_envs.step_many([good, bad], [EMPTY, {"aux": ""}], errors="return")
    assert isinstance(error, InvalidActionError)
    assert result[1] == {"aux": 0.0, "main": 0.0}


def test_many_resets_equal_single_resets(code_env):
    options = [{"task_index": 3}, None, {"task_id": "HumanEval/2"}]
    together = mlrl_envs.reset_many(_forks(code_env, 3), [1, 2, None], options)
    alone = [
        env.reset(seed=seed, options=each)
        for env, seed, each in zip(_forks(code_env, 3), [1, 2, None], options, strict=True)
    ]
    assert together == alone


def test_failed_reset_is_returned_in_place(code_env):
    options = [{"task_index": -1}, {"task_index": 1}]
    envs = _forks(code_env, 2)
    error, (_, infos) = mlrl_envs.reset_many(envs, [0, 0], options, errors="return")
    assert isinstance(error, InvalidArgumentError)
    assert infos["main"]["task_id"] == "HumanEval/1"
    with pytest.raises(InvalidArgumentError, match="task_index"):
        mlrl_envs.reset_many(envs, [0, 0], options)
