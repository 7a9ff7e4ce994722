"""Programs built from the answers of several agents."""
