"""Workflows at equal tokens: untrained, and trained on two games."""
