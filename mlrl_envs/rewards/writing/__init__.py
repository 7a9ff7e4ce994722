"""Rewards of stories and retold sources."""
