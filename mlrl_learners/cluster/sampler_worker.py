"""The process that samples: answers batches of prompts with the weights that come with them.

A call is a function of its arguments, so that it may be repeated in any process. The process keeps
its models, and the last weights that it loaded into each of them.
"""

import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mlrl_learners.cluster.workers import Answer
from mlrl_learners.errors import ConfigError
from mlrl_learners.runs.provenance import computing_versions

if TYPE_CHECKING:
    from mlrl_learners.cluster.blueprint import Blueprint, PackedWeights
    from mlrl_learners.engine import Engine
    from mlrl_learners.engine.jobs import SamplingJob

__all__ = ["ModelSource", "SamplerWorker"]


@dataclass(frozen=True)
class ModelSource:
    """A model as a process gets it.

    Attributes:
        blueprint: What it is built from.
        base: Weights below its adapters; None for a model that is trained as a whole.
        versions: Packages of the trainer, which the process must have, too.
    """

    blueprint: "Blueprint"
    base: "PackedWeights | None"
    versions: Mapping[str, str] = field(default_factory=computing_versions)


class SamplerWorker:
    """Answers batches of prompts.

    Args:
        sources: Models by their keys.
        device: Device of the models, such as `cpu`.
        threads: Threads of the process.
    """

    def __init__(self, sources: Mapping[str, ModelSource], device: str, threads: int) -> None:
        import torch

        from mlrl_learners.engine.malloc import keep_freed_memory

        torch.set_num_threads(threads)  # sums are divided between threads
        if device == "cpu":
            keep_freed_memory()
        self._sources, self._device = sources, device
        self._engines: dict[str, Engine] = {}
        self._loaded: dict[str, int] = {}

    def ready(self) -> int:
        """Return the id of the process, when it can answer.

        Raises:
            ConfigError: If it has other versions of packages than the trainer.
        """
        found = computing_versions()
        for key, source in self._sources.items():
            if source.versions != found:
                raise ConfigError(
                    f"a sampler on {socket.gethostname()} has {found}, the trainer "
                    f"{source.versions}: install the same versions"
                )
            self._engine(key)
        return os.getpid()

    def answer(
        self, key: str, version: int | None, weights: "PackedWeights | None", job: "SamplingJob"
    ) -> Answer:
        """Return the answers to a batch.

        Args:
            key: The model.
            version: Version of the weights; None for a model that is not trained.
            weights: The weights of the version; None for a model that is not trained.
            job: The batch.
        """
        from mlrl_learners.cluster.blueprint import unpack
        from mlrl_learners.engine.jobs import answer_job
        from mlrl_learners.engine.malloc import return_free_memory
        from mlrl_learners.policies import StopTexts

        engine, source = self._engine(key), self._sources[key]
        if version is not None and weights is not None and self._loaded.get(key) != version:
            self._loaded.pop(key, None)
            unpack(weights, engine, whole=source.base is None)
            self._loaded[key] = version
            return_free_memory()
        stops = StopTexts(source.blueprint.tokenizer, job.sampling.stop) if job.has_stops else None
        found = answer_job(engine, job, stops)
        return Answer(version, os.getpid(), found)

    def _engine(self, key: str) -> "Engine":
        from mlrl_learners.cluster.blueprint import unpack

        if key not in self._engines:
            source = self._sources[key]
            engine = source.blueprint.build(self._device)
            if source.base is not None:
                unpack(source.base, engine, whole=True)
            self._engines[key] = engine
        return self._engines[key]
