"""Reward functions; they map attempts to scores and run programs in the sandbox if needed."""
