"""Error types of the learners, in addition to those of `mlrl_envs.errors`."""

from mlrl_envs.errors import (
    InfraError,
    InvalidArgumentError,
    MlrlError,
    ModelNotFoundError,
    UnknownNameError,
    unknown_name,
)

__all__ = [
    "CheckpointError",
    "ConfigError",
    "ModelNotFoundError",
    "NoReferenceError",
    "NumericsError",
    "PeerError",
    "RunDirError",
    "SamplerError",
    "UnknownNameError",
    "unknown_name",
]


class ConfigError(InvalidArgumentError):
    """A configuration value is unknown or outside its range."""


class CheckpointError(MlrlError, RuntimeError):
    """A checkpoint is missing, or does not fit the learner it is loaded into."""


class NoReferenceError(InfraError):
    """A task has no reference actions, so its oracle cannot play it."""


class RunDirError(MlrlError, RuntimeError):
    """A run directory cannot be written, or contains another run."""


class NumericsError(MlrlError, ArithmeticError):
    """A loss, gradient or logit is not finite; a run keeps the rollouts of a failed update."""


class SamplerError(InfraError):
    """Processes that sample for the run failed; the message names the batch and the fix."""


class PeerError(MlrlError, RuntimeError):
    """Another process of the same run failed, ended, or did not answer in time."""
