"""Single agent and workflows, on actors that repeat what they read."""

import functools
from types import SimpleNamespace

import pytest

import mlrl_envs
from mlrl_envs.errors import InvalidArgumentError
from mlrl_envs.workflows import SHAPES
from mlrl_learners.actors import (
    RandomActor,
    ReferenceActor,
    SingleActor,
    WorkflowActor,
)
from mlrl_learners.actors.workflow import drafts_of
from mlrl_learners.errors import ConfigError, NoReferenceError, UnknownNameError
from mlrl_learners.evaluation.evaluate import evaluate
from mlrl_learners.play.rollout import play_episodes
from mlrl_learners.types import Actor, Completion, Usage

PipelineActor = functools.partial(WorkflowActor, shape="pipeline")
DiscussionActor = functools.partial(WorkflowActor, shape="discussion")
WAYS = [SingleActor, *(functools.partial(WorkflowActor, shape=name) for name in SHAPES)]
NODES = [{"aux": "help", "main": "write"}, {"aux": "help two", "main": "write two"}]


class Recorder:
    """Answers `agent 1`, `agent 2`, and so on, two tokens each, and keeps what it read."""

    def __init__(self):
        self.read = []

    def act(self, observations, *, num_samples=1, explore=True):
        return [
            {agent: [self.answer(agent, text) for _ in range(num_samples)] for agent, text in each}
            for each in (observation.items() for observation in observations)
        ]

    def answer(self, agent, text):
        self.read.append((agent, text))
        ids = (1,) * len(text.split())
        return Completion(f"{agent} {len(self.read)}", ids, (1, 2), (0.0, 0.0))


def texts(answers):
    return [{agent: [c.text for c in group] for agent, group in each.items()} for each in answers]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("num_samples", [1, 3])
def test_every_way_is_an_actor_that_answers_everyone(way, num_samples):
    answers = way(Recorder()).act(NODES, num_samples=num_samples)
    assert isinstance(way(Recorder()), Actor)
    assert [list(each) for each in answers] == [["aux", "main"]] * 2
    assert all(len(group) == num_samples for each in answers for group in each.values())


@pytest.mark.parametrize("way", WAYS)
def test_every_way_asks_nothing_about_nothing(way):
    assert way(Recorder()).act([]) == []


def test_a_single_agent_is_told_that_it_is_alone_and_the_others_cost_nothing():
    base = Recorder()
    (answers,) = SingleActor(base).act(NODES[:1])
    assert [agent for agent, _ in base.read] == ["main"]
    assert base.read[0][1].startswith("write\n\nYou are alone")
    assert answers["aux"] == [Completion("")]
    assert answers["aux"][0].cost == Usage()


@pytest.mark.parametrize(
    ("agents", "chosen", "worker"),
    [
        (["aux", "main"], None, "main"),
        (["main", "judge"], None, "main"),
        (["setup", "story"], None, "story"),
        (["setup", "story"], "setup", "setup"),
    ],
)
def test_the_single_agent_is_main_or_the_last_unless_it_is_named(agents, chosen, worker):
    base = Recorder()
    SingleActor(base, chosen).act([dict.fromkeys(agents, "x")])
    assert [agent for agent, _ in base.read] == [worker]


def test_an_unknown_single_agent_is_named():
    with pytest.raises(UnknownNameError, match="did you mean 'main'"):
        SingleActor(Recorder(), "mian").act(NODES)


def test_an_agent_that_is_alone_anyway_reads_its_own_prompt():
    base = Recorder()
    SingleActor(base).act([{"main": "write"}])
    assert base.read == [("main", "write")]


def test_a_single_agent_that_waits_is_not_asked_and_nobody_else_is():
    base = Recorder()
    actor = SingleActor(base)
    actor.watch([SimpleNamespace(possible_agents=["white", "black"])])
    answers = actor.act([{"white": "your move"}, {"black": "your move"}])
    assert [agent for agent, _ in base.read] == ["black"]
    assert base.read[0][1].startswith("your move\n\nYou are alone")
    assert texts(answers) == [{"white": [""]}, {"black": ["black 1"]}]


def test_in_a_pipeline_later_agents_read_the_answers_of_their_own_line():
    base = Recorder()
    answers = texts(PipelineActor(base).act(NODES))
    assert [agent for agent, _ in base.read] == ["aux", "aux", "main", "main"]
    assert [text for _, text in base.read[:2]] == ["help", "help two"]
    for (_, read), each in zip(base.read[2:], answers, strict=True):
        assert f"aux wrote:\n{each['aux'][0]}" in read
    assert base.read[3][1].startswith("write two\n\n")


def test_a_pipeline_takes_nodes_with_different_agents():
    answers = texts(PipelineActor(Recorder()).act([{"a": "x"}, {"b": "y", "a": "z"}]))
    assert answers == [{"a": ["a 1"]}, {"b": ["b 2"], "a": ["a 3"]}]


def test_in_a_discussion_all_read_all_first_answers_and_the_second_are_played():
    base = Recorder()
    answers = texts(DiscussionActor(base).act(NODES[:1]))
    (_, aux), (_, main) = base.read[2:]
    assert answers == [{"aux": ["aux 3"], "main": ["main 4"]}]
    assert "You wrote:\naux 1" in aux
    assert "main wrote:\nmain 2" in aux
    assert "You wrote:\nmain 2" in main
    assert "aux wrote:\naux 1" in main


def test_a_discussion_costs_both_rounds():
    base = Recorder()
    (answers,) = DiscussionActor(base).act([{"aux": "one two three"}])
    first, second = (len(text.split()) for _, text in base.read)
    (completion,) = answers["aux"]
    assert completion.cost == Usage(first + second, 4)
    assert len(completion.prompt_ids) == second


def test_ways_nest_and_add_up():
    base = Recorder()
    (answers,) = DiscussionActor(PipelineActor(base)).act(NODES[:1])
    assert [agent for agent, _ in base.read] == ["aux", "main", "aux", "main"]
    assert answers["main"][0].cost.completion_tokens == 4


def test_nodes_of_an_agent_that_write_at_once_do_not_read_each_other():
    base = Recorder()
    (answers,) = WorkflowActor(base, "debate", rounds=1).act(NODES[:1])
    assert [agent for agent, _ in base.read] == ["aux", "main"] * 3
    assert [text for _, text in base.read[:4]] == ["help", "write"] * 2
    _, judged = base.read[4]
    assert "aux_debater_1 wrote:\naux 1" in judged
    assert "aux_debater_2 wrote:\naux 3" in judged
    assert "main 2" not in judged
    assert [each.text for each in answers["aux"]] == ["aux 5"]
    assert answers["aux"][0].cost.completion_tokens == 6


def test_a_vote_plays_the_most_frequent_answer_and_costs_all_votes():
    base = Dictated(["Answer: 7", "Answer: 9", "Answer: 9"])
    (answers,) = WorkflowActor(base, "vote").act([{"main": "write"}])
    (completion,) = answers["main"]
    assert (completion.text, completion.cost) == ("Answer: 9", Usage(3, 6))


def test_a_critic_that_approves_ends_the_turn():
    base = Dictated(["draft", "APPROVED", "never"])
    (answers,) = WorkflowActor(base, "critic").act([{"main": "write"}])
    assert [each.text for each in answers["main"]] == ["draft"]
    assert base.texts == ["never"]


def test_turns_of_one_call_may_end_after_different_numbers_of_steps():
    base = Dictated(["first", "second", "APPROVED", "no", "revised"])
    answers = WorkflowActor(base, "critic").act([{"main": "write"}, {"main": "write two"}])
    assert texts(answers) == [{"main": ["first"]}, {"main": ["revised"]}]


def test_a_workflow_keeps_the_index_of_each_turn():
    base = Sizes()
    WorkflowActor(base, "mixture").act([{}, *NODES, {"main": "alone"}])
    assert set(base.sizes) == {4}


@pytest.mark.parametrize(
    ("shape", "options", "error"),
    [
        ("debat", {}, UnknownNameError),
        ("debate", {"round": 2}, UnknownNameError),
        ("debate", {"rounds": 0}, InvalidArgumentError),
    ],
)
def test_a_wrong_workflow_is_an_error_before_anything_is_asked(shape, options, error):
    with pytest.raises(error):
        WorkflowActor(Recorder(), shape, **options)


@pytest.mark.parametrize("name", SHAPES)
def test_no_agent_writes_more_drafts_than_its_workflow_allows(name):
    base = Recorder()
    WorkflowActor(base, name).act([{"a": "x", "b": "y"}])
    assert max(sum(agent == each for agent, _ in base.read) for each in "ab") == drafts_of(name)


@pytest.mark.parametrize("way", WAYS)
def test_every_way_passes_on_seeds_and_views(way):
    env = mlrl_envs.make("mlrl/humaneval-v1", split="sample")
    env.reset(seed=0)
    actor = way(ReferenceActor())
    actor.watch([env])
    assert actor.act([dict.fromkeys(env.agents, "x")])[0]["main"][0].text
    with actor.sampling_seed(3):  # a base without seeds is left alone
        pass
    with way(Seeded()).sampling_seed(3) as seed:
        assert seed == 3


class Dictated:
    """Answers the texts that it was made with, one after the other, for one agent."""

    def __init__(self, texts):
        self.texts = texts

    def act(self, observations, *, num_samples=1, explore=True):
        return [
            {agent: [Completion(self.texts.pop(0), (1,), (1, 2), (0.0, 0.0))] for agent in each}
            for each in observations
        ]


class Sizes(Recorder):
    """Keeps the number of observations of each call."""

    def __init__(self):
        super().__init__()
        self.sizes = []

    def act(self, observations, *, num_samples=1, explore=True):
        self.sizes.append(len(observations))
        return super().act(observations, num_samples=num_samples, explore=explore)


class Seeded(Recorder):
    def sampling_seed(self, seed):
        import contextlib

        return contextlib.nullcontext(seed)


ENV_IDS = list(mlrl_envs.registry)


@pytest.mark.parametrize("env_id", ENV_IDS)
@pytest.mark.parametrize("way", [lambda base: base, *WAYS], ids=["plain", "single", *SHAPES])
def test_every_way_plays_every_environment(env_id, way):
    env = mlrl_envs.make(env_id, split="sample", max_turns=2)
    (episode,) = play_episodes([env], way(RandomActor(1)), task_options=[{}], seeds=[0])
    low, high = env.reward_range
    twin = mlrl_envs.make(env_id, split="sample", max_turns=2)
    twin.reset(seed=0)
    for turn in episode.turns:
        assert list(turn.completions) == list(twin.acting)
        twin.step({agent: each.text for agent, each in turn.completions.items()})
        assert all(low <= reward <= high for reward in turn.rewards.values())


@pytest.mark.parametrize("env_id", ENV_IDS)
def test_the_reference_solves_whatever_has_one(env_id):
    env = mlrl_envs.make(env_id, split="sample")
    env.reset(seed=0)
    if env.reference_actions() is None or getattr(env.family, "competitive", False):
        pytest.skip("no task has one that solves it")
    result = evaluate(env_id=env_id, actor=ReferenceActor(), split="sample")
    assert result.solved_rate == 1.0


def test_a_task_without_a_reference_is_left_out():
    env = mlrl_envs.make("mlrl/story-v1")
    with pytest.raises(NoReferenceError, match="has no reference actions; choose another actor"):
        play_episodes([env], ReferenceActor(), task_options=[{}], seeds=[0])


def test_a_reference_that_was_shown_nothing_says_so():
    with pytest.raises(ConfigError, match="must be shown"):
        ReferenceActor().act(NODES)
