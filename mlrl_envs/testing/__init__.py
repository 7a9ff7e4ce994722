"""Contract test for environments, see `mlrl_envs.testing.contract`."""

from mlrl_envs.testing.contract import JUNK_TEXTS, check_env
from mlrl_envs.testing.steps import INFO_KEYS

__all__ = ["INFO_KEYS", "JUNK_TEXTS", "check_env"]
