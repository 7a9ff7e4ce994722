"""Actor that plays the reference answers of the data, as an upper baseline."""

from collections.abc import Mapping, Sequence
from typing import Any

from mlrl_learners.errors import ConfigError, NoReferenceError
from mlrl_learners.types import AgentID, Completion

__all__ = ["ReferenceActor"]


class ReferenceActor:
    """Actor that plays `env.reference_actions()`; a `Spectator`."""

    def __init__(self) -> None:
        self._answers: list[Mapping[AgentID, str]] = []

    def watch(self, envs: Sequence[Any]) -> None:
        """Read the reference answers of the environments.

        Raises:
            NoReferenceError: If a task has none; its episode is then excluded.
        """
        self._answers = [_reference(env) for env in envs]

    def act(
        self,
        observations: Sequence[Mapping[AgentID, str]],
        *,
        num_samples: int = 1,
        explore: bool = True,  # noqa: ARG002 - there is one reference answer
    ) -> list[Mapping[AgentID, list[Completion]]]:
        """Answer with the reference answers of the environments of the last `watch`.

        Raises:
            ConfigError: If `watch` received another number of environments.
        """
        if len(self._answers) != len(observations):
            raise ConfigError(
                "the reference must be shown the environments it plays: use evaluate or play, "
                f"got {len(observations)} observations of {len(self._answers)} environments"
            )
        return [
            {agent: [Completion(answer[agent])] * num_samples for agent in observation}
            for observation, answer in zip(observations, self._answers, strict=True)
        ]


def _reference(env: Any) -> Mapping[AgentID, str]:  # noqa: ANN401 - any PettingZoo environment
    reference: Mapping[AgentID, str] | None = getattr(env, "reference_actions", dict)()
    if not reference:
        task = getattr(getattr(env, "task", None), "task_id", "this task")
        raise NoReferenceError(f"{task} has no reference actions; choose another actor")
    return reference
