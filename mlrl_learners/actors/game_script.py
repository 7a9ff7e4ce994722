"""Actor that plays a scripted player of a game, such as `random` or `perfect`."""

import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from mlrl_learners.errors import ConfigError, unknown_name
from mlrl_learners.types import AgentID, Completion

__all__ = ["ScriptActor", "check_script"]


class ScriptActor:
    """Actor that plays `env.scripted_action(agent, script)`; a `Spectator`.

    Args:
        script: Name of the script, one of `env.scripts`.
        seed: Seed of random scripts.
    """

    def __init__(self, script: str, seed: int = 0) -> None:
        self.script = script
        self._random = random.Random(seed)  # noqa: S311 - reproducible on purpose
        self._envs: Sequence[Any] = ()

    def watch(self, envs: Sequence[Any]) -> None:
        """Receive the environments of the next call of `act`.

        Raises:
            ConfigError: If they are not games.
            UnknownNameError: If they have no such script.
        """
        for env in envs[:1]:  # all are of one kind
            check_script(self.script, env)
        self._envs = envs

    def act(
        self,
        observations: Sequence[Mapping[AgentID, str]],
        *,
        num_samples: int = 1,
        explore: bool = True,  # noqa: ARG002 - a script is played as it is
    ) -> list[Mapping[AgentID, list[Completion]]]:
        """Answer with moves of the script in the environments of the last `watch`.

        Raises:
            ConfigError: If `watch` received another number of environments.
        """
        if len(self._envs) != len(observations):
            raise ConfigError(
                "a script must be shown the environments it plays: use evaluate or play, "
                f"got {len(observations)} observations of {len(self._envs)} environments"
            )
        return [
            {
                agent: [self._completion(env, agent) for _ in range(num_samples)]
                for agent in observation
            }
            for observation, env in zip(observations, self._envs, strict=True)
        ]

    @contextmanager
    def sampling_seed(self, seed: int) -> Iterator[None]:
        """Draw from `seed` inside the block, then restore the generator."""
        before = self._random
        self._random = random.Random(seed)  # noqa: S311 - reproducible on purpose
        try:
            yield
        finally:
            self._random = before

    def _completion(self, env: Any, agent: AgentID) -> Completion:  # noqa: ANN401 - any game
        seed = self._random.getrandbits(31)
        return Completion(env.scripted_action(agent, self.script, seed=seed))


def check_script(script: str, env: Any) -> None:  # noqa: ANN401 - any PettingZoo environment
    """Check that an environment has a scripted player of a name.

    Raises:
        ConfigError: If the environment is not a game, or is at a server.
        UnknownNameError: If it has no such script.
    """
    scripts: Sequence[str] | None = getattr(env, "scripts", None)
    if scripts is None:
        name = (getattr(env, "metadata", None) or {}).get("name", type(env).__name__)
        if getattr(env, "is_remote", False):
            raise ConfigError(
                f"script:{script} needs the game in this process, and {name} is at a server: "
                "leave out env.server and remote://"
            )
        raise ConfigError(
            f"{name} has no scripted players: script:{script} plays games without a workflow only"
        )
    if script not in scripts:
        raise unknown_name("script", script, scripts)
