import random

import pytest

import mlrl_envs
from mlrl_learners.actors import ScriptActor
from mlrl_learners.interop.seat import Seat
from mlrl_learners.testing import ScriptedActor

TASKS = range(30)


def moves(seed=0):
    """Return an actor that cannot be seeded."""
    draw = random.Random(seed)
    return ScriptedActor(lambda *_: f"<move>{draw.choice(['check', 'bet'])}</move>")


def second_player(teammates, **options):
    env = mlrl_envs.make("mlrl/kuhn-v0", split="eval")
    return Seat(env, agent="player_1", teammates=teammates, **options)


def positions(seat, tasks=TASKS, **options):
    return [each.observations["player_1"] for each in seat.begin(tasks, **options)]


@pytest.mark.parametrize("make", [lambda: ScriptActor("random"), moves])
def test_a_task_begins_at_one_position_in_every_batch(make):
    seat = second_player(make())
    first = [positions(seat, [task])[0] for task in TASKS]
    assert {"call, fold" in text for text in first} == {True, False}
    assert positions(seat, [*TASKS, *TASKS][::-1]) == [*first, *first][::-1]


def test_teammates_that_can_be_seeded_begin_alike_in_every_process():
    one, other = (second_player(ScriptActor("random", seed)) for seed in (1, 2))
    assert positions(one) == positions(other)[: len(TASKS)]
    assert positions(one, seed=5) == positions(other, seed=5) != positions(one)


def test_an_episode_without_a_seed_begins_anew():
    seat = second_player(moves(), seed=None)
    assert len({positions(seat, [0])[0] for _ in range(9)}) > 1


def test_an_opening_is_played_without_the_teammates():
    asked = []

    def check(agent, text):
        asked.append(agent)
        return "<move>check</move>"

    seat = second_player(ScriptedActor(check))
    seat.begin([0, 0, 1])
    seat.begin([1, 0])
    assert asked == ["player_0"] * 2
