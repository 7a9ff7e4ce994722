import pytest

from mlrl_learners.runs.records import rollout_record
from mlrl_learners.runs.tree import (
    complete_episodes,
    count_unfinished,
    first_episode,
    nodes,
    paths,
    root_of,
    step_values,
)
from mlrl_learners.types import Completion, JointStep, Node, Rollout

AGENTS = ("aux", "main")


def a_step(reward, child=None, *, terminated=False):
    return JointStep(
        samples=dict.fromkeys(AGENTS, 0),
        rewards=dict.fromkeys(AGENTS, reward),
        components={agent: {"tests": reward} for agent in AGENTS},
        infos={agent: {"solved": terminated} for agent in AGENTS},
        terminated=terminated,
        truncated=False,
        child=child,
    )


def a_node(turn, *steps):
    return Node(
        turn=turn,
        observations=dict.fromkeys(AGENTS, f"turn {turn}"),
        completions=dict.fromkeys(AGENTS, (Completion("wrote", (1,), (2, 3), (-0.5, -1.0)),)),
        steps=tuple(steps),
    )


@pytest.fixture
def rollout():
    """A chain: the first joint action was continued, the second was not, the third ended."""
    continued = a_step(0.5, a_node(1, a_step(1.0, terminated=True)))
    root = a_node(0, continued, a_step(0.25), a_step(0.0, terminated=True))
    return Rollout(env_id="e", task_id="t", seed=3, agents=AGENTS, root=root)


def test_every_path_ends_at_a_step_without_a_child(rollout):
    root = root_of(rollout_record(rollout))
    assert [len(path) for path in paths(root)] == [2, 1, 1]
    assert [node["turn"] for node in nodes(root)] == [0, 1]


def test_a_step_that_was_not_continued_has_the_value_of_its_siblings(rollout):
    assert step_values(root_of(rollout_record(rollout))) == [1.5, 1.25, 0.0]


def test_only_paths_to_the_end_are_episodes(rollout):
    record = rollout_record(rollout)
    found = list(complete_episodes(record))
    assert [(len(e.turns), e.team_return, e.solved) for e in found] == [
        (2, 1.5, True),
        (1, 0.0, True),
    ]
    assert {(e.env_id, e.task_id, e.seed) for e in found} == {("e", "t", 3)}
    assert count_unfinished(record) == 1


def test_the_first_episode_takes_the_step_that_was_continued(rollout):
    episode = first_episode(rollout_record(rollout))
    assert [turn.observations["aux"] for turn in episode.turns] == ["turn 0", "turn 1"]
    assert (episode.team_return, episode.solved) == (1.5, True)


@pytest.mark.parametrize("token_ids", [False, True])
def test_turns_have_token_ids_only_if_they_were_stored(rollout, token_ids):
    turn = first_episode(rollout_record(rollout, token_ids=token_ids)).turns[0]
    assert turn.tokens == {"aux": 2, "main": 2}
    assert turn.token_ids == ({"aux": [2, 3], "main": [2, 3]} if token_ids else None)
    assert turn.prompt_ids == ({"aux": [1], "main": [1]} if token_ids else None)


@pytest.mark.parametrize("missing", ["task_id", "seed", "env_id", "agents"])
def test_a_rollout_without_a_key_is_no_episode(rollout, missing):
    record = rollout_record(rollout)
    del record[missing]
    with pytest.raises(KeyError, match=missing):
        list(complete_episodes(record))
