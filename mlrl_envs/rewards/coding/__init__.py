"""Rewards of functions and classes."""
