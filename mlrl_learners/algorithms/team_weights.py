"""Weights of a team without optimizers, for snapshots, and copies with weights of their own."""

import copy
import json
from pathlib import Path
from typing import TypeVar

import torch

from mlrl_learners.algorithms.endpoint_sampler import EndpointSampler
from mlrl_learners.errors import CheckpointError
from mlrl_learners.policies import ChatFormat, Policy, PolicyOptimizer
from mlrl_learners.seeding import CallSeeds
from mlrl_learners.types import AgentID

__all__ = ["TEAM_FILE", "TeamWeights", "read_policy_names"]

TEAM_FILE = "team.json"
TeamT = TypeVar("TeamT", bound="TeamWeights")


class TeamWeights:
    """Base class of a team: its trained policies as weights.

    Attributes:
        agents: Every agent.
        policy_of: Name of each agent's policy.
        policies: Policies by name.
        optimizers: Optimizers by the name of their policy; frozen policies have none.
        generator: Shuffles minibatches.
        call_seeds: Seeds of the prompts of each call of `act`.
        sampler: Server that samples answers, if any.
    """

    agents: tuple[AgentID, ...]
    policy_of: dict[AgentID, str]
    policies: dict[str, Policy]
    optimizers: dict[str, PolicyOptimizer]
    generator: torch.Generator
    call_seeds: CallSeeds
    sampler: EndpointSampler | None
    _formats: dict[AgentID, ChatFormat]

    def save_weights(self, path: Path) -> None:
        """Write the weights of all policies, and the names of these, into the folder `path`."""
        path.mkdir(parents=True, exist_ok=True)
        for name, policy in self.policies.items():
            policy.save(path / name)
        team = {"agents": list(self.agents), "policies": self.policy_of}
        (path / TEAM_FILE).write_text(json.dumps(team, indent=2) + "\n")

    def load_weights(self, path: Path) -> None:
        """Read what `save_weights` or `save` wrote.

        Raises:
            CheckpointError: If a file is missing or damaged, or does not fit this team.
        """
        stored = read_policy_names(path)
        if stored != self.policy_of:
            raise CheckpointError(
                f"{str(path)!r} is of a team {stored}, this one is {self.policy_of}"
            )
        for name, policy in self.policies.items():
            policy.load(path / name)

    def spare(self: TeamT, name: str) -> TeamT:
        """Return a copy that plays with weights of its own and is not trained.

        Frozen policies are shared, and so are the frozen weights below adapters.

        Args:
            name: A name that no other copy has.
        """
        copied = self._untrained()
        copied.policies = {
            key: _playing_copy(policy, f"{name}-{key}") if key in self.optimizers else policy
            for key, policy in self.policies.items()
        }
        return copied

    def _untrained(self: TeamT) -> TeamT:
        """Return a copy without optimizers and sampler, with random draws of its own."""
        copied = copy.copy(self)
        copied.optimizers = {}
        copied.sampler = None
        copied.generator, copied.call_seeds = torch.Generator().manual_seed(0), CallSeeds(0)
        return copied


def read_policy_names(path: Path) -> dict[AgentID, str]:
    """Return the name of each agent's policy in a folder of a team.

    Raises:
        CheckpointError: If the folder is not that of a team.
    """
    try:
        names: dict[AgentID, str] = json.loads((path / TEAM_FILE).read_text())["policies"]
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise CheckpointError(f"{str(path)!r} holds no checkpoint of a team: {error}") from None
    return names


def _playing_copy(policy: Policy, name: str) -> Policy:
    if policy.base is None:
        return policy.frozen_copy()
    return policy.with_adapter(name, seed=0)
