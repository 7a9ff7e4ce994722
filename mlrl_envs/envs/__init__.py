"""Environments: one file a family, its roles, prompts and options."""
