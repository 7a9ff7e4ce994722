"""Learners for multi-agent text environments."""
