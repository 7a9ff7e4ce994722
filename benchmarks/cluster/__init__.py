"""Work of the trainer and of its samplers, measured and simulated."""
