"""A mixture plays episodes of its environments, by weight, with their own results."""

import copy
import pickle
from collections import Counter

import pytest

import mlrl_envs
from mlrl_envs.errors import (
    InvalidActionError,
    InvalidArgumentError,
    ResetNeededError,
    UnknownNameError,
)
from mlrl_envs.mixtures import Member, MixtureEnv

MATH = {"id": "mlrl/math-v2", "options": {"split": "sample"}}
STORY = {"id": "mlrl/story-v1", "options": {"split": "sample"}}
KUHN = {"id": "mlrl/kuhn-v0"}


def make(*entries):
    return mlrl_envs.make("env-mixture", envs=list(entries))


class Alone:
    """An environment that is not scored in batches, counts its steps, and draws its tasks."""

    possible_agents = ("a",)
    max_turns, reward_range = 1, (0.0, 1.0)
    state_space = mlrl_envs.make("mlrl/story-v1", split="sample").state_space

    def __init__(self):
        self.agents, self.steps, self.metadata = [], 0, {"name": "alone"}

    def reset(self, seed=None, options=None):
        self.agents = ["a"]
        return {"a": f"{seed} {options}"}, {"a": {}}

    def step(self, actions):
        self.steps += 1
        self.agents = []
        return {"a": ""}, {"a": 1.0}, {"a": True}, {"a": False}, {"a": {}}


@pytest.mark.parametrize("entries", [(MATH, STORY), (MATH, KUHN)], ids=["same_turns", "a_game"])
def test_a_mixture_keeps_the_contract(entries):
    mlrl_envs.check_env(lambda: make(*entries))


def test_results_are_those_of_the_environment():
    env, alone = make(MATH, STORY), mlrl_envs.make("mlrl/story-v1", split="sample")
    _, infos = env.reset(seed=3, options={"task_id": "story/story/train/1"})
    alone.reset(seed=3, options={"task_id": "story/train/1"})
    actions = dict.fromkeys(alone.possible_agents, "A keeper found a letter. It was from home.")
    assert {info["task_id"] for info in infos.values()} == {"story/story/train/1"}
    assert env.episode_env == "story"
    assert env.agents == env.episode_agents == alone.agents
    found, wanted = env.step(actions), alone.step(actions)
    assert found[:4] == wanted[:4]
    assert all(found[4][a]["components"] == wanted[4][a]["components"] for a in actions)


def test_the_first_tasks_follow_the_weights():
    env = make({**MATH, "weight": 3}, STORY)
    names = []
    for index in range(8):
        env.reset(seed=0, options={"task_index": index})
        names.append(env.episode_env)
    assert Counter(names) == {"math": 6, "story": 2}


def test_every_task_has_one_index():
    env = make({**MATH, "weight": 100}, STORY)
    found = set()
    for index in range(env.num_tasks):
        _, infos = env.reset(seed=0, options={"task_index": index})
        found.add(next(iter(infos.values()))["task_id"])
    assert len(found) == env.num_tasks
    assert sorted(i for _, group in env.task_groups for i in group) == list(range(env.num_tasks))


def test_seeds_draw_environments_by_weight():
    env = make({**MATH, "weight": 9}, STORY)
    counts = Counter()
    for seed in range(300):
        env.reset(seed=seed)
        counts[env.episode_env] += 1
    assert 250 <= counts["math"] <= 290


def test_a_batch_is_scored_as_the_episodes_alone():
    first = make(MATH, STORY, KUHN)
    envs = [copy.deepcopy(first) for _ in range(6)]
    for index, env in enumerate(envs):
        env.reset(seed=index, options={"task_index": index})
    actions = [dict.fromkeys(env.agents, "Answer: 3") for env in envs]
    copies = copy.deepcopy(envs)
    together = mlrl_envs.step_many(envs, actions)
    assert together == [env.step(each) for env, each in zip(copies, actions, strict=True)]


def test_copies_are_made_before_the_first_episode():
    vec = mlrl_envs.make_vec("env-mixture", 3, envs=[MATH, KUHN])
    assert len({id(env.members) for env in vec.envs}) == 1
    vec.reset(seed=0)
    vec.step([dict.fromkeys(acting, "7") for acting in vec.acting])


def test_a_step_before_the_first_reset_is_an_error_of_its_environment():
    env = make(MATH)
    assert env.batch_key != make(MATH).batch_key
    (found,) = mlrl_envs.step_many([env], [{"solver": "7"}], errors="return")
    assert isinstance(found, ResetNeededError)


@pytest.mark.parametrize("order", [1, -1])
def test_a_batch_may_hold_the_environment_that_the_mixture_plays(order):
    raw = mlrl_envs.make("mlrl/kuhn-v0")
    env = MixtureEnv([Member("kuhn", raw)])
    for each in (env, raw):
        each.reset(seed=0)
    envs = [env, raw][::order]
    alone = [copy.deepcopy(each).step({"player_0": "bet"}) for each in envs]
    assert mlrl_envs.step_many(envs, [{"player_0": "bet"}] * 2) == alone


def test_those_that_act_are_those_of_the_episode():
    env, alone = make(KUHN), mlrl_envs.make("mlrl/kuhn-v0")
    assert env.acting == ()
    env.reset(seed=0)
    alone.reset(seed=0)
    while alone.agents:
        assert env.acting == copy.deepcopy(env).acting == alone.acting
        action = dict.fromkeys(alone.acting, "check")
        for each in (env, alone):
            each.step(action)
    assert env.acting == ()


def test_those_that_act_follow_the_infos_of_an_environment_that_says_it_there():
    class Taking(Alone):
        """An environment without `acting` in which `b` waits at first, and `a` then."""

        possible_agents = ("a", "b")

        def reset(self, seed=None, options=None):
            self.agents = ["a", "b"]
            return {"a": "", "b": ""}, {"a": {"acts": True}, "b": {"acts": False}}

        def step(self, actions):
            infos = {"a": {"acts": False}, "b": {"acts": True}}
            same = [dict.fromkeys("ab", value) for value in ("", 0.0, False, False)]
            return (*same, infos)

    env = MixtureEnv([Member("taking", Taking())])
    env.reset(seed=0)
    assert env.acting == ("a",)
    copied = copy.deepcopy(env)
    env.step({"a": ""})
    mlrl_envs.step_many([copied], [{"a": ""}])
    assert env.acting == copied.acting == ("b",)


@pytest.mark.parametrize(
    ("seed", "options"),
    [
        (None, {"task_id": "nope/1"}),
        (None, {"task_id": "kuhn/nope"}),
        (5, {"task_index": 10**9}),
        (-1, None),
        (5, [1]),
    ],
)
def test_refused_reset_changes_nothing(seed, options):
    env = make(KUHN, STORY)
    env.reset(seed=1)
    twin = copy.deepcopy(env)
    with pytest.raises((InvalidArgumentError, UnknownNameError)):
        env.reset(seed=seed, options=options)
    assert (env.state(), env.acting) == (twin.state(), twin.acting)
    assert [env.reset() for _ in range(4)] == [twin.reset() for _ in range(4)]


def test_a_joint_action_that_is_no_mapping_is_refused():
    env = make(KUHN, STORY)
    env.reset(seed=1)
    with pytest.raises(InvalidActionError, match="must map agents to texts, got NoneType"):
        env.step(None)


def test_an_environment_without_batches_or_tasks_takes_part():
    env = MixtureEnv([Member("alone", Alone()), Member("kuhn", mlrl_envs.make("mlrl/kuhn-v0"))])
    env.reset(seed=1, options={"task_index": 0})
    assert env.episode_env == "alone"
    copied = copy.deepcopy(env)
    ((_, rewards, *_),) = mlrl_envs.step_many([env], [{"a": "text"}])
    assert rewards == {"a": 1.0}
    assert (env.agents, copied.agents) == ([], ["a"])


def test_copies_and_pickles_continue_alike():
    env = make(MATH, KUHN)
    env.reset(seed=5)
    for other in (copy.deepcopy(env), pickle.loads(pickle.dumps(env))):
        assert other.agents == env.agents
        assert other.reset() == copy.deepcopy(env).reset()


def test_fingerprints_cover_all_environments():
    found = [make(MATH, STORY), make(MATH, KUHN), make(MATH, {**STORY, "name": "tales"})]
    prints = [mlrl_envs.fingerprint(env) for env in found]
    assert len({each["data"] for each in prints}) == len({each["scorer"] for each in prints}) == 3


def test_a_split_is_that_of_all_environments_that_have_one():
    env = mlrl_envs.make("env-mixture", envs=["mlrl/math-v2", "mlrl/kuhn-v0"], split="sample")
    sizes = [
        mlrl_envs.make(name, split="sample").num_tasks for name in ("mlrl/math-v2", "mlrl/kuhn-v0")
    ]
    assert env.num_tasks == sum(sizes)


@pytest.mark.parametrize(
    ("envs", "words"),
    [
        ([], "a list of environments"),
        ("mlrl/math-v2", "a list of environments"),
        ([{}], "needs an id"),
        ([MATH, MATH], "give each a name"),
        ([{**MATH, "weight": 0}], "above 0, got 0"),
        ([{**MATH, "weight": True}], "above 0, got True"),
        ([{**MATH, "name": "a/b"}], "no /"),
        ([{**MATH, "options": 3}], "must be a mapping"),
    ],
)
def test_a_mistake_is_one_line(envs, words):
    with pytest.raises(InvalidArgumentError, match=words) as caught:
        mlrl_envs.make("env-mixture", envs=envs)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("entry", [{**MATH, "wait": 1}, {"id": "mlrl/mat-v1"}])
def test_an_unknown_word_names_the_nearest(entry):
    with pytest.raises(UnknownNameError, match="did you mean"):
        make(entry)


def test_an_episode_must_begin():
    with pytest.raises(ResetNeededError):
        make(MATH).state()


def test_an_episode_is_rendered_by_its_environment():
    env = mlrl_envs.make("env-mixture", envs=[MATH, KUHN], render_mode="ansi")
    assert (env.render_mode, env.metadata["render_modes"]) == ("ansi", ["ansi", "human"])
    alone = mlrl_envs.make("mlrl/kuhn-v0", render_mode="ansi")
    for each, task in ((env, "kuhn/kuhn/train/0"), (alone, "kuhn/train/0")):
        each.reset(seed=3, options={"task_id": task})
    assert env.render() == alone.render() != ""


def test_only_what_all_environments_can_render_is_offered():
    env = MixtureEnv([Member("kuhn", mlrl_envs.make("mlrl/kuhn-v0")), Member("alone", Alone())])
    assert (env.render_mode, env.metadata["render_modes"]) == (None, [])
