"""Weights of a server that samples, replaced by those of the trainer before each collection.

The trainer writes the weights of a policy into a folder that the server reads too, such as one on a
shared disk, and makes the server load it (`mlrl_envs.models.weights`).
"""

import tempfile
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mlrl_envs.models import Endpoint, WeightProtocol, load_weights
from mlrl_learners.errors import ConfigError
from mlrl_learners.policies import Policy
from mlrl_learners.processes.work_sharing import exchange, is_main, together
from mlrl_learners.runs.folders import numbered_folders, remove_folder, write_folder
from mlrl_learners.types import AgentID

__all__ = ["ServerWeights", "policies_by_model"]

PREFIX = "version_"
KEPT = 2  # folders: a server may still be reading the one before the newest


@dataclass
class ServerWeights:
    """The weights of a server.

    Attributes:
        protocol: The program of the server.
        folder: Folder in which each model has a folder of its versions.
        policies: Policy of each model on the server.
        open: Returns the endpoint of a model.
        is_current: Whether the server has the weights of the policies.
    """

    protocol: WeightProtocol
    folder: Path
    policies: Mapping[str, Policy]
    open: Callable[[str], Endpoint]
    is_current: bool = False
    _renewing: threading.Lock = field(default_factory=threading.Lock, compare=False, repr=False)

    def renew(self) -> None:
        """Make the server load the current weights, unless it has them; threads wait for it.

        Raises:
            EndpointError: If the server cannot be reached, or refuses.
            RunDirError: If the folder cannot be written.
        """
        with self._renewing:
            if self.is_current:
                return
            with together():
                for model, policy in self.policies.items():
                    self._renew(model, policy)
            exchange(None)  # no process may sample before the server has the weights
            self.is_current = True

    def _renew(self, model: str, policy: Policy) -> None:
        if not is_main():
            if policy.is_sharded:  # gathering the weights needs all processes
                with tempfile.TemporaryDirectory() as discarded:
                    policy.save(Path(discarded))
            return
        parent = self.folder.absolute() / model.replace("/", "-")
        versions = numbered_folders(parent, PREFIX)
        # A new name each time, because a server may remember what it read under the old one.
        version = versions[-1][0] + 1 if versions else 1
        written = parent / f"{PREFIX}{version}"
        write_folder(written, policy.save, "weights for the server")
        is_adapter = policy.base is not None
        load_weights(self.open(model), self.protocol, written, version, is_adapter=is_adapter)
        for _, old in versions[: max(0, len(versions) + 1 - KEPT)]:
            remove_folder(old)


def policies_by_model(
    protocol: WeightProtocol, models: Mapping[AgentID, str], policies: Mapping[AgentID, Policy]
) -> dict[str, Policy]:
    """Return the policy whose weights each model on a server takes.

    Args:
        protocol: The program of the server.
        models: Name of the model on the server, by agent.
        policies: Policy by agent.

    Raises:
        ConfigError: If a model would need the weights of several policies, or a server those of
            several whole models.
    """
    found: dict[str, Policy] = {}
    for agent, model in models.items():
        if found.setdefault(model, policies[agent]) is not policies[agent]:
            raise ConfigError(
                f"sampler.model {model!r} plays agents with different weights: name a model for "
                "each policy, or set team.share_weights"
            )
    adapters = protocol == "vllm" and all(each.base is not None for each in found.values())
    if len(found) > 1 and not adapters:
        raise ConfigError(
            f"a server of {protocol!r} loads one whole model, but sampler.model names "
            f"{', '.join(found)}: set team.share_weights, or serve adapters with vllm"
        )
    return found
