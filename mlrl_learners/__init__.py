"""Learners for multi-agent text environments."""

from mlrl_learners.registry import make, register, registry

__all__ = ["make", "register", "registry"]
