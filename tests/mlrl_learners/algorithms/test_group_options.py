"""Advantages of answers by the options of groups, baselines and credit."""

import itertools
from typing import get_args

import pytest

import mlrl_learners
from mlrl_learners.algorithms.answer_advantages import answer_advantages
from mlrl_learners.algorithms.policy_gradient_options import BaselineOptions, CreditOptions
from mlrl_learners.algorithms.reward_terms import credited
from mlrl_learners.errors import ConfigError
from mlrl_learners.functional.grouping import GroupBy
from mlrl_learners.functional.replay import replay_actions
from mlrl_learners.functional.returns import rollout_groups, sample_returns
from mlrl_learners.functional.role_baseline import RoleBaseline
from mlrl_learners.play.rollout import collect_rollouts
from mlrl_learners.testing.toy_env import ToyEnv
from mlrl_learners.testing.toy_model import toy_model
from mlrl_learners.testing.toy_training import mean_return
from mlrl_learners.testing.toys import TOYS
from mlrl_learners.types import Completion, JointStep, Node, Rollout

AGENTS = ("a", "b")


def node(turn, rewards, children=None, *, text="", actions=None, parts=None):
    """Return a node of both agents with a joint action for each pair of rewards."""
    actions = actions or [dict.fromkeys(AGENTS, n) for n in range(len(rewards))]
    children = children or [None] * len(rewards)
    size = 1 + max(k for action in actions for k in action.values())
    steps = tuple(
        JointStep(
            action,
            dict(zip(AGENTS, reward, strict=True)),
            {} if parts is None else dict.fromkeys(AGENTS, parts[n]),
            {},
            terminated=child is None,
            truncated=False,
            child=child,
        )
        for n, (action, reward, child) in enumerate(zip(actions, rewards, children, strict=True))
    )
    answers = {agent: tuple(Completion(f"{agent}{n}") for n in range(size)) for agent in AGENTS}
    return Node(turn, {agent: f"{agent} {text or turn}" for agent in AGENTS}, answers, steps)


def rollout(root, seed=0):
    return Rollout("env", "task", AGENTS, root, seed)


def advantages(rollouts, baseline=None, credit=None, agents=AGENTS):
    """Return the advantages of the answers of some agents by agent and turn, in order."""
    credit = credit or CreditOptions()
    groups = list(
        rollout_groups(rollouts, credit.gamma, credit.kind, credit.turn_weights, credit.term_weight)
    )
    found = answer_advantages(
        groups,
        rollouts,
        baseline or BaselineOptions(),
        credit=credit,
        role_baseline=RoleBaseline(0.9),
        agents=agents,
    )
    return [(group.agent, group.turn, tuple(values)) for group, values in found]


def episode(*rewards, seed=0, texts=("hall", "room", "cave")):
    """Return a rollout with one answer a turn, and the same reward for both agents."""
    root = None
    for turn in reversed(range(len(rewards))):
        root = node(turn, [(rewards[turn],) * 2], [root], text=texts[turn])
    return rollout(root, seed)


def test_rollouts_of_a_task_share_groups_and_those_of_other_tasks_do_not():
    by_agent = BaselineOptions(group_by="agent")
    together = advantages([episode(1.0), episode(0.0)], by_agent)
    apart = advantages([episode(1.0, seed=1), episode(0.0, seed=2)], by_agent)
    assert [values for _, _, values in together] == [(0.5,), (0.5,), (-0.5,), (-0.5,)]
    assert {values for _, _, values in apart} == {(0.0,)}


def test_every_kind_of_group_and_weight_gives_other_advantages():
    """The ablation of groups and weights: one option, on episodes of unequal length."""
    played = [
        episode(0.0, 1.0),
        episode(0.5, 0.0, 0.0),
        rollout(node(0, [(1.0, 0.3)])),
        episode(0.0, 0.0, 1.0, texts=("hall", "cave", "room")),
    ]
    found = {}
    pairs = [(group_by, "step") for group_by in get_args(GroupBy)]
    for group_by, weight_by in (*pairs, ("agent", "trajectory"), ("task", "trajectory")):
        options = BaselineOptions(group_by=group_by, weight_by=weight_by)
        values = [value for *_, each in advantages(played, options) for value in each]
        found[group_by, weight_by] = tuple(values)
    assert len(found) == 7
    assert len(set(found.values())) == 7
    assert set(found["node", "step"]) == {0.0}  # one answer a prompt teaches nothing by itself


def test_an_anchor_adds_the_advantage_among_answers_to_equal_observations():
    """Both episodes pass the room; from there on the second one earns more."""
    played = [episode(1.0, 0.0), episode(0.0, 0.6)]
    (_, _, one), _, (_, _, room), *_ = advantages(played, BaselineOptions(group_by="anchor"))
    # Returns of the episodes 1 and 0.6, from the hall 1 and 0.6, from the room 0 and 0.6.
    assert one == pytest.approx((0.2 + 0.2,))
    assert room == pytest.approx((0.2 - 0.3,))


def test_an_anchor_compares_episodes_whatever_their_number_of_answers():
    """A long failure has as much weight as a short success; no observation occurs twice."""
    played = [episode(1.0), episode(0.0, 0.0, 0.0, texts=("door", "room", "cave"))]
    options = BaselineOptions(group_by="anchor")
    found = advantages(played, options)
    assert {values for _, _, values in found[:2]} == {(0.5,)}
    assert {values for _, _, values in found[2:]} == {(-0.5,)}
    of_one = [each for each in found if each[0] == "b"]
    assert advantages(played, options, agents=("b",)) == of_one  # as if no other was trained


def test_the_scale_of_a_component_does_not_hide_the_others():
    def found(scale):
        parts = [{"right": scale * r, "form": f} for r, f in ((1.0, 0.0), (0.0, 1.0), (0.0, 0.0))]
        root = node(0, [(sum(each.values()),) * 2 for each in parts], parts=parts)
        options = BaselineOptions(components={"right": 2.0})
        return [values for _, _, values in advantages([rollout(root)], options)]

    small, large = found(1.0), found(128.0)
    assert small[0] == pytest.approx(large[0], abs=1e-2)
    assert small[0][0] > small[0][1] > small[0][2]  # equal sums with scale 1, and other weights


def test_a_component_that_no_reward_has_is_named_and_counts_as_zero():
    """A part may be there in some updates only, such as a penalty of illegal moves."""
    root = node(0, [(1.0, 1.0), (0.0, 0.0)], parts=[{"right": 1.0}, {"right": 0.0}])
    whole = advantages([rollout(root)], BaselineOptions(components={"right": 1.0}))
    with pytest.warns(
        RuntimeWarning, match=r"has the component 'illegal' .* there are \['right'\]"
    ):
        found = advantages(
            [rollout(root)], BaselineOptions(components={"right": 1.0, "illegal": 1.0})
        )
    assert found == whole


def dilemma(rewards):
    """Return a tree of two turns, with the same rewards after each first joint action."""
    return rollout(node(0, rewards, [node(1, rewards) for _ in rewards]))


def test_alignment_rewards_what_benefits_the_others_where_the_own_past_went_well():
    """Joint answer 0 is good for `a` and bad for `b`, joint answer 1 the other way round."""
    played = [dilemma([(1.0, -1.0), (-1.0, 1.0)])]
    plain = advantages(played)
    aligned = advantages(played, credit=CreditOptions(kind="alignment", strength=0.5))
    difference = [
        [x - y for x, y in zip(one[2], other[2], strict=True)]
        for one, other in zip(aligned, plain, strict=True)
    ]
    assert difference[:2] == [[0.0, 0.0]] * 2  # no past
    # After joint answer 0 (w of a is 1, of b -1), a gains from b's joint answer 1, and b loses.
    assert difference[2] == pytest.approx([-0.5, 0.5])
    assert difference[3] == pytest.approx([-0.5, 0.5])
    assert difference[4] == pytest.approx([0.5, -0.5])


def test_without_weight_alignment_is_independent_learning():
    played = [dilemma([(1.0, -0.5), (0.0, 1.0), (0.3, 0.0)])]
    nothing = CreditOptions(kind="alignment", strength=0.0)
    assert advantages(played, credit=nothing) == advantages(played)


@pytest.mark.parametrize("group_by", ["node", "agent_turn", "anchor"])
def test_a_group_with_one_answer_of_an_episode_has_no_weights(group_by):
    with pytest.raises(ConfigError, match="weight_by trajectory means nothing with group_by"):
        BaselineOptions(group_by=group_by, weight_by="trajectory")


@pytest.mark.parametrize("crossed", [True, False])
def test_replay_compares_answers_beside_the_same_answers(crossed):
    """Crossed it is `difference`; with single deviations it needs fewer joint actions."""
    sizes = dict.fromkeys(AGENTS, 3)
    actions = replay_actions(sizes)
    if crossed:
        actions = [
            dict(zip(AGENTS, pair, strict=True)) for pair in itertools.product(range(3), range(3))
        ]
    worth = {"a": (0.0, 1.0, 3.0), "b": (0.0, 10.0, 50.0)}
    rewards = [(sum(worth[agent][k] for agent, k in each.items()),) * 2 for each in actions]
    root = node(0, rewards, actions=actions)
    assert len(root.steps) == (9 if crossed else 5)
    found = sample_returns(root, "a", 1.0, "replay")
    assert found == pytest.approx([-2.0, -0.5, 2.5])  # what b wrote cancels
    if crossed:
        assert found == pytest.approx(sample_returns(root, "a", 1.0, "difference"))


@pytest.mark.parametrize(
    ("kind", "strength", "rewards"),
    [
        ("mixed", 2.0, (0.5 + 2.0 * 0.75, 1.0 + 2.0 * 0.75)),
        ("mixed", None, (0.5 + 0.75, 1.0 + 0.75)),
        ("quality", None, (0.5, 1.0)),
        ("margin", 1.0, (0.5, 1.0)),
        ("team", None, (0.75, 0.75)),
    ],
)
def test_credit_changes_the_rewards_of_a_first_turn(kind, strength, rewards):
    credit = CreditOptions(kind=kind, strength=strength)
    found = credited(rollout(node(0, [(0.5, 1.0)])), credit).root.steps[0].rewards
    assert tuple(found.values()) == pytest.approx(rewards)


@pytest.mark.parametrize(("kind", "later"), [("quality", 0.5 * 1.5 - 0.25), ("margin", 0.5)])
def test_quality_and_margin_depend_on_the_turns_before(kind, later):
    """Two turns of reward 1/2: R + a (R + Q - 1) and R + a (R - Q) with Q = 1/2."""
    shaped = credited(episode(0.5, 0.5), CreditOptions(kind=kind, strength=0.5))
    assert shaped.root.steps[0].child.steps[0].rewards["a"] == pytest.approx(later)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        (
            "magrpo",
            {"credit": {"strength": 0.5}},
            "strength 0.5 means nothing with credit.kind shared",
        ),
        ("magrpo", {"credit": {"kind": "mixed", "strength": -1.0}}, "strength must be at least 0"),
        ("magrpo", {"credit": {"kind": "alignment", "gamma": 0.0}}, "set credit.gamma"),
        ("ippo", {"credit": {"kind": "alignment"}}, "take a method without a critic"),
        ("magrpo", {"credit": {"kind": "replay"}, "group": {"size": 1}}, "got cross and 1"),
        (
            "magrpo",
            {"credit": {"kind": "leave_one_out"}, "baseline": {"group_by": "anchor"}},
            "baseline.group_by anchor compares returns",
        ),
        (
            "magrpo",
            {"baseline": {"components": {"reward": 1.0}, "group_by": "agent"}},
            "group_by agent means nothing with components",
        ),
        (
            "magrpo",
            {
                "baseline": {"components": {"reward": 1.0}},
                "penalty": {"kl_coef": 0.1, "kl_in": "reward"},
            },
            "a penalty changes the reward",
        ),
        ("marlhf", {"credit": {"kind": "margin"}}, "got margin: a score is of all"),
        ("marlhf", {"baseline": {"components": {"x": 1.0}}}, "marlhf trains on scores"),
    ],
)
def test_a_combination_without_meaning_is_refused_in_one_line(name, options, message):
    with pytest.raises(ConfigError, match=message) as error:
        mlrl_learners.make(name, agents=("left", "right"), model="tiny-randm", **options)
    assert "\n" not in str(error.value)


def trained_return(seed, group_by, weight_by):
    """Return the mean return of `relay` after training on eight rollouts of one answer a prompt."""
    learner = mlrl_learners.make(
        "magrpo",
        agents=AGENTS,
        model=toy_model(seed),
        seed=seed,
        group={"size": 1, "rollouts": 8},
        baseline={"group_by": group_by, "weight_by": weight_by, "normalize_std": True},
        optimizer={"lr": 1e-2},
        sampling={"max_new_tokens": 1, "top_p": 1.0, "temperature": 1.0},
    )
    for update in range(60):
        envs = [ToyEnv(TOYS["relay"], AGENTS) for _ in range(8)]
        played = collect_rollouts(
            envs, learner, learner.rollout, task_options=[{}] * 8, seeds=[update] * 8
        )
        learner.update(played.rollouts)
    return mean_return(TOYS["relay"], learner, AGENTS, seed=seed)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("group_by", "weight_by"),
    [
        ("agent", "step"),
        ("agent", "trajectory"),
        ("task", "step"),
        ("anchor", "step"),
    ],
)
def test_kinds_of_groups_learn_from_rollouts_of_a_task(group_by, weight_by):
    """The untrained return is 0.59, the best one 1.5."""
    assert min(trained_return(seed, group_by, weight_by) for seed in range(3)) > 0.8
