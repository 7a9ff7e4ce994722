"""Rewards of the writing environments: stories, summaries and introductions."""
