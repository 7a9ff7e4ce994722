"""Every method raises the return of every toy, however rollouts are walked, over three seeds.

Slow tests walk one way with each method, so that every way is walked by two teams; `make test-long`
walks all the others.
"""

import pytest

import mlrl_learners
from mlrl_envs.errors import ContractError
from mlrl_learners.config.option_places import merge_options
from mlrl_learners.testing import check_learner
from mlrl_learners.testing.toy_model import toy_model
from mlrl_learners.testing.toy_results import Effort, accepted_walks, play_toys
from mlrl_learners.testing.toy_training import make_with_seed, train_on_toy
from mlrl_learners.testing.toys import TOYS
from mlrl_learners.types import RolloutConfig

TEAMS = ["magrpo", "mareinforce", "marloo", "maremax", "ippo", "mappo", "iac", "maac"]
ALONE = ["grpo", "rloo", "reinforce_pp", "ppo"]
AGENTS = ("left", "right")
CRITICS = ("ippo", "mappo", "iac", "maac", "ppo")
TREE, CHAIN = RolloutConfig(3, "aligned", "tree"), RolloutConfig(4, "aligned", "chain")
WALKS = [
    TREE,
    CHAIN,
    RolloutConfig(3, "cross", "tree"),  # 9 joint answers a node; 4 would take three times as long
    RolloutConfig(4, "cross", "chain"),
]
WALKS_ALONE = [TREE, CHAIN]


def maker(name, agents=AGENTS, **options):
    small = {
        "sampling": {"max_new_tokens": 1, "temperature": 1.0, "top_p": 1.0},
        "optimizer": {"lr": 1e-2},
        "compute": {"device": "cpu"},
    }
    critics = {"critic": {"lr": 3e-2}} if name in CRITICS else {}

    def make(seed):
        return mlrl_learners.make(
            name,
            agents=agents,
            model=toy_model(seed),
            seed=seed,
            **merge_options(small, critics, options),
        )

    return make


def cases(names, agents, walks):
    """Return every method with every walk; one walk of each method is slow, the others are long."""
    return [
        pytest.param(
            name,
            agents,
            walk,
            id=f"{name}-{walk.branching}-{walk.joint_mode}",
            marks=pytest.mark.slow if place == number % len(walks) else pytest.mark.long,
        )
        for number, name in enumerate(names)
        for place, walk in enumerate(walks)
    ]


@pytest.mark.parametrize(
    ("name", "agents", "walk"),
    [*cases(TEAMS, AGENTS, WALKS), *cases(ALONE, AGENTS[:1], WALKS_ALONE)],
)
def test_every_method_raises_the_return_it_optimises(name, agents, walk):
    for result in play_toys(
        name, maker(name, agents), agents, walks=[walk], effort=Effort(rollouts=0)
    ):
        assert result.problem == "", result.to_json()
        # One-step advantages see what an answer makes possible only as far as a critic knows it.
        if not (name in ("iac", "maac") and result.toy == "doors"):
            halfway = (result.before + result.optimum) / 2
            assert result.after > halfway, result.to_json()


@pytest.mark.parametrize("name", ["magrpo", "iac", "mappo"])
def test_turns_taken_one_by_one_are_learnt(name):
    gain = train_on_toy(TOYS["relay"], maker(name)(0), AGENTS, walk=CHAIN)
    assert gain.before < 0.8
    assert gain.after > 1.3


@pytest.mark.slow
def test_nodes_that_weigh_alike_lower_the_return_of_a_late_cost():
    make = maker("magrpo", credit={"turn_weights": "nodes"})
    (result, *_) = play_toys(
        "magrpo", make, AGENTS, walks=[TREE], effort=Effort(rollouts=0, seeds=1)
    )
    assert result.toy == "late_cost"
    assert result.after < result.before
    assert "late_cost (tree, aligned) does not rise" in result.problem


def test_a_learner_that_does_not_learn_fails_the_check_that_it_does():
    effort = Effort(updates=1, seeds=1)
    with pytest.raises(ContractError, match=r"the return of late_cost .* does not rise: 0\.2"):
        check_learner(maker("magrpo", sampling={"max_new_tokens": 1}), learns=True, effort=effort)


def test_a_learner_that_learns_passes():
    check_learner(maker("grpo", AGENTS[:1]), learns=True, agents=AGENTS[:1], effort=Effort(seeds=1))


def test_ways_of_walking_that_a_learner_refuses_are_left_out():
    make = maker("magrpo", credit={"kind": "difference"}, group={"joint_mode": "cross"})
    walks = accepted_walks(make, AGENTS, 4)
    assert {walk.joint_mode for walk in walks} == {"cross"}
    assert [
        walk.branching for walk in accepted_walks(maker("grpo", AGENTS[:1]), AGENTS[:1], 4)
    ] == [
        "tree",
        "chain",
    ]


def test_turns_that_a_learner_refuses_are_left_out():
    make = maker("madpo", group={"size": 4})
    found = play_toys(
        "madpo", make, AGENTS, walks=[CHAIN], effort=Effort(updates=1, seeds=1, rollouts=0)
    )
    assert [result.toy for result in found] == ["late_cost", "doors", "retry"]


class Counter:
    """Counts what it is asked; a learner only as far as `make_with_seed` cares."""

    def __init__(self, agents=("first",), seed=0):
        self.agents, self.seed, self.drawn = agents, seed, 0

    def act(self, observations, **_):
        self.drawn += len(observations)


def test_a_factory_is_given_a_seed_by_its_name_or_as_its_only_argument():
    assert make_with_seed(Counter, 3).seed == 3
    assert make_with_seed(lambda number: Counter(seed=number), 4).seed == 4


def test_a_factory_without_a_seed_draws_other_answers_for_each_seed():
    def make():
        return Counter()

    found = make_with_seed(make, 2)
    assert (found.seed, found.drawn) == (0, 2)
