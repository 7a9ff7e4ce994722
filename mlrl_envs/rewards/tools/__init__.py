"""Rewards of `mlrl/tools-v1`."""
