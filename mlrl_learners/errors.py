"""Typed errors of the learners, beside those of `mlrl_envs.errors`."""

from mlrl_envs.errors import (
    InfraError,
    InvalidArgumentError,
    MlrlError,
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
    "UnknownNameError",
    "unknown_name",
]


class ConfigError(InvalidArgumentError):
    """A configuration value is unknown or outside its range."""


class ModelNotFoundError(MlrlError, FileNotFoundError):
    """A model was found neither as a folder, nor by a name, nor on the hub."""


class CheckpointError(MlrlError, RuntimeError):
    """A checkpoint is missing, or does not fit the learner it is loaded into."""


class NoReferenceError(InfraError):
    """A task has no reference actions, so that its oracle cannot play it: nothing to be scored."""


class RunDirError(MlrlError, RuntimeError):
    """A run directory cannot be written, or holds another run."""


class NumericsError(MlrlError, ArithmeticError):
    """A loss or gradient is not finite; the rollouts that caused it are saved beside the run."""


class PeerError(MlrlError, RuntimeError):
    """Another process of the same run failed, ended, or did not answer in time."""
