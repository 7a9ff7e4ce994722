"""Evaluation of actors, and collection of episodes."""
