"""Environments of turns keep the contract, pass PettingZoo's suites, and each breach is named."""

import pytest
from pettingzoo.test import api_test, parallel_api_test, parallel_seed_test, seed_test
from pettingzoo.test.render_test import render_test
from pettingzoo.test.state_test import state_test

import mlrl_envs
from mlrl_envs.errors import ContractError
from mlrl_envs.shell.env import TextParallelEnv
from tests.mlrl_envs.shell.card_game import AGENTS, Cards, make

# PettingZoo recommends arrays, and agents named like player_0; ours are texts and roles.
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:pettingzoo")


class Nobody(Cards):
    def acting(self, task, turns):
        return () if turns else ("first",)


class Gone(Cards):
    def acting(self, task, turns):
        return ("third",) if len(turns) >= 4 else super().acting(task, turns)


@pytest.mark.parametrize(("family", "named"), [(Nobody(), r"\[\]"), (Gone(), r"\['third'\]")])
def test_a_family_that_names_nobody_or_somebody_who_left_is_told_so(family, named):
    with pytest.raises(ContractError, match=f"acting names {named}"):
        mlrl_envs.check_env(lambda: make(family))


class Bored(Cards):
    def left(self, task, turns):
        return {"third": "bored"} if turns else {}


def test_a_family_whose_agents_leave_in_another_way_is_told_so():
    with pytest.raises(ContractError, match=r"left says .*'third': 'bored'"):
        mlrl_envs.check_env(lambda: make(Bored()))


class Listens(TextParallelEnv):
    """Takes the action of an agent that waits into account."""

    def step(self, actions):
        observations, *rest = super().step(actions)
        return {a: f"{t} {len(actions)}" for a, t in observations.items()}, *rest


class Remembers(TextParallelEnv):
    """Shows in every later turn how often agents that wait have said something."""

    extra = 0

    def reset(self, seed=None, options=None):
        self.extra = 0
        return super().reset(seed, options)

    def step(self, actions):
        waits = set(actions) - set(self.acting)
        observations, *rest = super().step(actions)
        shown = {agent: f"{text} {self.extra}" for agent, text in observations.items()}
        self.extra += len(waits)
        return shown, *rest


class Silent(TextParallelEnv):
    """Says in no info who acts."""

    def step(self, actions):
        result = super().step(actions)
        for info in result[-1].values():
            del info["acts"]
        return result


class Contradicts(TextParallelEnv):
    """Asks another agent than its infos name."""

    @property
    def acting(self):
        return super().acting[::-1]


class Revives(TextParallelEnv):
    """Says that an agent is in the episode that has left."""

    @property
    def agents(self):
        return list(AGENTS) if super().agents else []


@pytest.mark.parametrize(
    ("env_type", "rule"),
    [
        (Listens, "that waits is ignored"),
        (Remembers, "that waits is ignored"),
        (Silent, "acting names those"),
        (Contradicts, "acting names those"),
        (Revives, "acts until its end"),
    ],
)
def test_breach_is_found_and_named(env_type, rule):
    with pytest.raises(ContractError, match=rule):
        mlrl_envs.check_env(lambda: env_type(Cards(), env_id="test/broken-v0"))


def test_keeps_our_contract():
    mlrl_envs.check_env(make)


def test_passes_pettingzoos_suites():
    def aec(**options):
        return mlrl_envs.to_aec(make(**options))

    parallel_api_test(make(), num_cycles=20)
    parallel_seed_test(make, num_cycles=5)
    api_test(aec(), num_cycles=20)
    seed_test(aec, num_cycles=5)
    render_test(aec)
    state_test(aec(), make())


def test_the_aec_view_selects_those_who_act():
    view = mlrl_envs.to_aec(make())
    view.reset(seed=0)
    selected = []
    for agent in view.agent_iter():
        _, reward, terminated, truncated, _ = view.last()
        over = terminated or truncated
        selected.append((agent, round(reward, 9), over))
        view.step(None if over else view.unwrapped.reference_actions()[agent])
    assert selected == [
        ("first", 0, False),
        ("second", 0.1, False),
        ("first", 1, False),
        ("third", 0, False),
        ("first", 1, False),
        ("third", 1, True),  # it has left after turn 4
        ("first", 1, False),
        ("second", 1.3, False),  # 1 for its card, and 0.1 in each of three turns
        ("first", 1, True),
        ("second", 1, True),
    ]
