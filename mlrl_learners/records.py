"""An episode as one JSON object: a line of what `mlrl evaluate` and `mlrl collect` write."""

from typing import Any

from mlrl_learners.figures import team_return
from mlrl_learners.types import Episode, EpisodeTurn

__all__ = ["episode_record"]


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
    return {
        name: {a: list(getattr(c, name)) for a, c in turn.completions.items()}
        for name in ("prompt_ids", "token_ids", "logprobs")
    }
