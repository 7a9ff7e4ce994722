"""Copies of a team that only play: in another thread, or each a group of rollout trees.

Trees of different groups do not wait for one another. What a group is asked is cut into batches
apart from the others, and has seeds of its own, so that its answers depend neither on time nor on
the process. The number of groups follows from the number of prompts and the options: a group fills
a batch of the team's models, since smaller batches would cost more than waiting.
"""

import contextlib
import copy
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeVar

import torch

from mlrl_learners.algorithms.team_models import TeamModelsConfig
from mlrl_learners.algorithms.team_weights import TeamWeights
from mlrl_learners.engine import Engine
from mlrl_learners.engine.decoding_task import MIN_BATCHES, DecodingTask, prompts_per_batch
from mlrl_learners.engine.sampling import SamplingConfig
from mlrl_learners.play.groups import PlaysGroups
from mlrl_learners.processes.work_sharing import world
from mlrl_learners.seeding import CallSeeds
from mlrl_learners.types import AgentID

__all__ = ["MAX_GROUPS", "TeamPlayers"]

MAX_GROUPS = 64  # each has a thread
SERVED_PROMPTS = 8  # of a group, if a server samples: it makes the batches, and calls have a cost
TeamT = TypeVar("TeamT", bound="TeamPlayers")


class TeamPlayers(TeamWeights):
    """Base class of a team: its copies that only play.

    Attributes:
        config: Models of the team.
        min_batches: Number of batches that a CPU cuts a large call of `act` to.
        parallel_calls: Number of players that may be asked at the same time.
        remote: Processes that play groups of trees in place of this one; None for none.
    """

    config: TeamModelsConfig
    min_batches = MIN_BATCHES
    parallel_calls = 1
    remote: PlaysGroups | None = None

    @contextlib.contextmanager
    def sampling_seed(self, seed: int) -> Iterator[None]:
        """Sample from the policies and `seed` inside the block, then as if there were no block."""
        before = self.call_seeds, self.sampler
        self.call_seeds, self.sampler = CallSeeds(seed), None
        try:
            yield
        finally:
            self.call_seeds, self.sampler = before

    def players(self: TeamT, asked: Mapping[AgentID, int], num_samples: int) -> list[TeamT]:
        """Return the player of each group of trees; the team itself if there is one group.

        Args:
            asked: Number of prompts of each agent in the first turn of all trees.
            num_samples: Answers to each, G.
        """
        num_trees = max(asked.values(), default=1)
        count = min(MAX_GROUPS, num_trees, self._num_groups(asked, num_samples))
        if count < 2:
            return [self]
        parallel = self._parallel_calls(-(-sum(asked.values()) // count))
        return [self._player(seed, parallel) for seed in self.call_seeds.next(count)]

    def played_by(self: TeamT, engines: Mapping[int, Any]) -> TeamT:
        """Return a copy that plays with other engines and is not trained, for another thread.

        Args:
            engines: Engine (or what samples like one) in place of each engine of the team, by the
                id of the latter.
        """
        copied = self._untrained()
        copied.remote = None
        tokenizers = {key: policy.tokenizer for key, policy in self.policies.items()}
        # Tokenizers are not safe to use from two threads.
        tokenizers, copied._formats = copy.deepcopy((tokenizers, self._formats))  # noqa: SLF001
        copied.policies = {key: copy.copy(policy) for key, policy in self.policies.items()}
        for key, policy in copied.policies.items():
            policy.engine, policy.tokenizer = engines[id(policy.engine)], tokenizers[key]
        return copied

    def portable(self: TeamT, engines: Mapping[int, Any]) -> TeamT:
        """Return a copy for another process, which can be pickled: what `act` needs, no weights.

        Args:
            engines: What stands for each engine, by the id of the latter, until `played_by`.
        """
        copied = object.__new__(type(self))
        copied.__dict__ |= {name: vars(self)[name] for name in ("agents", "config", "policy_of")}
        copied.optimizers, copied.sampler = {}, None
        copied.generator, copied.call_seeds = torch.Generator(), CallSeeds(0)
        copied._formats = self._formats
        copied.policies = {key: copy.copy(policy) for key, policy in self.policies.items()}
        for policy in copied.policies.values():
            policy.engine, policy.base = engines[id(policy.engine)], None
        return copied

    def player(self: TeamT, call_seeds: CallSeeds, min_batches: int) -> TeamT:
        """Return the player of a group as `players` of another process has made it.

        Args:
            call_seeds: Seeds of its calls, which it counts.
            min_batches: Its attribute `min_batches`.
        """
        copied = copy.copy(self)
        copied.call_seeds = replace(call_seeds)
        copied.min_batches, copied.parallel_calls = min_batches, MAX_GROUPS
        return copied

    def _player(self: TeamT, seed: int, parallel: int) -> TeamT:
        copied = copy.copy(self)
        copied.call_seeds = CallSeeds(seed)
        copied.min_batches, copied.parallel_calls = 1, parallel
        return copied

    def _num_groups(self, asked: Mapping[AgentID, int], num_samples: int) -> int:
        """Return how many groups fill a batch of each model that is asked."""
        if self.sampler is not None:
            is_apart = world().size == 1 and self._is_served
            return sum(asked.values()) // SERVED_PROMPTS if is_apart else 1
        engines = {id(policy.engine): policy.engine for policy in self.policies.values()}
        # The option, not whether weights are sharded: one process shards none, and plays alike.
        if self.config.compute.fsdp or not all(map(_plays_apart, engines.values())):
            return 1
        counts: Counter[int] = Counter()
        for agent, count in asked.items():
            if agent in self.policy_of:
                counts[id(self.policies[self.policy_of[agent]].engine)] += count
        found = [self._num_batches(engines[key], n, num_samples) for key, n in counts.items()]
        return min(found, default=1)

    def _num_batches(self, engine: Engine, num_prompts: int, num_samples: int) -> int:
        rows, prompts = self.config.compute.max_rows, [()] * num_prompts
        task = DecodingTask(prompts, num_samples, SamplingConfig(), (), rows)
        return num_prompts // prompts_per_batch(task, is_on_cpu=engine.device.type == "cpu")

    def _parallel_calls(self, num_prompts: int) -> int:
        if self.sampler is not None:
            return max(1, self.sampler.options.max_concurrency // num_prompts)
        is_elsewhere = all(policy.engine.remote is not None for policy in self.policies.values())
        return MAX_GROUPS if is_elsewhere else 1

    @property
    def _is_served(self) -> bool:
        return self.sampler is not None and set(self.policy_of) <= set(self.sampler.models)


def _plays_apart(engine: Engine) -> bool:
    """Return whether smaller batches of an engine cost little; a GPU takes large ones."""
    return engine.remote is not None or engine.device.type == "cpu"
