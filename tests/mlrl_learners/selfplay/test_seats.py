import copy

import pytest

import mlrl_envs
from mlrl_envs.errors import ContractError
from mlrl_learners.actors import MatchActor, ScriptActor
from mlrl_learners.errors import ConfigError, UnknownNameError
from mlrl_learners.functional.reach import root_weight
from mlrl_learners.functional.returns import rollout_groups
from mlrl_learners.play.rollout import collect_rollouts, play_episodes
from mlrl_learners.selfplay.own import own_episode, own_rollout
from mlrl_learners.selfplay.seats import Opponent, answer_all
from mlrl_learners.testing import ScriptedActor
from mlrl_learners.training.metrics import opponent_metrics, rollout_metrics
from mlrl_learners.types import RolloutConfig

AGENTS = ("player_0", "player_1")


class Asked(ScriptedActor):
    """Bets, and keeps what it was asked."""

    def __init__(self, text="bet"):
        super().__init__(lambda _agent, _observation: text)
        self.calls = []

    def act(self, observations, *, num_samples=1, explore=True):
        self.calls.append(([sorted(each) for each in observations], num_samples))
        return super().act(observations, num_samples=num_samples, explore=explore)


def rollouts(env_id, actor, seats, *, num_samples=3, joint_mode="aligned", **options):
    env = mlrl_envs.make(env_id, split="sample", **options)
    batch = collect_rollouts(
        [copy.deepcopy(env) for _ in seats],
        actor,
        RolloutConfig(num_samples, joint_mode),
        task_options=[{"task_index": number} for number in range(len(seats))],
        seeds=[0] * len(seats),
        seats=seats,
    )
    return batch.rollouts


def test_each_player_is_asked_once_for_its_own_agents():
    actor, other = Asked("mine"), Asked("theirs")
    seats = [{"player_1": Opponent("other", other)}, {"player_0": Opponent("other", other)}]
    both = dict.fromkeys(AGENTS, "?")
    first, second = answer_all(
        [both, both], actor, seats, [None, None], num_samples=2, explore=True
    )
    assert actor.calls == [([["player_0"], ["player_1"]], 2)]
    assert other.calls == [([["player_1"], ["player_0"]], 1)]
    assert [each.text for each in first["player_0"]] == ["mine", "mine"]
    assert [each.text for each in second["player_0"]] == ["theirs"]
    assert tuple(first) == AGENTS


def test_a_player_that_does_not_answer_what_it_was_asked_is_named():
    class Mute(Asked):
        def act(self, observations, **options):
            return super().act([{} for _ in observations], **options)

    seats = [{"player_1": Opponent("other", Mute())}]
    with pytest.raises(
        ContractError, match=r"Mute\.act must answer for exactly player_1; got \[\]"
    ):
        answer_all(
            [dict.fromkeys(AGENTS, "?")], Asked(), seats, [None], num_samples=1, explore=True
        )


def test_the_actor_may_be_its_own_opponent():
    actor = Asked()
    seats = [{"player_1": Opponent("latest", actor)}]
    (answers,) = answer_all(
        [dict.fromkeys(AGENTS, "?")], actor, seats, [None], num_samples=4, explore=True
    )
    assert [len(answers[agent]) for agent in AGENTS] == [4, 1]
    assert [samples for _, samples in actor.calls] == [4, 1]


@pytest.mark.parametrize(("mode", "steps"), [("aligned", 3), ("cross", 3)])
def test_a_group_meets_one_answer_of_an_opponent_that_acts_beside_it(mode, steps):
    seats = [{"player_1": Opponent("script:defect", ScriptActor("defect"))}]
    (found,) = rollouts("mlrl/matrix-v0", Asked("defect"), seats, joint_mode=mode, rounds=1)
    assert len(found.root.steps) == steps
    assert {step.samples["player_1"] for step in found.root.steps} == {0}


@pytest.mark.parametrize("seat", AGENTS)
def test_a_tree_branches_at_the_nodes_of_the_learner_alone(seat):
    seats = [{seat: Opponent("script:nash", ScriptActor("nash"))}]
    (found,) = rollouts("mlrl/kuhn-v0", Asked(), seats)
    for node in found.root.walk():
        assert len(node.steps) == (1 if seat in node.completions else 3)
    assert found.opponents == {seat: "script:nash"}


@pytest.mark.parametrize("seat", AGENTS)
def test_the_learners_part_holds_nothing_of_an_opponent(seat):
    seats = [{seat: Opponent("script:nash", ScriptActor("nash"))}]
    (found,) = rollouts("mlrl/kuhn-v0", Asked(), seats)
    own = own_rollout(found)
    assert own.agents == tuple(agent for agent in AGENTS if agent != seat)
    for node in own.root.walk():
        assert not {*node.observations, *node.completions, *node.waiting} & {seat}
        for step in node.steps:
            assert not {*step.samples, *step.rewards, *step.components} & {seat}
    assert sum(1 for _ in own.root.walk()) == sum(1 for _ in found.root.walk())


@pytest.mark.parametrize("seat", AGENTS)
def test_the_learners_part_has_the_returns_and_weights_of_the_whole(seat):
    seats = [{seat: Opponent("script:nash", ScriptActor("nash"))}] * 4
    found = rollouts("mlrl/kuhn-v0", Asked(), seats)
    whole = [each for each in rollout_groups(found, 1.0) if each.agent != seat]
    own = [own_rollout(each) for each in found]
    assert list(rollout_groups(own, 1.0)) == whole
    # Three answers a prompt, one agent of the learner, four rollouts.
    assert root_weight(own, AGENTS) == 12


def test_an_episode_without_opponents_is_the_learners_own():
    (found,) = rollouts("mlrl/kuhn-v0", Asked(), [{}])
    assert own_rollout(found) is found


def test_a_script_plays_against_the_actor_in_an_evaluation_episode():
    env = mlrl_envs.make("mlrl/nim-v0", split="sample")
    seats = {"player_0": Opponent("script:perfect", ScriptActor("perfect"))}
    (episode,) = play_episodes([env], Asked("?"), task_options=[{}], seeds=[0], seats=[seats])
    assert episode.opponents == {"player_0": "script:perfect"}
    own = own_episode(episode)
    assert set(own.returns) == {"player_1"}
    assert all("player_0" not in turn.completions for turn in own.turns)


def test_a_match_lets_a_player_play_each_agent():
    env = mlrl_envs.make("mlrl/nim-v0", num_piles=1, split="sample")
    match = MatchActor({"player_0": ScriptActor("perfect"), "player_1": ScriptActor("random")})
    (episode,) = play_episodes([env], match, task_options=[{}], seeds=[0])
    assert episode.returns == {"player_0": 1.0, "player_1": -1.0}


def test_a_random_script_repeats_under_a_seed_and_differs_between_episodes():
    def play(seed):
        actor = ScriptActor("random")
        env = mlrl_envs.make("mlrl/tictactoe-v0", split="sample")
        with actor.sampling_seed(seed):
            return play_episodes(
                [copy.deepcopy(env) for _ in range(4)],
                actor,
                task_options=[{"task_index": 0}] * 4,
                seeds=[0] * 4,
            )

    def moves(episode):
        return [each.text for turn in episode.turns for each in turn.completions.values()]

    assert play(1) == play(1)
    assert len({tuple(moves(episode)) for episode in play(1)}) > 1


def test_an_unknown_script_is_named():
    env = mlrl_envs.make("mlrl/kuhn-v0")
    with pytest.raises(UnknownNameError, match="unknown script 'nush'; did you mean 'nash'"):
        ScriptActor("nush").watch([env])


def test_a_script_plays_games_only():
    with pytest.raises(ConfigError, match="has no scripted players"):
        ScriptActor("random").watch([mlrl_envs.make("mlrl/story-v1")])


def test_seats_in_which_an_opponent_begins_count_as_much_as_the_others():
    nash = Opponent("script:nash", ScriptActor("nash"))
    found = rollouts(
        "mlrl/kuhn-v0", ScriptActor("random"), [{"player_1": nash}, {"player_0": nash}]
    )
    assert [len(each.root.steps) for each in found] == [3, 1]
    logged = rollout_metrics([own_rollout(each) for each in found])
    assert logged["train/return"] == opponent_metrics(found)["train/return/script:nash"]
