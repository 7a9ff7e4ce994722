"""An episode as one JSON object: a line of what `mlrl evaluate` and `mlrl collect` write."""

import json
from collections.abc import Mapping
from typing import Any

from mlrl_learners.errors import ConfigError
from mlrl_learners.figures.means import team_return
from mlrl_learners.types import AgentID, Completion, Episode, EpisodeTurn, Usage

__all__ = ["episode_record", "parse_episode"]

_IDS = ("prompt_ids", "token_ids", "logprobs")


def episode_record(episode: Episode, *, token_ids: bool = False) -> dict[str, Any]:
    """Return an episode as JSON values: what was read, written and earned.

    Args:
        episode: The episode.
        token_ids: Keep what the model read and sampled, too: `prompt_ids`, `token_ids` and
            `logprobs` of every answer, empty for actors without tokens.
    """
    return {
        "task_id": episode.task_id,
        "seed": episode.seed,
        "return": team_return(episode),
        "returns": dict(episode.returns),
        "solved": episode.solved,
        "turns": [
            {**_turn_record(turn), **(_ids_record(turn) if token_ids else {})}
            for turn in episode.turns
        ],
    }


def _turn_record(turn: EpisodeTurn) -> dict[str, Any]:
    return {
        "observations": dict(turn.observations),
        "actions": {agent: c.text for agent, c in turn.completions.items()},
        "tokens": {a: c.cost.completion_tokens for a, c in turn.completions.items()},
        "prompt_tokens": {a: c.cost.prompt_tokens for a, c in turn.completions.items()},
        "finish_reasons": {a: c.finish_reason for a, c in turn.completions.items()},
        "rewards": dict(turn.rewards),
        "components": {agent: dict(parts) for agent, parts in turn.components.items()},
        "diagnostics": {a: info.get("diagnostics") for a, info in turn.infos.items()},
    }


def _ids_record(turn: EpisodeTurn) -> dict[str, Any]:
    return {name: {a: list(getattr(c, name)) for a, c in turn.completions.items()} for name in _IDS}


def parse_episode(line: str) -> Episode:
    """Return the episode that a line of such a file holds.

    Of what the environment said, only the diagnostics come back.

    Raises:
        ConfigError: If it holds none.
    """
    try:
        record = json.loads(line)
        return Episode(
            task_id=record["task_id"],
            seed=record["seed"],
            turns=tuple(map(_turn_of, record["turns"])),
            solved=record["solved"],
            returns=record["returns"],
        )
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise ConfigError(f"not an episode of mlrl: {line[:80]!r}") from error


def _turn_of(record: Mapping[str, Any]) -> EpisodeTurn:
    return EpisodeTurn(
        observations=record["observations"],
        completions={agent: _completion(record, agent) for agent in record["actions"]},
        rewards=record["rewards"],
        components=record["components"],
        infos={agent: {"diagnostics": said} for agent, said in record["diagnostics"].items()},
    )


def _completion(record: Mapping[str, Any], agent: AgentID) -> Completion:
    prompt_ids, token_ids, logprobs = (tuple(record.get(name, {}).get(agent, ())) for name in _IDS)
    usage = Usage(record["prompt_tokens"][agent], record["tokens"][agent])
    reason = record["finish_reasons"][agent]
    text = record["actions"][agent]
    return Completion(text, prompt_ids, token_ids, logprobs, reason, usage)
