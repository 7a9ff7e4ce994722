"""Learning algorithms: one module per method, and shared modules named for what they do."""
