"""Conversations of a stored episode, one per agent."""

import itertools
import math
from collections.abc import Sequence
from typing import Any

from mlrl_learners.runs.keys import TOKEN_IDS
from mlrl_learners.runs.stored import StoredEpisode, StoredTurn
from mlrl_learners.types import AgentID

__all__ = ["conversations"]


def conversations(episode: StoredEpisode, name: str) -> list[dict[str, Any]]:
    """Return the conversation of each agent that acted, as user and assistant messages.

    Each user message is a complete observation, also in later turns. A conversation also has
    `reward`, the agent's return; `team_reward`, the team return; and `turns`. Each entry of `turns`
    has the reward and its components of one answer, including rewards that the agent receives while
    it waits after the answer, and the sampled `prompt_ids`, `token_ids` and `logprobs` if they are
    stored. Agents played by opponents have no conversation; `opponents` maps them to the names of
    their opponents, in episodes with opponents.

    Args:
        episode: The episode.
        name: Value of the field `episode`, unique in the file.

    Raises:
        LookupError: If an agent that acted has no observation.
    """
    about = {
        "episode": name,
        "env_id": episode.env_id,
        "task_id": episode.task_id,
        "seed": episode.seed,
        "solved": episode.solved,
        **({"opponents": dict(episode.opponents)} if episode.opponents else {}),
    }
    return [
        {
            **about,
            "agent": agent,
            "reward": reward,
            "team_reward": episode.team_return,
            "messages": [m for place in places for m in _messages(episode.turns[place], agent)],
            "turns": [_facts(episode.turns, place, agent) for place in places],
        }
        for agent, reward in episode.returns.items()
        if agent not in episode.opponents
        and (places := [i for i, turn in enumerate(episode.turns) if agent in turn.actions])
    ]


def _messages(turn: StoredTurn, agent: AgentID) -> list[dict[str, str]]:
    return [
        {"role": "user", "content": turn.observations[agent]},
        {"role": "assistant", "content": turn.actions[agent]},
    ]


def _facts(turns: Sequence[StoredTurn], place: int, agent: AgentID) -> dict[str, Any]:
    """Return the reward of an answer and its components, also those received while waiting."""
    turn = turns[place]
    waited = itertools.takewhile(lambda each: agent not in each.actions, turns[place + 1 :])
    earned = [turn, *waited]
    parts = [each.components.get(agent, {}) for each in earned]
    ids = {name: getattr(turn, name) for name in TOKEN_IDS}
    return {
        "reward": _total([each.rewards[agent] for each in earned if agent in each.rewards]),
        "components": {
            name: _total([each[name] for each in parts if name in each])
            for name in dict.fromkeys(name for each in parts for name in each)
        },
        "finish_reason": turn.finish_reasons.get(agent, "stop"),
        **{name: values[agent] for name, values in ids.items() if values is not None},
    }


def _total(values: Sequence[float]) -> float:
    """Return the sum; a single value is returned unchanged, with its stored type."""
    return values[0] if len(values) == 1 else math.fsum(values)
