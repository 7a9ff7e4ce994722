"""No agent reads the secrets of its task, whatever is played and whatever the feedback is.

Everything that an environment returns in an episode is searched: observations, infos, `state()`,
`render()`. The secrets of each type of task, and the joint actions that are played, are in
`task_secrets.py`.
"""

import os
from collections.abc import Iterator, Mapping

import pytest

import mlrl_envs
from mlrl_envs.errors import DataNotFoundError
from mlrl_envs.feedback import FEEDBACK_MODES
from mlrl_envs.registration import BUILT_IN_TASKS
from mlrl_envs.sandbox import Limits
from tests.mlrl_envs.task_secrets import (
    PLAYS,
    SECRETS,
    WITH_SOLUTION,
    any_plays,
    no_secrets,
    reference_secrets,
)

FEEDBACK = [mode for mode in FEEDBACK_MODES if mode != "expert_edits"]  # needs an expert
MAX_TASKS = 40


def _make(env_id, split, **options):
    limits = Limits(wall_seconds=3.0, test_seconds=1.0)
    return mlrl_envs.make(env_id, split=split, render_mode="ansi", limits=limits, **options)


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for name, item in value.items():
            yield from (str(name), *_texts(item))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)


def _episode(env, task_index: int, actions: Mapping[str, str]) -> str:
    """Play the same joint action until the end and return everything that could be read."""
    read: list[object] = list(env.reset(options={"task_index": task_index}))
    while env.agents:
        observations, _, _, _, infos = env.step(actions)
        read += [observations, infos, env.state(), env.render()]
    # An escaped quote is still the same text to a reader.
    return "\n".join(_texts(read)).replace("\\'", "'")


def _leaks(env, task_index: int) -> list[tuple[str, str]]:
    env.reset(options={"task_index": task_index})
    kind = type(env.task)
    if kind in SECRETS:
        secrets = SECRETS[kind](env.task)
        plays = PLAYS[kind](env.task, env.reference_actions())
    else:
        secrets, plays = reference_secrets(env), any_plays(env)
    found = []
    for name, actions in plays.items():
        text = _episode(env, task_index, actions)
        kept = secrets.tests if name in WITH_SOLUTION else secrets.tests | secrets.solution
        written = "\n".join(actions.values())
        found += [(name, secret) for secret in kept if secret in text and secret not in written]
    return found


def _check(env_id, split, **options):
    env = _make(env_id, split, **options)
    step = max(1, env.num_tasks // MAX_TASKS)
    env.reset(options={"task_index": 0})
    leaks = {index: _leaks(env, index) for index in range(0, env.num_tasks, step)}
    assert {index: found for index, found in leaks.items() if found} == {}


@pytest.mark.parametrize("mode", FEEDBACK)
@pytest.mark.parametrize("env_id", BUILT_IN_TASKS)
def test_no_secret_of_the_sample_is_read(env_id, mode):
    _check(env_id, "sample", feedback=mode, max_turns=2)


@pytest.mark.parametrize("env_id", BUILT_IN_TASKS)
def test_no_secret_of_the_sample_is_read_when_all_is_broadcast(env_id):
    _check(env_id, "sample", max_turns=3, communication="broadcast")


@pytest.mark.slow
@pytest.mark.parametrize("env_id", BUILT_IN_TASKS)
@pytest.mark.skipif(not os.environ.get("MLRL_DATA_DIR"), reason="MLRL_DATA_DIR is not set")
def test_no_secret_of_the_full_data_is_read(env_id):
    try:
        _check(env_id, "all", max_turns=2, communication="broadcast")
    except DataNotFoundError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("env_id", BUILT_IN_TASKS)
def test_families_with_secrets_have_some_to_search_for(env_id):
    env = _make(env_id, "sample")
    find = SECRETS.get(type(env.family.tasks[0]), no_secrets)
    secrets = [find(task) for task in env.family.tasks]
    if find is no_secrets:
        assert not any(each.tests or each.solution for each in secrets)
    else:
        assert sum(bool(each.tests) for each in secrets) >= len(secrets) / 2
