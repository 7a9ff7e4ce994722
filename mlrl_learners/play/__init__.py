"""Collection of rollouts and episodes."""
