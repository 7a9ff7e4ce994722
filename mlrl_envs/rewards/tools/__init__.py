"""Rewards of `mlrl/tools-v0`."""
