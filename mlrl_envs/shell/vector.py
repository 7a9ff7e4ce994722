"""Vector environment: several environments stepped in this process and scored as one batch.

Gymnasium's vector classes pass observations through shared memory of a fixed size, which truncates
and pads texts; here an observation remains a `str`. Episodes do not restart automatically: an
environment whose episode is over takes an empty joint action until `reset` is called.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeGuard, cast

from mlrl_envs.errors import InvalidArgumentError
from mlrl_envs.shell.arguments import checked_options, checked_seed
from mlrl_envs.shell.roster import acting_agents
from mlrl_envs.shell.stepping import reset_many, step_many
from mlrl_envs.types import AgentID, Info, ResetResult, TextEnv

__all__ = ["VectorEnv", "VectorStep"]

Seeds = int | Sequence[int | None] | None
Options = Mapping[str, Any] | Sequence[Mapping[str, Any] | None] | None
VectorStep = tuple[
    list[dict[AgentID, str]],
    list[dict[AgentID, float]],
    list[dict[AgentID, bool]],
    list[dict[AgentID, bool]],
    list[dict[AgentID, Info]],
]


class VectorEnv:
    """A list of parallel environments with one `reset` and one `step`.

    Args:
        envs: The environments, which this object owns from then on.
    """

    def __init__(self, envs: Sequence[TextEnv]) -> None:
        if not envs:
            raise InvalidArgumentError("num_envs must be at least 1, got 0")
        self.envs = list(envs)
        self._infos: Sequence[Mapping[AgentID, Info]] = [{} for _ in self.envs]  # the last ones

    @property
    def num_envs(self) -> int:
        """Number of environments."""
        return len(self.envs)

    @property
    def possible_agents(self) -> list[AgentID]:
        """Agents of every environment."""
        return list(self.envs[0].possible_agents)

    @property
    def agents(self) -> list[list[AgentID]]:
        """For each environment, the agents still in its episode."""
        return [list(env.agents) for env in self.envs]

    @property
    def acting(self) -> list[tuple[AgentID, ...]]:
        """For each environment, the agents that are asked at its next step.

        In an environment without an attribute `acting` these are the agents whose last info does
        not say otherwise.
        """
        return [
            tuple(env.acting) if hasattr(env, "acting") else acting_agents(env.agents, infos)
            for env, infos in zip(self.envs, self._infos, strict=True)
        ]

    def reset(
        self, seed: Seeds = None, options: Options = None
    ) -> tuple[list[dict[AgentID, str]], list[dict[AgentID, Info]]]:
        """Start an episode in every environment.

        Args:
            seed: A list with a seed for each environment; an int seeds the i-th with `seed + i`.
            options: One mapping for all environments, or a list with one for each.

        Returns:
            Observations and infos, one mapping for each environment.

        Raises:
            InvalidArgumentError: If a seed is out of range or a list has another length, before any
                environment is reset; or if an environment refuses its options, after those before
                it were reset.
            InfraError: If a server fails.
        """
        seeds = self._spread_seed(seed)
        spread = self._spread_options(options)
        results = cast("list[ResetResult]", reset_many(self.envs, seeds, spread))
        self._infos = [dict(infos) for _, infos in results]
        return [observations for observations, _ in results], [infos for _, infos in results]

    def step(self, actions: Sequence[Mapping[AgentID, str]]) -> VectorStep:
        """Play one joint action in every environment; see `mlrl_envs.step_many`.

        Args:
            actions: One mapping for each environment, empty if its episode is over.

        Returns:
            Observations, rewards, terminations, truncations and infos, each a list of mappings.
        """
        results = step_many(self.envs, actions)
        observations, rewards, terminations, truncations, infos = (
            list(column) for column in zip(*results, strict=True)
        )
        self._infos = [dict(each) for each in infos]
        return observations, rewards, terminations, truncations, infos

    def close(self) -> None:
        """Close every environment."""
        for env in self.envs:
            env.close()

    def _spread_seed(self, seed: Seeds) -> Sequence[int | None]:
        if _is_list(seed):
            return self._one_each("seed", [checked_seed(each) for each in seed])
        first = checked_seed(seed)
        return [None if first is None else first + index for index in range(self.num_envs)]

    def _spread_options(self, options: Options) -> Sequence[dict[str, Any] | None]:
        if _is_list(options):
            return self._one_each("options", [checked_options(each) for each in options])
        return [checked_options(options)] * self.num_envs

    def _one_each(self, name: str, values: list[Any]) -> list[Any]:
        if len(values) != self.num_envs:
            raise InvalidArgumentError(
                f"{name} must have {self.num_envs} entries, one an environment, got {len(values)}"
            )
        return values


def _is_list(given: object) -> TypeGuard[Iterable[Any]]:
    """Return whether an argument has values of its own for each environment."""
    return isinstance(given, Iterable) and not isinstance(given, str | bytes | Mapping)
