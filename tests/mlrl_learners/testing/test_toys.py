import itertools
import random

import pytest
from pettingzoo.test import api_test, parallel_api_test, parallel_seed_test, seed_test

import mlrl_envs
from mlrl_learners.testing import TOYS, ToyEnv, expected_return
from mlrl_learners.testing.toys import TEXTS, expected_returns, pick_of

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
            total += sum(env.step(actions)[1].values()) / (len(AGENTS) * episodes)
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


def test_a_toy_keeps_the_contract_of_environments(toy):
    mlrl_envs.check_env(lambda: ToyEnv(toy, AGENTS))
    mlrl_envs.check_env(lambda: ToyEnv(toy, AGENTS[:1]))


@pytest.mark.filterwarnings("ignore::UserWarning:pettingzoo")
def test_a_toy_passes_pettingzoos_suites(toy):
    def aec():
        return mlrl_envs.to_aec(ToyEnv(toy, AGENTS))

    parallel_seed_test(lambda: ToyEnv(toy, AGENTS), num_cycles=5)
    api_test(aec(), num_cycles=20)
    seed_test(aec, num_cycles=5)


@pytest.mark.parametrize("pick", [0, 1])
def test_each_pick_has_a_text(pick):
    assert pick_of(TEXTS[pick]) == pick


def played(picks, agents=AGENTS):
    """Play a relay; return the acting agent and the rewards of each turn."""
    env = ToyEnv(TOYS["relay"], agents)
    env.reset()
    found = []
    for pick in picks:
        acting = env.acting
        _, rewards, terminations, truncations, _ = env.step({acting[0]: TEXTS[pick]})
        found.append((acting, rewards))
    assert env.agents == []
    return found, terminations, truncations


def test_a_relay_pays_agents_that_wait_and_lets_one_go():
    found, terminated, truncated = played((1, 1, 1, 1))
    assert found == [
        (("left",), {"left": -0.5, "right": 0.0}),
        (("right",), {"left": 2.0, "right": 0.0}),
        (("left",), {"left": 1.0, "right": 0.3}),
        (("right",), {"right": pytest.approx(0.2)}),
    ]
    assert (terminated, truncated) == ({"right": True}, {"right": False})
    found, terminated, truncated = played((0, 1, 0, 1))
    assert [rewards for _, rewards in found][2:] == [{"left": 0.0, "right": 0.0}, {"right": 1.0}]
    assert (terminated, truncated) == ({"right": False}, {"right": True})


def test_each_agents_return_is_its_own():
    def always(*_):
        return 1.0

    assert expected_returns(TOYS["relay"], AGENTS, always) == pytest.approx([2.5, 0.5])
    three = ("a", "b", "c")
    assert sum(expected_returns(TOYS["relay"], three, always)) / 3 == pytest.approx(1.5)
    found, *_ = played((1, 1, 1, 1), three)
    assert [acting for acting, _ in found] == [("a",), ("b",), ("c",), ("a",)]
    assert list(found[3][1]) == ["a", "b"]


def test_the_optimum_of_a_relay_is_what_each_agent_wants():
    """No agent gains by another pick, whatever the others do in later turns."""
    best = expected_returns(TOYS["relay"], AGENTS, lambda *_: 1.0)
    for who, turn in itertools.product(range(2), range(4)):
        changed = expected_returns(
            TOYS["relay"],
            AGENTS,
            lambda agent, text: 0.0 if (agent, text[5]) == (AGENTS[who], str(turn)) else 1.0,  # noqa: B023
        )
        assert changed[who] <= best[who]
