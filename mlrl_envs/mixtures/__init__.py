"""Mixtures: several environments as one."""

from mlrl_envs.mixtures.env import MIXTURE, Member, MixtureEnv
from mlrl_envs.mixtures.making import KEYS, factory_of, mixture

__all__ = ["KEYS", "MIXTURE", "Member", "MixtureEnv", "factory_of", "mixture"]
