"""Conversations of a stored episode, one per agent."""

from typing import Any

from mlrl_learners.runs.keys import TOKEN_IDS
from mlrl_learners.runs.stored import StoredEpisode, StoredTurn
from mlrl_learners.types import AgentID

__all__ = ["conversations"]


def conversations(episode: StoredEpisode, name: str) -> list[dict[str, Any]]:
    """Return the turns of each agent that acted, as messages of a user and an assistant.

    A user message is the whole observation before an answer, also in later turns. Next to the
    messages are `reward`, the agent's return; `team_reward`, the team return; and `turns`, reward
    and components of each answer, with `prompt_ids`, `token_ids` and `logprobs` as sampled if the
    file has them.

    Args:
        episode: The episode.
        name: Value of `episode`, which distinguishes it from the others of the file.

    Raises:
        LookupError: If an agent that acted has no observation.
    """
    about = {
        "episode": name,
        "env_id": episode.env_id,
        "task_id": episode.task_id,
        "seed": episode.seed,
        "solved": episode.solved,
    }
    return [
        {
            **about,
            "agent": agent,
            "reward": reward,
            "team_reward": episode.team_return,
            "messages": [message for turn in turns for message in _messages(turn, agent)],
            "turns": [_facts(turn, agent) for turn in turns],
        }
        for agent, reward in episode.returns.items()
        if (turns := [turn for turn in episode.turns if agent in turn.actions])
    ]


def _messages(turn: StoredTurn, agent: AgentID) -> list[dict[str, str]]:
    return [
        {"role": "user", "content": turn.observations[agent]},
        {"role": "assistant", "content": turn.actions[agent]},
    ]


def _facts(turn: StoredTurn, agent: AgentID) -> dict[str, Any]:
    ids = {name: getattr(turn, name) for name in TOKEN_IDS}
    return {
        "reward": turn.rewards.get(agent, 0.0),
        "components": turn.components.get(agent, {}),
        "finish_reason": turn.finish_reasons.get(agent, "stop"),
        **{name: values[agent] for name, values in ids.items() if values is not None},
    }
