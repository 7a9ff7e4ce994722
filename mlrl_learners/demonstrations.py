"""What was played, read back from files of episodes: what an agent read, wrote and read next.

The files are those of `mlrl collect` and `mlrl evaluate --episodes`. A torn last line is left out.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mlrl_learners.errors import ConfigError
from mlrl_learners.types import AgentID

__all__ = ["Demonstration", "read_demonstrations"]


@dataclass(frozen=True, slots=True)
class Demonstration:
    """One agent's part in one turn.

    Attributes:
        agent: Who it was.
        observation: What it read.
        actions: What every agent wrote.
        is_whole: Whether the agent ended its answer by itself; false where it was cut.
        next_observation: What it read then; None where the episode was over.
    """

    agent: AgentID
    observation: str
    actions: Mapping[AgentID, str]
    is_whole: bool = True
    next_observation: str | None = None


def read_demonstrations(path: Path, filter_reward: float | None = None) -> list[Demonstration]:
    """Return every agent's turns of the episodes whose team return is at least `filter_reward`.

    Raises:
        ConfigError: If the file is missing, or a line is no episode.
    """
    try:
        text = path.read_text("utf-8")
    except OSError as error:
        fix = "mlrl collect writes such a file"
        raise ConfigError(f"cannot read episodes: {error.strerror} {str(path)!r}; {fix}") from None
    found = []
    for number, line in enumerate(text.splitlines(keepends=True), start=1):
        try:
            episode = json.loads(line)
            earned, turns = float(episode["return"]), list(_turns(episode))
        except (ValueError, LookupError, TypeError, AttributeError):
            if not line.endswith("\n"):
                break
            raise ConfigError(f"{path}:{number} is not an episode of mlrl collect") from None
        if filter_reward is None or earned >= filter_reward:
            found += turns
    return found


def _turns(episode: Mapping[str, Any]) -> Iterator[Demonstration]:
    turns = episode["turns"]
    following = [turn["observations"] for turn in turns[1:]]
    for turn, after in zip(turns, [*following, {}], strict=True):
        for agent in turn["actions"]:
            reasons = turn.get("finish_reasons", {})
            yield Demonstration(
                agent=agent,
                observation=turn["observations"][agent],
                actions=turn["actions"],
                is_whole=reasons.get(agent, "stop") == "stop",
                next_observation=after.get(agent),
            )
