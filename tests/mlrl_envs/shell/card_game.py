"""A family whose agents take turns, leave early, and are dealt cards by the seed."""

import random
from dataclasses import dataclass, replace
from typing import ClassVar

from mlrl_envs.shell.env import TextParallelEnv
from mlrl_envs.types import Score, Task

AGENTS = ("first", "second", "third")


@dataclass(frozen=True, slots=True)
class Deck(Task):
    """Cards of the agents, drawn when the episode begins."""

    cards: tuple[int, ...] = ()


@dataclass(frozen=True)
class Cards:
    """Agents say their cards one by one; `second` is paid 0.1 a turn while it waits.

    In turn 3 `first` and `third` speak together. `third` is done after turn 4, and `first` is cut
    off if it says "fold".
    """

    tasks: tuple[Deck, ...] = (Deck("deck/0"), Deck("deck/1"))
    agents: ClassVar = AGENTS
    max_turns: ClassVar = 6
    reward_range: ClassVar = (0.0, 1.1)

    def deal(self, task, seed):
        return replace(task, cards=tuple(random.Random(seed).sample(range(100), 3)))

    def acting(self, task, turns):
        if len(turns) == 2 and "first" not in self.left(task, turns):
            return ("third", "first")
        there = [agent for agent in AGENTS if agent not in self.left(task, turns)]
        return (there[len(turns) % len(there)],)

    def left(self, task, turns):
        done = {"third": "terminated"} if len(turns) >= 4 else {}
        folded = any("fold" in turn.actions.get("first", "") for turn in turns)
        return {**done, **({"first": "truncated"} if folded else {})}

    def observe(self, task, turns, agent):
        said = [f"{who} said {text[:20]!r}" for turn in turns for who, text in turn.actions.items()]
        return "\n".join([f"Your card is {task.cards[AGENTS.index(agent)]}.", *said])

    def score(self, attempts, sandbox):
        return [self._score(attempt) for attempt in attempts]

    def _score(self, attempt):
        asked = self.reference_at(attempt.task, attempt.turns)
        assert list(attempt.actions) == [agent for agent in AGENTS if agent in asked]
        paid = {
            agent: {"said": float(text == asked[agent])} for agent, text in attempt.actions.items()
        }
        if "second" not in paid:
            paid["second"] = {"waited": 0.1}
        right = [turn.score.components[a]["said"] for turn in attempt.turns for a in turn.actions]
        right += [paid[agent]["said"] for agent in attempt.actions]
        return Score(paid, solved=len(attempt.turns) == 5 and all(right))

    def reference(self, task):
        raise AssertionError("reference_at is asked instead")

    def reference_at(self, task, turns):
        return {a: str(task.cards[AGENTS.index(a)]) for a in self.acting(task, turns)}


def make(family=None, render_mode="ansi"):
    return TextParallelEnv(family or Cards(), env_id="test/cards-v0", render_mode=render_mode)


def play(env, seed=0, **said):
    """Play reference actions, or what `said` names, to the end; return every result."""
    env.reset(seed=seed)
    results = []
    while env.agents:
        actions = {agent: said.get(agent, text) for agent, text in env.reference_actions().items()}
        results.append((env.acting, env.step(actions)))
    return results
