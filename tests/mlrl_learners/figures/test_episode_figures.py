import pytest

from mlrl_learners.figures.episode_figures import figures_of
from mlrl_learners.types import Completion, Episode, EpisodeTurn


def played(task_id, reward, *, solved=False, seed=0, **parts):
    turn = EpisodeTurn(
        observations={"a": "", "b": ""},
        completions={"a": Completion(""), "b": Completion("")},
        rewards={"a": reward, "b": reward},
        components=dict.fromkeys("ab", parts or {"reward": reward}),
        infos={},
    )
    return Episode(task_id, seed, (turn,), solved, {"a": reward, "b": reward})


def test_a_task_of_which_more_was_played_weighs_no_more():
    episodes = [played("x", 1.0, solved=True), *[played("y", 0.0) for _ in range(3)]]
    figures = figures_of(episodes, ks=[1], seed=0)
    assert figures.mean_return == 0.5
    assert figures.solved_rate == figures.pass_at_k[1] == 0.5
    assert figures.agent_returns == {"a": 0.5, "b": 0.5}
    assert figures.components == {"reward": 0.5}


def test_components_add_up_to_the_mean_return_even_if_a_task_lacks_one():
    episodes = [played("x", 1.0, tests=0.75, style=0.25), played("y", 0.5, tests=0.5)]
    figures = figures_of(episodes, ks=[1], seed=0)
    assert figures.components == {"style": 0.125, "tests": 0.625}
    assert sum(figures.components.values()) == pytest.approx(figures.mean_return)
    for name, (low, high) in figures.component_intervals.items():
        assert low <= figures.components[name] <= high


def test_a_k_that_no_task_has_enough_episodes_for_is_left_out():
    assert figures_of([played("x", 1.0)], ks=[1, 2], seed=0).pass_at_k == {1: 0.0}


def test_episodes_of_a_stranger_without_task_ids_are_told_apart_by_their_seed():
    episodes = [played("", 1.0, seed=3), played("", 0.0, seed=4)]
    assert figures_of(episodes, ks=[1], seed=0).task_returns == {"seed 3": (1.0,), "seed 4": (0.0,)}
