"""Training loop, checkpoints and metrics of rollouts."""
