"""Protocols of actors and learners."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from mlrl_learners.types.completions import Completion
from mlrl_learners.types.rollouts import AgentID, Rollout

__all__ = ["Actor", "Learner", "Spectator"]


@runtime_checkable
class Actor(Protocol):
    """Interface of everything that answers observations: models, scripts, endpoints."""

    def act(
        self,
        observations: Sequence[Mapping[AgentID, str]],
        *,
        num_samples: int = 1,
        explore: bool = True,
    ) -> list[Mapping[AgentID, list[Completion]]]:
        """Answer many joint observations in one batch.

        Args:
            observations: Joint observations, each a mapping of the agents that act to texts; agents
                that wait or have left are not part of it.
            num_samples: Number of answers of each agent to each observation.
            explore: Sample if true, answer greedily if false.

        Returns:
            For each joint observation, a mapping of agents to exactly `num_samples` completions.
        """
        ...


@runtime_checkable
class Spectator(Actor, Protocol):
    """Actor with access to the environments, hidden state included, for oracles and analyses."""

    def watch(self, envs: Sequence[Any]) -> None:
        """Receive the environments of the next call of `act`, in the same order, every turn."""
        ...


@runtime_checkable
class Learner(Actor, Protocol):
    """Actor that can be trained.

    Optional attributes and methods, all used before the first rollout:

    - `rollout: RolloutConfig`: collection of rollouts unless the caller sets another one
    - `check_rollout(rollout: RolloutConfig)`, `check_env(env)`: raise a `ConfigError` for rollouts
      or environments that the learner cannot train on
    - `plan_updates(num_updates: int)`: receives the number of updates of the whole run, those
      before a resume included; may raise a `ConfigError`
    - `offline`: if true, the learner trains on files and `update` receives no rollouts
    - `save_weights(path)`, `load_weights(path)`, `spare(name)`: weights without optimizers, and a
      copy that plays with weights of its own; snapshots use them instead of `save`, `load` and a
      deep copy
    """

    def update(self, rollouts: Sequence[Rollout]) -> Mapping[str, float]:
        """Train on rollouts and return metrics, finite floats by name.

        No metric may have a name that the run itself writes, such as `iteration`, `seconds`,
        `train/return`, `train/reward/NAME`, `time/update_seconds` or `AGENT/tokens_per_second`.
        """
        ...

    def save(self, path: Path) -> None:
        """Write all state, including random generators, into the folder `path`."""
        ...

    def load(self, path: Path) -> None:
        """Restore what `save` wrote."""
        ...
