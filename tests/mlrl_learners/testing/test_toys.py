import itertools
import random

import pytest
from pettingzoo.test import parallel_api_test

from mlrl_learners.testing import TOYS, ToyEnv, expected_return
from mlrl_learners.testing.toys import pick_of

AGENTS = ("left", "right")


@pytest.fixture(params=list(TOYS))
def toy(request):
    return TOYS[request.param]


@pytest.mark.parametrize(
    ("text", "pick"), [("", 0), ("0", 1), ("1", 0), ("b or not b", 1), ("é", 0)]
)
def test_the_first_character_decides_the_pick(text, pick):
    assert pick_of(text) == pick


def test_a_toy_is_a_parallel_environment(toy):
    parallel_api_test(ToyEnv(toy, AGENTS), num_cycles=50)


def test_the_expected_return_is_the_mean_return_of_play(toy):
    chance = {"left": 0.3, "right": 0.6}
    draw = random.Random(0)
    env, total, episodes = ToyEnv(toy, AGENTS), 0.0, 4000
    for _ in range(episodes):
        env.reset()
        while env.agents:
            actions = {a: "0" if draw.random() < chance[a] else "1" for a in env.agents}
            total += env.step(actions)[1]["left"] / episodes
    exact = expected_return(toy, AGENTS, lambda agent, _: chance[agent])
    assert total == pytest.approx(exact, abs=0.03)


@pytest.mark.parametrize("agents", [AGENTS, AGENTS[:1]])
def test_no_policy_earns_more_than_the_optimum_and_one_earns_it(toy, agents):
    texts = set()
    expected_return(toy, agents, lambda _, text: texts.add(text) or 0.5)
    choices = [(agent, text) for agent in agents for text in sorted(texts)]
    best = max(
        expected_return(toy, agents, lambda *key: dict(zip(choices, picks, strict=True))[key])  # noqa: B023
        for picks in itertools.product((0.0, 1.0), repeat=len(choices))
    )
    assert best == pytest.approx(toy.optimum)
