"""Contract test for environments, and texts that break careless parsers."""

from mlrl_envs.testing.contract import check_env
from mlrl_envs.testing.junk import JUNK_TEXTS
from mlrl_envs.testing.results import INFO_KEYS

__all__ = ["INFO_KEYS", "JUNK_TEXTS", "check_env"]
